"""One policy on one world, many runs side by side on a GPU."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import has_pauses
from dpbandits.engine.loop import Ledger
from dpbandits.engine.philox import NAME, philox_key
from dpbandits.errors import InvalidInput
from dpbandits.extras import check_installed
from dpbandits.policies import Policy
from dpbandits.problems import Problem
from dpbandits.simulation.run import CHUNK_SECONDS, Played, problem_of
from dpbandits.worlds import Environment


def about_gpu() -> dict[str, str]:
    """What a trace says of the device and the generator; one sentence where there is no GPU."""
    check_installed("cuda")
    from dpbandits.engine.gpu import device_name

    if (name := device_name()) is None:
        raise InvalidInput('device="cuda" needs an NVIDIA GPU and its driver, and none was found')
    return {"device": "cuda", "gpu": name, "generator": NAME}


def check_gpu_can(label: str, policy: Policy, problem: Problem) -> None:
    """Refuse a policy that needs plain Python between rounds."""
    if has_pauses(policy.begin(problem)[0]):
        raise InvalidInput(f"{label} pauses between rounds for plain Python, which a GPU does not run")


def play_on_gpu(
    policy: Policy,
    environment: Environment,
    grid: NDArray[np.int64],
    seed: int,
    runs: Iterable[int],
    *,
    advance: Callable[[int], None] = lambda rounds: None,
    say: Callable[[str], None] = lambda text: None,
    rounds_per_person: int | None = None,
    **options: Any,
) -> Iterator[tuple[int, Played]]:
    """Play these runs up to the last round of the grid, in waves; those of a wave are finished together.

    Where waves and chunks end changes nothing. Options are those of a `Wave`.
    """
    from dpbandits.engine.gpu import Wave, waves

    rounds = int(grid[-1])
    problem = problem_of(environment, rounds, rounds_per_person)
    policy.check(problem)
    states = *policy.begin(problem), environment.small_world()
    ledger, numbers = Ledger.on(grid), np.fromiter(runs, np.int64)
    for numbers_of_wave in waves(numbers, *states, ledger):
        wave = Wave(*states, ledger, philox_key(seed), numbers_of_wave, **options)
        wave.prepare(lambda: say(f"compiling {policy.name()} for the GPU, once on this machine …"))
        spent = _play_wave(policy, wave, rounds, advance) / wave.size
        found = wave.curves()
        del wave  # its memory is the next one's
        for run, curves in zip(numbers_of_wave.tolist(), found, strict=True):
            yield run, Played(curves, spent)


def _play_wave(policy: Policy, wave: Any, rounds: int, advance: Callable[[int], None]) -> float:
    """Chunks of rounds, for progress and Ctrl-C; the seconds they took."""
    done, size, seconds = 0, 100, 0.0
    while done < rounds:
        stop, began = min(rounds, done + size), time.perf_counter()
        if wave.play(stop) < stop:
            raise IndexError(f"{policy.name()} chose an action that there is not")
        spent = time.perf_counter() - began
        seconds += spent
        advance((stop - done) * wave.size)
        done = stop
        size = min(int(size * min(8.0, max(0.25, CHUNK_SECONDS / max(spent, 1e-6)))) + 1, rounds)
    return seconds
