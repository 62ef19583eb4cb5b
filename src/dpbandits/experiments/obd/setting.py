"""The data, the worlds made of them, and who plays there."""

import dataclasses
import functools
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import offline
from dpbandits.errors import InvalidInput
from dpbandits.experiments.figure import Scale, Simulation
from dpbandits.experiments.leaderboard import policies_for
from dpbandits.policies import LocalPolicy, Policy
from dpbandits.policies.arms import BetaThompson, NoiseAwareIMED, PrivateIMED
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.problems import Arms
from dpbandits.recommend import recommend
from dpbandits.simulation import Trace
from dpbandits.simulation.leaps import policy_can_leap
from dpbandits.worlds import LoggedArms

DATA = "DPBANDITS_OBD"
PAPER = "dpbandits"
LICENCE = (
    "Open Bandit Dataset (Saito, Aihara, Matsutani and Narita, 2021): the sample of 10,000 rows a "
    "campaign that comes with the package obp, here the log of uniformly random items."
)
CAMPAIGNS = ("all", "men", "women")
POSITIONS = (1, 2, 3)
# Rows of the average item that the shrunk worlds add to each item's own.
PRIOR_ROWS = 1000
BUDGETS: tuple[Budget, ...] = (PureDP(0.1), PureDP(1.0), PureDP(4.0), GaussianDP(1.0))
HORIZONS = {Scale.quick: (100_000, 1_000_000), Scale.paper: (100_000, 1_000_000, 10_000_000)}
RUNS = {Scale.quick: 2, Scale.paper: 5}
LEAPING_RUNS = {Scale.quick: 20, Scale.paper: 50}  # of policies that can be played in leaps
RECOMMENDED = "recommended"
RATE = 0.005  # about what a row pays on average: all that the recommendation is told of a world


def folder() -> Path | None:
    """Where the data are: where DPBANDITS_OBD says, or in the package obp, which is not imported."""
    if (given := os.environ.get(DATA)) is not None:
        return Path(given)
    found = importlib.util.find_spec("obp")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "dataset" / "obd"


def missing() -> str | None:
    """What to do where there are no data."""
    place = folder()
    if place is None:
        return f"pip install --no-deps obp, whose sample is read, or set {DATA} to a folder of the data"
    absent = [path for path in (_log(place, one) for one in CAMPAIGNS) if not path.is_file()]
    return f"there is no {absent[0]}; set {DATA} to the folder of the data" if absent else None


def _log(place: Path, campaign: str) -> Path:
    return place / "random" / campaign / f"{campaign}.csv"


def worlds() -> dict[str, LoggedArms]:
    """Each campaign at each position as logged, and each campaign with its rates shrunk."""
    if (needed := missing()) is not None:
        raise InvalidInput(f"there are no data for this figure: {needed}")
    return _worlds(folder() or Path())


@functools.cache
def _worlds(place: Path) -> dict[str, LoggedArms]:
    columns: dict[str, Any] = {"action": "item_id", "reward": "click"}
    found = {}
    for campaign in CAMPAIGNS:
        log = _log(place, campaign)
        for at in POSITIONS:
            found[f"{campaign} {at}"] = LoggedArms.read(log, **columns, position="position", at=at)
        found[f"{campaign} shrunk"] = LoggedArms.read(log, **columns, prior_rows=PRIOR_ROWS)
    return {name: dataclasses.replace(world, title=f"campaign {name}") for name, world in found.items()}


def replays() -> dict[str, offline.Replayed]:
    """The recommended policy at ε = 1, learning from the rows of each campaign that match it."""
    found = {}
    for campaign in CAMPAIGNS:
        log = _log(folder() or Path(), campaign)
        rows = offline.read(log, action="item_id", reward="click")
        found[campaign] = offline.replay(NoiseAwareIMED(privacy=PureDP(1.0)), rows, seed=0)
    return found


def is_shrunk(world: str) -> bool:
    """Whether a world has rates drawn to their mean, and not those of a position."""
    return world.endswith("shrunk")


