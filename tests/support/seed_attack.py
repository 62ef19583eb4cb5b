"""From the state of one stream of a seed to all others.

NumPy's seeding is invertible, and PCG64 runs backwards. From the state of `explore` follow the words it
was seeded with, from these the pool of the seed, from that every other stream.
"""

import numpy as np

_BITS = (1 << 128) - 1
_INVERSE = pow(0x2360ED051FC65DA44385DF649FCCF645, -1, 1 << 128)


def noise_from_explore(explore: np.random.Generator, draws: int) -> np.random.Generator:
    """The noise of the same seed, if `explore` has drawn so often."""
    state = explore.bit_generator.state["state"]
    now, increment = state["state"], state["inc"]
    for _ in range(draws):
        now = (now - increment) * _INVERSE & _BITS
    # PCG64 is seeded by: state = (increment + seed)·multiplier + increment.
    seed = ((now - increment) * _INVERSE - increment) & _BITS
    words = _words64(seed) + _words64(increment >> 1)  # the stream's top bit is lost: try both
    for top in (0, 1):
        halves = [
            half
            for word in [*words[:2], words[2] | top << 63, words[3]]
            for half in (word & 0xFFFFFFFF, word >> 32)
        ]
        pool = _pool_behind(halves)
        if pool is not None:
            rooted = _without_child(pool, 1)
            return _generator_of(_with_child(rooted, 0))
    raise ValueError("not a child of a seed")


def _words64(number: int) -> list[int]:
    return [number >> 64, number & (1 << 64) - 1]


_M = 0xFFFFFFFF


def _pool_behind(halves: list[int]) -> list[int] | None:
    """Undo SeedSequence.generate_state: eight words, of which the last four tell nothing new."""
    constant, found = 0x8B51F9DD, []
    for half in halves:
        before = constant
        constant = constant * 0x58F38DED & _M
        value = half ^ half >> 16
        found.append(value * pow(constant, -1, 1 << 32) & _M ^ before)
    return found[:4] if found[:4] == found[4:] else None


def _hash_constants(count: int) -> list[int]:
    constants = [0x43B0D7E5]
    for _ in range(count):
        constants.append(constants[-1] * 0x931E8875 & _M)
    return constants


def _child_hashes(child: int) -> list[int]:
    """What a one-word spawn key mixes into each of four pool words (16 hashes came before)."""
    constants, found = _hash_constants(20), []
    for place in range(4):
        value = (child ^ constants[16 + place]) * constants[17 + place] & _M
        found.append(value ^ value >> 16)
    return found


def _with_child(pool: list[int], child: int) -> list[int]:
    mixed = []
    for word, hashed in zip(pool, _child_hashes(child), strict=True):
        value = (0xCA01F9DD * word - 0x4973F715 * hashed) & _M
        mixed.append(value ^ value >> 16)
    return mixed


def _without_child(pool: list[int], child: int) -> list[int]:
    found = []
    for word, hashed in zip(pool, _child_hashes(child), strict=True):
        value = word ^ word >> 16
        found.append((value + 0x4973F715 * hashed) * pow(0xCA01F9DD, -1, 1 << 32) & _M)
    return found


def _generator_of(pool: list[int]) -> np.random.Generator:
    constant, halves = 0x8B51F9DD, []
    for place in range(8):
        value = pool[place % 4] ^ constant
        constant = constant * 0x58F38DED & _M
        value = value * constant & _M
        halves.append(value ^ value >> 16)
    words = [halves[i] | halves[i + 1] << 32 for i in range(0, 8, 2)]
    bits = np.random.PCG64(0)
    increment = (((words[2] << 64 | words[3]) << 1) | 1) & _BITS
    seed = words[0] << 64 | words[1]
    state = ((increment + seed) * 0x2360ED051FC65DA44385DF649FCCF645 + increment) & _BITS
    bits.state = {**bits.state, "state": {"state": state, "inc": increment}}
    return np.random.Generator(bits)
