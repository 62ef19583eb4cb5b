"""Searches for the best arm, played many times: how many samples they take and how often they are wrong.

Policies that search have a part `search` in their public state (`policies/arms/shared/search.py`): the
compiled loop stops a run as soon as there is a recommendation in it.
"""

import functools
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.cache import compiled
from dpbandits.engine.loop import Block, Ledger, begin_run, modules_outside, run_rounds
from dpbandits.engine.pcg64 import Words, is_placed
from dpbandits.engine.state import classes
from dpbandits.errors import InvalidInput
from dpbandits.limits import least_samples
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import PureDP
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.reports.tables import Row, text_table
from dpbandits.simulation.progress import RoundsBar
from dpbandits.simulation.run import Player, Seeds, Watch, problem_of
from dpbandits.wording import ROUNDING, number
from dpbandits.worlds import BernoulliArms, Environment

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Identification:
    """How the runs of a search ended; printed, a table of one row."""

    policy: Policy
    environment: Environment
    seed: int
    max_rounds: int
    recommendation: Integers  # of each run; −1 where it had not stopped after `max_rounds`
    samples: Integers  # decisions made until then

    @property
    def runs(self) -> int:
        """How many there were."""
        return self.samples.size

    @property
    def unfinished(self) -> int:
        """Runs that had not stopped."""
        return int(np.count_nonzero(self.recommendation < 0))

    @property
    def wrong(self) -> int:
        """Runs that recommended an arm that is not best."""
        means = np.array(_means(self.environment))
        best = np.flatnonzero(means >= means.max() - ROUNDING)
        return self.runs - self.unfinished - int(np.isin(self.recommendation, best).sum())

    def error_between(self, confidence: float = 0.95) -> tuple[float, float]:
        """An interval for the probability of a wrong recommendation (Clopper & Pearson)."""
        checks.open_unit(confidence=confidence)
        tail, wrong = 0.5 * (1.0 - confidence), self.wrong
        beta: Any = scipy.stats.beta
        low = 0.0 if wrong == 0 else float(beta.ppf(tail, wrong, self.runs - wrong + 1))
        high = 1.0 if wrong == self.runs else float(beta.ppf(1.0 - tail, wrong + 1, self.runs - wrong))
        return low, high

    @property
    def guarantee(self) -> Guarantee:
        """What all decisions, the stopping time and the recommendation together promise."""
        return self.policy.guarantee(self.environment.problem(self.max_rounds))

    @property
    def least_samples(self) -> float | None:
        """What no policy of this budget and `error` stays below; None where that is not known."""
        error = getattr(self.policy, "error", None)
        if error is None or not isinstance(self.environment, BernoulliArms):
            return None
        budget = self.policy.privacy
        epsilon = budget.epsilon if isinstance(budget, PureDP) else math.inf
        return least_samples(self.environment.arm_means(), error, epsilon)

    def row(self) -> Row:
        """The same in numbers."""
        deviation = float(self.samples.std(ddof=1)) if self.runs > 1 else math.nan
        return {
            "policy": self.policy.name(),
            "guarantee": self.guarantee.short(),
            "samples": float(self.samples.mean()),
            "±": deviation / math.sqrt(self.runs),
            "limit": self.least_samples,
            "wrong": self.wrong / self.runs,
            "at most (95 %)": self.error_between(0.90)[1],
            "runs": self.runs,
            "unfinished": self.unfinished,
        }

    def __str__(self) -> str:
        shown = dict(self.row())
        shown["wrong"] = number(shown["wrong"])
        shown["at most (95 %)"] = number(shown["at most (95 %)"])
        return text_table([shown])

    __repr__ = __str__