def policies(budget: Budget) -> dict[str, Policy]:
    """All for arms with a trusted server that accept the budget; without one, the best known."""
    if isinstance(budget, NonPrivate):
        kinds = (BetaThompson, NoiseAwareIMED, PrivateIMED)
        return {kind.name(): kind(privacy=budget) for kind in kinds}
    found = policies_for(Arms(2), budget)
    return {name: one for name, one in found.items() if not isinstance(one, LocalPolicy)}


def recommended(environment: LoggedArms, budget: Budget, rounds: int) -> Policy:
    """What is recommended to somebody who knows how many items and rounds there are, and RATE."""
    return recommend(environment.problem(rounds), budget, rate=RATE).policy


def names(budget: Budget) -> list[str]:
    """Of all that is played at a budget."""
    return [*policies(budget), *([] if isinstance(budget, NonPrivate) else [RECOMMENDED])]


def others(budget: Budget, rounds: int) -> list[str]:
    """All policies but one that is what is recommended in every world."""
    chosen = [recommended(environment, budget, rounds) for environment in worlds().values()]
    return [name for name, one in policies(budget).items() if any(one != them for them in chosen)]


def worlds_and_runs(scale: Scale) -> str:
    """In words."""
    return f"{len(worlds())} worlds, {RUNS[scale]} runs each ({LEAPING_RUNS[scale]} in leaps)"


def simulations(scale: Scale) -> dict[str, Simulation]:
    """Every world, budget and horizon, by such a name; apart what is played in leaps."""
    found = {}
    for world, environment in worlds().items():
        for budget in (*BUDGETS, NonPrivate()):
            for rounds in HORIZONS[scale]:
                every = policies(budget)
                if not isinstance(budget, NonPrivate):
                    every[RECOMMENDED] = recommended(environment, budget, rounds)
                problem = environment.problem(rounds)
                for leaps in (False, True):
                    them = {x: one for x, one in every.items() if policy_can_leap(one, problem) == leaps}
                    if them:
                        found[name_of(world, budget, rounds, leaps=leaps)] = Simulation(
                            policies=them,
                            environment=environment,
                            rounds=rounds,
                            runs=(LEAPING_RUNS if leaps else RUNS)[scale],
                            points=10,
                            leaps=leaps,
                        )
    return found


def name_of(world: str, budget: Budget, rounds: int, *, leaps: bool) -> str:
    """Of a simulation."""
    return f"{world}, {budget}, {rounds}" + (", in leaps" if leaps else "")


def trace_of(traces: Mapping[str, Trace], world: str, budget: Budget, rounds: int, policy: str) -> Trace:
    """The one of two that a policy is in."""
    found = (traces.get(name_of(world, budget, rounds, leaps=leaps)) for leaps in (False, True))
    return next(trace for trace in found if trace is not None and policy in trace.policies)


def regrets(
    traces: Mapping[str, Trace], budget: Budget, rounds: int, policy: str
) -> list[NDArray[np.float64]]:
    """The regret of each run, for each world."""
    return [trace_of(traces, world, budget, rounds, policy).regret(policy)[:, -1] for world in worlds()]


def worst_of(runs: NDArray[np.float64], size: int) -> float:
    """The worst of so many runs, on average over as many groups of them as there are."""
    groups = runs[: runs.size // size * size].reshape(-1, size)
    return float(groups.max(axis=1).mean())


def kept(
    traces: Mapping[str, Trace], budget: Budget, rounds: int, policy: str, *, shrunk: bool
) -> float:
    """The share of the best item's reward that a policy keeps, on average over worlds of one sort."""
    shares = [
        trace_of(traces, world, budget, rounds, policy).reward_kept(policy).mean()
        for world in worlds()
        if is_shrunk(world) == shrunk
    ]
    return float(np.mean(shares))


def kept_by_uniform(*, shrunk: bool) -> float:
    """The same of items at random."""
    shares = [
        1.0 - world.uniform_regret() / max(world.arm_means())
        for name, world in worlds().items()
        if is_shrunk(name) == shrunk
    ]
    return float(np.mean(shares))


def best(traces: Mapping[str, Trace], budget: Budget, rounds: int, *, shrunk: bool) -> tuple[str, float]:
    """The policy that keeps most at a budget, and how much."""
    shares = {name: kept(traces, budget, rounds, name, shrunk=shrunk) for name in policies(budget)}
    name = max(shares, key=lambda one: shares[one])
    return name, shares[name]
