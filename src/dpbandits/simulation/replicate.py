"""Several policies on one environment, many runs each, with common random numbers."""

import itertools
import os
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import HorizonReached, InvalidInput
from dpbandits.policies import Policy
from dpbandits.problems import Problem
from dpbandits.simulation.checkpoint import Checkpoint
from dpbandits.simulation.ending import ended_by_sigterm
from dpbandits.simulation.gpu import about_gpu, check_gpu_can, play_on_gpu
from dpbandits.simulation.header import describe
from dpbandits.simulation.leaps import check_can_leap, check_leap_device
from dpbandits.simulation.progress import RoundsBar
from dpbandits.simulation.run import Played, Seeds, Watch, begin, problem_of
from dpbandits.simulation.timing import Timing
from dpbandits.simulation.trace import Trace
from dpbandits.worlds import Environment
from dpbandits.worlds.timing import Delays, Traffic

Task = tuple[str, int]
Device = Literal["cpu", "cuda"]
_MOST_RUNS = 10_000_000  # on a GPU or in leaps
_LAST_CHUNKS = 2.0  # seconds that an interrupted simulation waits for what is being played


def simulate(
    policies: Policy | Iterable[Policy] | Mapping[str, Policy],
    environment: Environment,
    rounds: int,
    runs: int | range = 20,
    seed: int | None = None,
    *,
    device: Device = "cpu",
    leaps: bool = False,
    threads: int | None = None,
    progress: bool | RoundsBar = True,
    checkpoint: str | Path | None = None,
    points: int = 100,
    in_flight: int = 1,
    delays: Delays | None = None,
    traffic: Traffic | None = None,
    patience: float | None = None,
    rounds_per_person: int | None = None,
) -> Trace:
    """Play every policy on the same worlds and return their regret.

    Run r of every policy meets the same chances and the same noise stream, whatever other policies
    are compared and however many threads work; without a `seed` a fresh one is drawn and kept in the
    trace. `runs=range(100, 200)` plays those of a longer simulation, and `Trace.merged` puts such parts
    together. With a `checkpoint`, finished runs are kept there every few seconds and when the work is
    interrupted (Ctrl-C, SIGTERM), and the same call later resumes from them, with the same result.
    `points` is how finely curves are kept. `progress` shows a bar on a terminal, and says on the
    standard error what is being compiled.

    With `in_flight` that many rounds are open at once: each is closed when as many others were decided
    since, with its reward if that has arrived. `delays` says when, in decisions: one that comes later
    is missing (and counts as ½ for arms, as 0 for actions and kernels: if the best arm's rewards come
    later than others', it may look worse than it is). With `traffic` people come by a clock, delays are
    in seconds, and `patience` closes rounds after that many seconds; `in_flight` is then a cap.
    `rounds_per_person` calibrates policies for people who return; here every round is learned from.

    With `device="cuda"` every run is a thread on an NVIDIA GPU (the extra `cuda`). Its draws come from
    another generator: the same law, other numbers, and one answer for a seed on one kind of GPU. It
    plays one round at a time, and policies that do not pause.

    With `leaps=True` rounds between which nothing is decided are one draw, for policies that play an arm
    for a whole batch, such as `NoiseAwareIMED`, on arms that pay 0 or 1. It is the same law with other
    numbers, which depend on `points` too, since a leap ends where curves are kept: with `points=1` a
    million runs of 10⁵ rounds take about a minute of one core.
    """
    chosen = _labelled(policies)
    if not isinstance(environment, Environment):
        raise InvalidInput(
            f"expected an environment such as BernoulliArms([.5, .6]), got {checks.shown(environment)}"
        )
    checks.integer(least=1, rounds=rounds)
    checks.one_of(("cpu", "cuda"), device=device)
    numbers = _run_numbers(runs, _MOST_RUNS if device == "cuda" or leaps else checks.MOST_ACTIONS)
    threads = (os.cpu_count() or 1) if threads is None else threads
    checks.integer(least=1, limit=1024, threads=threads)
    checks.integer(least=1, limit=checks.MOST_ACTIONS, points=points)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    checks.seed(seed)
    rounds, seed, points = int(rounds), int(seed), int(points)
    timing = Timing(in_flight=in_flight, delays=delays, traffic=traffic, patience=patience)
    problem = problem_of(environment, rounds, rounds_per_person)
    rounds_per_person = problem.rounds_per_person
    for label, policy in chosen.items():  # refuse before anything is played
        check_can_play(label, policy, problem, rounds)
    if leaps:
        _check_leaps(chosen, environment, problem, timing, device)
    made_by = _checked_gpu(chosen, problem, timing) if device == "cuda" else {}
    grid = thin_grid(rounds, points)
    options: dict[str, Any] = {
        "timing": None if timing.is_one_at_a_time else timing,
        "rounds_per_person": rounds_per_person,
        "leaps": leaps,
    }
    header = describe(chosen, environment, rounds, numbers, seed, points, **options, made_by=made_by)
    tasks = [(label, run) for run in numbers for label in chosen]
    kept = Checkpoint(checkpoint, header)
    played: dict[Task, Played] = kept.read()
    missing = [task for task in tasks if task not in played]
    shared = progress if isinstance(progress, RoundsBar) else None
    bar = shared or RoundsBar(rounds * len(tasks), show=bool(progress))
    with ended_by_sigterm(), nullcontext() if shared else bar, kept.keeping(played):
        bar.spare(rounds * (len(tasks) - len(missing)))
        if device == "cuda":
            _play_on_gpu(missing, chosen, environment, grid, seed, bar, played, rounds_per_person)
        else:
            _play_all(missing, chosen, environment, grid, seed, threads, bar, played, options)
    return Trace.of(header, grid, played)


