"""What one message of the local model costs, whatever the server broadcasts.

`replay` plays whole streams with an honest server. But a person's protection must not rest on the
server: so here every pair of extreme people reports on broadcasts that were made up. Nor may it rest on
both having the same action: a broadcast decides who gets which.
"""

import copy
import math
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from dpbandits.audit.recording import (
    Draw,
    ForcedNoise,
    Mismatch,
    RecordingExplore,
    RecordingNoise,
    Steer,
)
from dpbandits.audit.replay import action_is_replaced, draws_cost
from dpbandits.engine import leaves
from dpbandits.policies import LocalPolicy
from dpbandits.problems import Arms, KernelContexts, LinearContexts, Problem

# What made-up broadcasts are filled with, whole numbers rounded.
_MADE_UP = (0.0, 1e-6, 1.0, 3.0, 1e6)
# What arithmetic may stumble over; where whole numbers are, the nearest that there is.
_BEYOND = (1e300, -1e300, math.inf, -math.inf, math.nan)
_MIXTURES = 4


def report_cost(policy: LocalPolicy, problem: Problem, *, seed: int = 0) -> float:
    """The largest cost of one message over all pairs of extreme people and made-up broadcasts.

    Where contexts are replaced, and with them actions, the two people have different actions as well.
    Infinite where a message would differ under the same results of every draw, where it holds the last
    bits of a noisy number, which tell what it was added to (`mechanisms/rounding.py`), and where none
    comes: a broadcast must not decide who can answer.
    """
    honest, _ = policy.begin(problem)
    people, broadcasts = problem.testing.extreme_people(problem), [honest, *_made_up(honest, seed)]
    replaced = action_is_replaced(policy.guarantee(problem))
    return max(
        _pair_cost(policy, public, (*one, mine), (*other, hers), seed)
        for one, other in combinations(people, 2)
        for mine, hers in _actions(problem, honest, one[0], other[0], replaced, seed)
        for public in broadcasts
    )


def _actions(
    problem: Problem, honest: Any, one: Any, other: Any, replaced: bool, seed: int
) -> list[tuple[Any, Any]]:
    """What both may have chosen: the same, and where actions are replaced too, neighbours in a ring.

    Whatever tells any two actions apart tells some neighbours in the ring apart.
    """
    mine, hers = _choices(problem, one), _choices(problem, other)
    if not (mine and hers):
        return [(_chosen(honest, one, seed), _chosen(honest, other, seed))]
    shifts = (0, 1, -1) if replaced else (0,)
    pairs = product(range(max(mine, hers)), shifts)
    return sorted({(place % mine, (place + shift) % hers) for place, shift in pairs})


def _choices(problem: Problem, context: Any) -> int:
    """How many actions she has, on whatever broadcast; 0 where only the honest one is known."""
    match problem:
        case Arms():
            return problem.arms
        case KernelContexts():
            return len(problem.actions)
        case LinearContexts():
            return problem.arms or len(context[0])
    return 0


def _chosen(honest: Any, context: Any, seed: int) -> Any:
    return copy.deepcopy(honest).select(context, RecordingExplore(seed))


def _pair_cost(policy: LocalPolicy, public: Any, one: Any, other: Any, seed: int) -> float:
    recording = RecordingNoise(np.random.default_rng(seed), Steer())
    try:
        sent = _report(public, one, recording)
        forced = ForcedNoise(recording.draws)
        same = _report(public, other, forced) == sent
    except (Mismatch, ArithmeticError, ValueError):  # the last two of plain numbers, as of √−1
        return math.inf
    if not same or len(forced.draws) != len(recording.draws) or _has_last_bits(sent, recording.draws):
        return math.inf
    return draws_cost(list(zip(recording.draws, forced.draws, strict=True)), policy.privacy)


@np.errstate(all="ignore")  # as a person does
def _report(public: Any, person: Any, noise: Any) -> list[tuple[str, bytes]]:
    """The bits of her message; her action is given, since a made-up table may hold none."""
    context, reward, action = person
    message = copy.deepcopy(public).report(context, action, reward, noise)
    parts = [np.asarray(part) for part in (message if isinstance(message, tuple) else (message,))]
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError("what is sent as JSON must be finite")
    return [(part.dtype.str, part.tobytes()) for part in parts]


def _has_last_bits(sent: list[tuple[str, bytes]], draws: list[Draw]) -> bool:
    """Whether a number of the message is no multiple of 2⁻²⁰ of (about) the least scale of its noise."""
    scales = [float(np.min(draw.scale)) for draw in draws if draw.kind in ("normal", "laplace")]
    if not scales or min(scales) <= 0.0:
        return False
    step = math.ldexp(1.0, math.frexp(min(scales))[1] - 20)
    for kind, bits in sent:
        numbers = np.frombuffer(bits, kind)
        if numbers.dtype.kind == "f" and (np.fmod(numbers, step) != 0.0).any():
            return True
    return False


def _made_up(honest: Any, seed: int) -> Iterator[Any]:
    """Broadcasts with all arrays alike, with one unlike the others, and with every number another."""
    arrays = [name for name, value in leaves(honest, sent=True) if isinstance(value, np.ndarray)]
    chance = np.random.default_rng(seed)
    for value in (*_MADE_UP, *_BEYOND):
        yield _filled(honest, dict.fromkeys(arrays, value))
    for name, (one, others) in product(arrays, ((0.0, 1e6), (1e6, 0.0))):
        yield _filled(honest, dict.fromkeys(arrays, others) | {name: one})
    for _ in range(_MIXTURES):
        yield _filled(honest, dict.fromkeys(arrays, chance))


def _filled(honest: Any, numbers: dict[str, Any]) -> Any:
    public = copy.deepcopy(honest)
    for name, array in leaves(public, sent=True):
        if name in numbers:
            given = numbers[name]
            if isinstance(given, np.random.Generator):
                given = given.choice((*_MADE_UP, *np.negative(_MADE_UP)), array.shape)
            if array.dtype.kind == "i":
                given = np.clip(np.nan_to_num(given), -(2.0**62), 2.0**62)
            array[...] = np.asarray(given).astype(array.dtype)
    return public