def identify(
    policy: Policy,
    environment: Environment,
    *,
    runs: int = 1000,
    seed: int | None = None,
    max_rounds: int = 10_000_000,
    threads: int | None = None,
    progress: bool = True,
) -> Identification:
    """Let a policy search for the best arm, many times, each until it stops or for `max_rounds`.

    Run r meets the same chances and the same noise stream as in `simulate`, whatever the number of
    threads; without a `seed` a fresh one is drawn and kept. `progress` says on the standard error what
    is being compiled.

    >>> from dpbandits.policies.arms import BestArmRace
    >>> found = identify(
    ...     BestArmRace(privacy=PureDP(1.0)), BernoulliArms((0.8, 0.5)), runs=20, seed=1, progress=False
    ... )
    >>> found.wrong, found.unfinished
    (0, 0)
    """
    checks.integer(least=1, limit=checks.MOST_ACTIONS, runs=runs)
    checks.integer(least=1, max_rounds=max_rounds)
    threads = (os.cpu_count() or 1) if threads is None else threads
    checks.integer(least=1, limit=1024, threads=threads)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    checks.seed(seed)
    _check_searches(policy, environment, max_rounds)
    states, stop = Seeds.of(seed, range(runs)).states, threading.Event()
    say = RoundsBar(0, show=progress).say

    def searcher() -> _Searcher:
        return _Searcher(policy, environment, max_rounds, Watch(say=say, stop=stop))

    first = searcher()  # which compiles
    shares = [states[at::threads] for at in range(min(threads, runs))]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        futures = [pool.submit(first.search, shares[0])]
        futures += [pool.submit(lambda some: searcher().search(some), some) for some in shares[1:]]
        try:
            parts = [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise
    found = np.zeros((runs, 2), np.int64)
    for at, part in enumerate(parts):
        found[at::threads] = part
    return Identification(
        policy=policy,
        environment=environment,
        seed=int(seed),
        max_rounds=int(max_rounds),
        recommendation=found[:, 0],
        samples=np.where(found[:, 0] >= 0, found[:, 1], max_rounds),
    )


def _check_searches(policy: Any, environment: Any, max_rounds: int) -> None:
    """Refuse what has no best arm, and policies that do not look for it."""
    if not isinstance(policy, Policy):
        raise InvalidInput(f"expected a policy such as BestArmRace, got {checks.shown(policy)}")
    if not isinstance(environment, Environment) or not hasattr(environment, "arm_means"):
        raise InvalidInput(
            f"expected arms such as BernoulliArms([.5, .6]), got {checks.shown(environment)}"
        )
    problem = problem_of(environment, max_rounds, None)
    policy.check(problem)
    if not hasattr(policy.begin(problem)[0], "search"):
        raise InvalidInput(
            f"{type(policy).__name__} recommends no arm; BestArmRace and SequentialHalving do"
        )


def _means(environment: Any) -> tuple[float, ...]:
    means: tuple[float, ...] = environment.arm_means()
    return means


class _Searcher(Player):
    """A policy on a world that plays runs until each has its recommendation."""

    def __init__(self, policy: Policy, environment: Environment, max_rounds: int, watch: Watch) -> None:
        self._found = np.zeros((0, 2), np.int64)
        super().__init__(policy, environment, np.array([max_rounds]), watch)

    def search(self, seeds: Words) -> Integers:
        """The recommended arm of each run, and the decisions made until then."""
        together, parts = len(seeds) if is_placed() else 1, [self._found[:0]]
        for at in range(0, len(seeds), together):
            block = self._begin(seeds[at : at + together])
            self._found = np.full((len(block.seeds), 2), -1, np.int64)
            while block.finished[0] < len(self._found) and not self._watch.is_stopped:
                self._watch.chunk(functools.partial(self._go_on, block))
            parts.append(self._found)
        return np.concatenate(parts)

    def _go_on(self, block: Block, rounds: int) -> int:
        public, secret, world = self._states
        run = _compiled_for(public, world)
        left: int = run(public, secret, world, self._streams, block, self._found, rounds)
        return rounds - left


def _run_searches(
    public: Any, secret: Any, world: Any, streams: Any, block: Any, found: Integers, rounds: int
) -> int:
    """Play about so many rounds, of one run after the other; each ends with its recommendation."""
    most, runs = block.grid[-1], found.shape[0]
    while rounds > 0 and block.finished[0] < runs:
        run, before = block.finished[0], block.done[0]
        if public.search.arm[0] < 0 and before < most:
            # The state knows the decision before which it ended, so that a look now and then will do.
            stop = min(most, before + 32 + before // 32)
            ledger = Ledger(block.grid, block.curves[run], block.totals, block.done)
            run_rounds(public, secret, world, streams, ledger, stop)
            rounds -= block.done[0] - before
            continue
        found[run, 0], found[run, 1] = public.search.arm[0], public.search.stopped[0]
        block.finished[0] = run + 1
        if run + 1 < runs:
            begin_run(block, run + 1)
    return rounds


def _compiled_for(public: Any, world: Any) -> Callable[..., int]:
    """As `compiled_for` of the loop: by classes, kept on disk under a hash of all sources."""
    states = (*classes(public), *classes(world))
    return _compile(modules_outside(states), states)


@functools.cache
def _compile(outside: tuple[str, ...], states: tuple[type, ...]) -> Callable[..., int]:
    del states  # only the key
    return compiled(_run_searches, outside=outside)[0]