def check_can_play(label: str, policy: Policy, problem: Problem, rounds: int) -> None:
    """Refuse a problem that is not the policy's, and more rounds than it promises anything for."""
    guarantee = policy.guarantee(problem)
    if guarantee.is_private and guarantee.horizon is not None and rounds > guarantee.horizon:
        raise HorizonReached(f"{label} guarantees {guarantee.horizon:,} rounds, not {rounds:,}")


def _run_numbers(runs: int | range, most: int) -> range:
    """Which runs: the first so many, or those of a range."""
    if not isinstance(runs, range):
        checks.integer(least=1, limit=most, runs=runs)
        return range(int(runs))
    if runs.step != 1 or runs.start < 0 or not runs:
        raise InvalidInput(f"expected runs as a number or as range(100, 200), got {checks.shown(runs)}")
    checks.integer(least=1, limit=most, runs=len(runs))
    checks.integer(least=1, runs=runs.stop)
    return runs


def _checked_gpu(policies: dict[str, Policy], problem: Problem, timing: Timing) -> dict[str, str]:
    """What a trace says of the GPU; refused is what it cannot play."""
    if not timing.is_one_at_a_time:
        raise InvalidInput('device="cuda" plays rounds one at a time, without in_flight and traffic')
    for label, policy in policies.items():
        check_gpu_can(label, policy, problem)
    return about_gpu()


def _check_leaps(
    policies: dict[str, Policy],
    environment: Environment,
    problem: Problem,
    timing: Timing,
    device: Device,
) -> None:
    """Refuse what cannot be played in leaps."""
    check_leap_device(device)
    if not timing.is_one_at_a_time:
        raise InvalidInput("leaps are of rounds played one at a time, without in_flight and traffic")
    for label, policy in policies.items():
        check_can_leap(label, policy, problem, environment)


