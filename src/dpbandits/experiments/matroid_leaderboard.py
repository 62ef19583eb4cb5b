"""Every policy for matroids at equal privacy, on matroids of every class: who is best, by how much."""

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.leaderboard import (
    ABOUT_LIMITS,
    geometric_mean,
    limit_at,
    policies_for,
    with_worst,
)
from dpbandits.policies import Policy
from dpbandits.policies.matroid import MatroidThompson
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.problems import (
    GraphicMatroid,
    LaminarMatroid,
    PartitionMatroid,
    TransversalMatroid,
    UniformMatroid,
)
from dpbandits.recommend import recommend
from dpbandits.reports.dots import Panel, dot_chart
from dpbandits.reports.tables import Ratio
from dpbandits.simulation import Trace
from dpbandits.worlds import MatroidArms


def _instances() -> dict[str, MatroidArms]:
    """A seed makes each what it is; means are rounded so that it is the same everywhere."""
    rng = np.random.default_rng(1)

    def means(low: float, high: float, items: int) -> tuple[float, ...]:
        return tuple(float(mean) for mean in rng.uniform(low, high, items).round(3))

    halls = tuple(tuple(range(30 * k, 30 * k + 30)) for k in range(4))
    shelves = tuple(tuple(range(10 * k, 10 * k + 10)) for k in range(12))
    places = tuple(tuple(int(x) for x in sorted(rng.choice(8, 2, replace=False))) for _ in range(24))
    edges = tuple(itertools.combinations(range(8), 2))
    return {
        "Table 2": TABLE_2,
        "graphic K8": MatroidArms(GraphicMatroid(edges), means(0.1, 0.95, 28)),
        "partition 10 of 50": MatroidArms(
            PartitionMatroid(tuple(i // 5 for i in range(50)), (1,) * 10), means(0.1, 0.6, 50)
        ),
        "transversal 8 of 24": MatroidArms(TransversalMatroid(places), means(0.0, 1.0, 24)),
        "clicks 10 of 60": MatroidArms(
            UniformMatroid(60, 10), tuple(float(x) for x in rng.beta(1, 15, 60).round(3))
        ),
        "laminar 16 of 120": MatroidArms(
            LaminarMatroid(120, halls + shelves, (4,) * 4 + (2,) * 12), means(0.2, 0.8, 120)
        ),
    }


INSTANCES = _instances()
BUDGETS: tuple[Budget, ...] = (PureDP(0.5), PureDP(2.0), PureDP(10.0), GaussianDP(1.0))
_ROUNDS = 20_000
_OPEN = "matroid-ucb"  # without privacy, to compare with


def competitors(budget: Budget) -> dict[str, Policy]:
    """Every policy for matroids that accepts the budget; without one, both posteriors of CTS."""
    found = policies_for(TABLE_2.problem(_ROUNDS), budget)
    if isinstance(budget, NonPrivate):
        found["matroid-thompson:prior=beta"] = MatroidThompson(prior="beta")
    return found


class MatroidLeaderboard(Figure):
    """The leaderboard."""

    name: ClassVar[str] = "matroid-leaderboard"
    title: ClassVar[str] = "Loss per round of every policy for matroids at equal privacy"
    paper: ClassVar[str] = "dpbandits"
    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (
        "All guarantees are for replacing one round's rewards, with a trusted server. Numbers are what "
        "is lost per round against the best basis: mean ± standard error (worst run).",
        "Times limit is a geometric mean over the instances. " + ABOUT_LIMITS,
        "Conjectured by Chandak, Hu & Hegde for ε-DP, and not proved: regret of order L ln(n)/Δ + "
        "LK ln(n)/ε, for L items and bases of K. It has no constants, so nothing is held to it here.",
    )
    _RUNS: ClassVar = {Scale.quick: 4, Scale.paper: 40}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {_ROUNDS:,}, {self._RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Each instance at each budget, and without."""
        return {
            f"{instance}, {budget}": Simulation(
                policies=competitors(budget),
                environment=world,
                rounds=_ROUNDS,
                runs=self._RUNS[scale],
                points=4,
            )
            for instance, world in INSTANCES.items()
            for budget in (*BUDGETS, NonPrivate())
        }

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """By budget and policy: the loss on each instance."""
        limits = {
            (i, budget): limit_at(world, budget, _ROUNDS)
            for i, world in INSTANCES.items()
            for budget in (*BUDGETS, NonPrivate())
        }
        return [
            {
                "guarantee": str(budget),
                "policy": policy,
                "times limit": Ratio(
                    geometric_mean(
                        [
                            _ROUNDS * _mean(traces[f"{i}, {budget}"], policy) / limit
                            for i in INSTANCES
                            if (limit := limits[i, budget])
                        ]
                    )
                ),
            }
            | {i: with_worst(_loss(traces[f"{i}, {budget}"], policy), ".4f") for i in INSTANCES}
            for budget in (*BUDGETS, NonPrivate())
            for policy in competitors(budget)
        ]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Mean loss, a panel for each instance: above at ε = 2, below at μ = 1."""
        shown = (PureDP(2.0), GaussianDP(1.0))
        return dot_chart(
            [[_panel(traces, instance, budget) for instance in INSTANCES] for budget in shown],
            f"loss per round over n = {_ROUNDS:,}; hollow: not private",
            columns=3,
            width=3.4,
            bold={recommend(TABLE_2.problem(_ROUNDS), budget).policy.name() for budget in shown},
        )

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """What the recommended policy is held to on every instance."""
        found = []
        for budget in BUDGETS:
            ratios, worst = {}, {}
            for instance, world in INSTANCES.items():
                trace = traces[f"{instance}, {budget}"]
                mine = recommend(world.problem(_ROUNDS), budget).policy.name()
                rival = min(_mean(trace, x) for x in trace.policies if x != mine)
                ratios[instance] = rival / _mean(trace, mine)
                worst[instance] = rival / (float(trace.regret(mine)[:, -1].max()) / _ROUNDS)
            found.append(
                Claim(
                    paper=f"At {budget} even the worst run of the recommended policy loses less than "
                    "any other policy on average",
                    measured=", ".join(
                        f"{i}: {ratios[i]:.1f} times less ({worst[i]:.1f} in the worst run)"
                        for i in ratios
                    ),
                    holds=min(worst.values()) > 1.0,
                )
            )
        return found


def _panel(traces: Mapping[str, Trace], instance: str, budget: Budget) -> Panel:
    """The policies of a budget, and one without."""
    trace, open_trace = (traces[f"{instance}, {one}"] for one in (budget, NonPrivate()))
    limit = limit_at(INSTANCES[instance], budget, _ROUNDS)
    return Panel(
        f"{instance}, {budget}",
        {x: _loss(trace, x) for x in competitors(budget)} | {_OPEN: _loss(open_trace, _OPEN)},
        None if limit is None else limit / _ROUNDS,
    )


def _mean(trace: Trace, policy: str) -> float:
    return float(trace.regret(policy)[:, -1].mean()) / _ROUNDS


def _loss(trace: Trace, policy: str) -> NDArray[np.float64]:
    """Per round, of each run."""
    return trace.regret(policy)[:, -1] / _ROUNDS


FIGURES: tuple[Figure, ...] = (MatroidLeaderboard(),)
