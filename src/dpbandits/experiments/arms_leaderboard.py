"""Every policy for arms at equal privacy, on eight instances: who is best, and by how much."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.leaderboard import (
    ABOUT_LIMITS,
    geometric_mean,
    limit_at,
    mean_and_error,
    policies_for,
    with_worst,
)
from dpbandits.policies import Policy
from dpbandits.policies.arms import ModifiedThompson
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.privacy.guarantees import Trust, Unit
from dpbandits.problems import Arms
from dpbandits.recommend import recommend
from dpbandits.reports.dots import Panel, dot_chart
from dpbandits.reports.tables import Ratio
from dpbandits.simulation import Trace
from dpbandits.worlds import BernoulliArms, Environment, TruncatedExponentialArms

INSTANCES: dict[str, Environment] = {
    "5 arms": BernoulliArms((0.75, 0.625, 0.5, 0.375, 0.25)),
    "gap .02": BernoulliArms((0.51, 0.49)),
    "gap .2": BernoulliArms((0.6, 0.4)),
    "20 arms": BernoulliArms((0.55, *[0.5] * 19)),
    "8 arms": BernoulliArms((0.9, *[0.8] * 7)),
    "clicks": BernoulliArms((0.05, 0.02, 0.02, 0.01)),
    "exponential": TruncatedExponentialArms((0.1, 1.0, 2.0, 5.0, 10.0)),
    "100 arms": BernoulliArms(tuple((i + 0.5) / 100 for i in range(100))),
}
BUDGETS: tuple[Budget, ...] = (
    *(PureDP(epsilon) for epsilon in (0.1, 0.25, 1.0, 4.887)),
    *(GaussianDP(mu) for mu in (0.25, 1.0, 2.0, 5.0)),
)
ROUNDS = 100_000
_MANY, _SEEN = 2000, 1000  # runs of the recommended policy, and those on which it was tuned


def competitors(budget: Budget) -> dict[str, Policy]:
    """Every central policy for arms that accepts the budget, at its defaults."""
    problem, found = Arms(5, horizon=ROUNDS), {}
    for name, policy in policies_for(problem, budget).items():
        guarantee = policy.guarantee(problem)
        # Unlike guarantees do not compare: another unit or trust is another table.
        if (guarantee.unit, guarantee.trust) == (Unit.REWARD, Trust.CENTRAL):
            found[name] = policy
    return found


class ArmsLeaderboard(Figure):
    """The leaderboard, and what the recommended policy must reach."""

    name: ClassVar[str] = "arms-leaderboard"
    title: ClassVar[str] = "Regret of every policy for arms at equal privacy"
    paper: ClassVar[str] = "dpbandits"
    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (
        "All guarantees are for replacing one reward, with a trusted server. Policies with one Laplace "
        "draw per reward enter the μ tables at the ε = −2 ln(2Φ(−μ/2)) that meets μ-GDP. Policies that "
        "need the horizon are given it. Numbers are mean ± standard error (worst run) [the same policy "
        "without privacy]. Worst runs matter: a mean can hide a run that lost the best arm.",
        "Times best, twin and limit are geometric means over the instances. " + ABOUT_LIMITS,
    )
    _RUNS: ClassVar = {Scale.quick: 20, Scale.paper: 200}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"T = 10⁵, {self._RUNS[scale]} runs; {_MANY} for the recommended policy"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Each instance at each budget, without privacy, and many runs on five arms."""
        found = {
            f"{instance}, {budget}": self._simulation(instance, competitors(budget), self._RUNS[scale])
            for instance in INSTANCES
            for budget in (*BUDGETS, NonPrivate())
        }
        problem = Arms(5, horizon=ROUNDS)
        many = {str(budget): recommend(problem, budget).policy for budget in BUDGETS}
        found["many runs"] = self._simulation("5 arms", many, _MANY)
        return found

    @staticmethod
    def _simulation(instance: str, policies: Mapping[str, Policy], runs: int) -> Simulation:
        return Simulation(
            policies=policies, environment=INSTANCES[instance], rounds=ROUNDS, runs=runs, points=10
        )

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """By budget and policy: regret on each instance, mean ± standard error (worst run)."""
        found = []
        for budget in BUDGETS:
            means = {i: _means(traces[f"{i}, {budget}"]) for i in INSTANCES}
            limits = {i: limit_at(world, budget, ROUNDS) for i, world in INSTANCES.items()}
            for policy in competitors(budget):
                mine = {i: means[i][policy] for i in INSTANCES}
                times = {
                    "best": [mine[i] / max(1.0, min(means[i].values())) for i in INSTANCES],
                    "twin": [mine[i] / twin for i, twin in _twins(traces, policy).items()],
                    "limit": [mine[i] / limit for i, limit in limits.items() if limit],
                }
                row: dict[str, Any] = {"guarantee": str(budget), "policy": policy}
                for whose, ratios in times.items():
                    row[f"times {whose}"] = Ratio(geometric_mean(ratios)) if ratios else None
                for instance in INSTANCES:
                    row[instance] = _shown(traces, instance, budget, policy)
                found.append(row)
        return sorted(
            found, key=lambda row: ([str(b) for b in BUDGETS].index(row["guarantee"]), row["times best"])
        )

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Mean regret, a panel for each instance: above at ε = 1, below at μ = 1."""
        shown = (PureDP(1.0), GaussianDP(1.0))
        return dot_chart(
            [
                [
                    Panel(
                        f"{instance}, {budget}",
                        {
                            x: traces[f"{instance}, {budget}"].regret(x)[:, -1]
                            for x in competitors(budget)
                        },
                        limit_at(world, budget, ROUNDS),
                    )
                    for instance, world in INSTANCES.items()
                ]
                for budget in shown
            ],
            "regret after 10⁵ rounds",
            columns=4,
            bold={recommend(Arms(5), budget).policy.name() for budget in shown},
        )

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """What the recommended policy is held to, on five arms."""
        many, found = traces["many runs"], []
        goals = {
            GaussianDP(1.0): 78,
            GaussianDP(2.0): 66,
            GaussianDP(5.0): 62,
            PureDP(1.0): 98,
            PureDP(0.1): 600,
        }
        for budget, goal in goals.items():
            final = many.regret(str(budget))[:, -1]
            found.append(
                Claim(
                    paper=f"Recommended policy, 5 arms, {budget}: mean regret at most {goal}",
                    measured=f"{mean_and_error(final, '.1f')}, "
                    f"worst of {final.size} runs {final.max():.0f}",
                    holds=bool(final.mean() <= goal),
                )
            )
        found.append(self._tails(many))
        found.append(self._near_best(traces, scale))
        for budget, rival, factor in (
            (GaussianDP(1.0), ModifiedThompson.name(), 50),
            (GaussianDP(2.0), ModifiedThompson.name(), 35),
            (GaussianDP(5.0), ModifiedThompson.name(), 17),
            (PureDP(1.0), "successive-elimination", 25),
            (PureDP(1.0), "lazy-ucb", 15),
        ):
            theirs = traces[f"5 arms, {budget}"].regret(rival)[:, -1].mean()
            times = float(theirs / many.regret(str(budget))[:, -1].mean())
            found.append(
                Claim(
                    paper=f"At {budget} it has {factor} times less regret than {rival}",
                    measured=f"{rival} {theirs:,.0f}: {times:.1f} times",
                    holds=times >= factor,
                )
            )
        return found

    def _near_best(self, traces: Mapping[str, Trace], scale: Scale) -> Claim:
        rows = self.rows(traces, scale)
        times = {}
        for budget in BUDGETS:
            by = {row["policy"]: row["times best"] for row in rows if row["guarantee"] == str(budget)}
            mine = by.pop(recommend(Arms(5), budget).policy.name())
            times[str(budget)] = mine / min(by.values())
        return Claim(
            paper="Over the instances (geometric mean) no policy is over a tenth better at any budget",
            measured=", ".join(f"{value:.2f} ({budget})" for budget, value in times.items())
            + ": its regret over that of the best other",
            holds=max(times.values()) <= 1.1,
        )

    @staticmethod
    def _tails(many: Trace) -> Claim:
        """Its first generation was tuned on the first runs, so the other ones decide."""
        worst = {
            mu: [
                float(part.max()) for part in np.split(many.regret(str(GaussianDP(mu)))[:, -1], [_SEEN])
            ]
            for mu in (1.0, 2.0, 5.0)
        }
        seen, fresh = zip(*worst.values(), strict=True)
        return Claim(
            paper="Its worst run at μ = 1, 2, 5 is at most 250",
            measured=f"{', '.join(f'{value:.0f}' for value in fresh)} in {_MANY - _SEEN} runs; "
            f"{', '.join(f'{value:.0f}' for value in seen)} in those on which it was tuned",
            holds=max(fresh) <= 250.0,
        )


def _means(trace: Trace) -> dict[str, float]:
    return {policy: float(trace.regret(policy)[:, -1].mean()) for policy in trace.policies}


def _twins(traces: Mapping[str, Trace], policy: str) -> dict[str, float]:
    """By instance, the mean regret of the same policy without privacy, if it can be played so."""
    found = {i: _means(traces[f"{i}, {NonPrivate()}"]) for i in INSTANCES}
    return {i: means[policy] for i, means in found.items() if means.get(policy, 0.0) > 0.0}


def _shown(traces: Mapping[str, Trace], instance: str, budget: Budget, policy: str) -> str:
    text = with_worst(traces[f"{instance}, {budget}"].regret(policy)[:, -1])
    open_trace = traces[f"{instance}, {NonPrivate()}"]
    if policy in open_trace.policies:
        text += f" [{open_trace.regret(policy)[:, -1].mean():,.0f}]"
    return text


FIGURES: tuple[Figure, ...] = (ArmsLeaderboard(),)