def thin_grid(rounds: int, points: int = 100) -> NDArray[np.int64]:
    """Rounds at which curves are kept: evenly spaced, and evenly on a log scale, the last included."""
    even = np.linspace(0, rounds, points + 1)[1:]
    log = np.geomspace(1, rounds, points // 2)
    grid = np.unique(np.concatenate([even, log]).round().astype(np.int64))
    return grid[grid >= 1]


def _labelled(policies: Policy | Iterable[Policy] | Mapping[str, Policy]) -> dict[str, Policy]:
    if isinstance(policies, Policy):
        policies = [policies]
    if isinstance(policies, type):
        raise InvalidInput(
            f"expected policies, got {checks.shown(policies)}; write {_name(policies)}(...)"
        )
    if not isinstance(policies, Mapping):
        listed = checks.sequence("policies", policies)
        for one in listed:
            if not isinstance(one, Policy):
                raise InvalidInput(f"expected a policy, got {checks.shown(one)}")
        policies = {policy.name(): policy for policy in listed}
        if len(policies) < len(listed):
            raise InvalidInput("two policies have the same name: give a dict with a label for each")
    if not policies:
        raise InvalidInput("expected at least one policy")
    for label, policy in policies.items():
        if not isinstance(policy, Policy):
            raise InvalidInput(
                f"expected a policy for {checks.shown(label)}, got {checks.shown(policy)}"
            )
    return dict(policies)


def _name(value: object) -> str:
    return getattr(value, "__name__", "Policy")


class _Waiting:
    """The runs that no thread has taken yet."""

    def __init__(self, tasks: list[Task], threads: int) -> None:
        self._runs: dict[str, list[int]] = {}
        for label, run in tasks:
            self._runs.setdefault(label, []).append(run)
        self._begun = dict.fromkeys(self._runs, 0)
        self._shares, self._lock = 2 * threads, threading.Lock()

    def take(self, label: str | None) -> tuple[str, list[int]] | None:
        """Some runs, of the policy that the thread played last if there are any; None when none is left.

        They are ever fewer, so that threads end together. Threads begin with different policies: while
        one is compiled, others are played.
        """
        with self._lock:
            if not self._runs:
                return None
            if label is None or label not in self._runs:
                label = min(self._runs, key=self._begun.__getitem__)
                self._begun[label] += 1
            runs = self._runs.pop(label)
            size = -(-len(runs) // self._shares)
            if size < len(runs):
                self._runs[label] = runs[size:]
            return label, runs[:size]


def _play_all(
    tasks: list[Task],
    policies: dict[str, Policy],
    environment: Environment,
    grid: NDArray[np.int64],
    seed: int,
    threads: int,
    bar: RoundsBar,
    played: dict[Task, Played],
    options: dict[str, Any],
) -> None:
    """Fill `played`; an interruption keeps what is finished and stops the rest within a chunk."""
    stop, waiting = threading.Event(), _Waiting(tasks, threads)
    finished: SimpleQueue[dict[Task, Played]] = SimpleQueue()
    seeds = Seeds.of(seed, (run for _, run in tasks))

    def work() -> None:
        label, play_runs = None, None
        while not stop.is_set() and (taken := waiting.take(label)) is not None:
            if play_runs is None or taken[0] != label:
                watch = Watch(bar.advance, bar.say, stop)
                play_runs = begin(policies[taken[0]], environment, grid, seeds, watch, **options)
            label, runs = taken
            names = iter([(label, run) for run in runs])
            for some in play_runs(runs):
                finished.put(dict(zip(itertools.islice(names, len(some)), some, strict=True)))

    pool = ThreadPoolExecutor(max_workers=threads)
    futures = {pool.submit(work) for _ in range(min(threads, len(tasks)))}
    try:
        working = futures
        while working:
            done, working = wait(working, timeout=0.5, return_when=FIRST_COMPLETED)
            _keep(finished, played)
            for future in done:
                future.result()
    except BaseException:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        # Chunks end soon; code that is being compiled would be waited for in vain.
        wait(futures, timeout=_LAST_CHUNKS)
        _keep(finished, played)
        raise
    pool.shutdown()


def _play_on_gpu(
    tasks: list[Task],
    policies: dict[str, Policy],
    environment: Environment,
    grid: NDArray[np.int64],
    seed: int,
    bar: RoundsBar,
    played: dict[Task, Played],
    rounds_per_person: int | None,
) -> None:
    """The same, one policy after the other; an interruption keeps the waves that are finished."""
    for label, policy in policies.items():
        runs = [run for one, run in tasks if one == label]
        found = play_on_gpu(
            policy,
            environment,
            grid,
            seed,
            runs,
            advance=bar.advance,
            say=bar.say,
            rounds_per_person=rounds_per_person,
        )
        for run, result in found:
            played[label, run] = result


def _keep(finished: "SimpleQueue[dict[Task, Played]]", played: dict[Task, Played]) -> None:
    while not finished.empty():
        played.update(finished.get())
