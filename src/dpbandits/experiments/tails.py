"""The rare bad runs of the recommended policies: very many runs, on a GPU, or of arms in leaps.

`python benchmarks/gpu.py --tails --out docs` plays them; `make docs` puts what the files hold into
docs/reproduction.md, each below the leaderboard of its family. Defaults were tuned on the instances that
are not held out (and on others like them); the seed is another than that of any tuning and of the
leaderboards. The instances called drawn are random, from a seed that was used for nothing else; two of
them are not held out, since what they showed led to the last change of the guard.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.arms_leaderboard import INSTANCES, ROUNDS, ArmsLeaderboard
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.experiments.matroid_leaderboard import MatroidLeaderboard
from dpbandits.experiments.stamps import OLDER, stamp_of
from dpbandits.limits import imed_level, regret_without_disasters
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget, GaussianDP, PureDP
from dpbandits.problems import (
    GraphicMatroid,
    LinearMatroid,
    PartitionMatroid,
    TransversalMatroid,
    UniformMatroid,
)
from dpbandits.recommend import recommend
from dpbandits.reports.tables import Ratio, Row, markdown_table
from dpbandits.simulation import simulate
from dpbandits.simulation.leaps import policy_can_leap, world_can_leap
from dpbandits.simulation.replicate import Device
from dpbandits.wording import ROUNDING, counted
from dpbandits.worlds import BernoulliArms, Environment, MatroidArms
from dpbandits.worlds.arms import ArmsEnvironment

_PERCENTILES = 99.0, 99.9, 99.99
_MANY = 10.0  # times the mean: a run that is worse is a disaster
_SEED = 1
_SHARE, _GAP = 2e-6, 0.05  # of runs that may be lost, where the best arm leads by so much
_LEAST = "least mean without disasters"
_LEVEL = "times IMED's level"
_LOST = "lost the best arm"


class Instance(NamedTuple):
    """A world, and how often it is played; `held_out` if nothing was tuned on it."""

    environment: Environment
    runs: int
    held_out: bool = False


class Tails(NamedTuple):
    """What is measured of one family."""

    name: str
    title: str
    after: str  # the leaderboard below which it is shown
    instances: Mapping[str, Instance]
    budgets: tuple[Budget, ...]
    settings: Mapping[str, Any] = {}  # of the recommended policy, in place of its defaults

    def file(self) -> str:
        """The name of the file that holds what was measured."""
        return f"{self.name.replace('-', '_')}.json"

    def leaps(self) -> bool:
        """Whether its instances can be played in leaps, at least by some policies."""
        return any(world_can_leap(one.environment) for one in self.instances.values())


_LOOKED_AT = 2, 5  # of those drawn
_SAID = 12  # different means that are listed one by one
_MILLION, _TENTH, _FEW = 1_000_000, 100_000, 10_000
_ROUND_BY_ROUND = "exponential", "100 arms"  # at some budgets: fewer, where there is no GPU


def _drawn() -> dict[str, Instance]:
    """Five instances of 2 to 8 arms; the best leads by 0.05 to 0.12, the others are anywhere below."""
    chance, found = np.random.default_rng(2026), {}
    for number, arms in enumerate((2, 3, 4, 6, 8), 1):
        best = chance.uniform(0.15, 0.95)
        second = best - chance.uniform(0.05, 0.12)
        means = (best, second, *chance.uniform(0.02, second, arms - 2))
        world = BernoulliArms(tuple(round(float(mean), 3) for mean in means))
        found[f"drawn {number}"] = Instance(world, _MILLION, number not in _LOOKED_AT)
    return found


ARMS = Tails(
    name="arms-tails",
    title="The rare bad runs of the recommended policy for arms",
    after=ArmsLeaderboard.name,
    instances={
        "5 arms": Instance(INSTANCES["5 arms"], _MILLION),
        "gap .05": Instance(BernoulliArms((0.5, 0.45)), _MILLION),
        "gap .2": Instance(INSTANCES["gap .2"], _MILLION),
        "8 arms": Instance(INSTANCES["8 arms"], _MILLION),
        "2 good, 3 bad": Instance(BernoulliArms((0.5, 0.45, 0.3, 0.3, 0.3)), _MILLION),
        "4 in steps": Instance(BernoulliArms((0.8, 0.7, 0.6, 0.5)), _MILLION, held_out=True),
        "3 low": Instance(BernoulliArms((0.35, 0.3, 0.25)), _MILLION),
        "6 low": Instance(BernoulliArms((0.45, 0.4, 0.35, 0.3, 0.25, 0.2)), _MILLION),
        "3 high": Instance(BernoulliArms((0.9, 0.8, 0.6)), _MILLION, held_out=True),
        "10 arms": Instance(
            BernoulliArms((0.7, *[0.6] * 3, *[0.5] * 3, *[0.4] * 3)), _MILLION, held_out=True
        ),
        # Of these the others trail by far and the second does not: what the guard gives up.
        "2 good, 3 far": Instance(BernoulliArms((0.4, 0.35, 0.1, 0.1, 0.1)), _TENTH),
        "2 good, 5 far": Instance(BernoulliArms((0.85, 0.8, 0.5, 0.5, 0.5, 0.4, 0.2)), _TENTH),
        **{
            name: Instance(INSTANCES[name], _FEW if name in _ROUND_BY_ROUND else _TENTH)
            for name in ("gap .02", "20 arms", "clicks", *_ROUND_BY_ROUND)
        },
    },
    budgets=(
        *(PureDP(epsilon) for epsilon in (0.1, 0.25, 1.0, 4.0)),
        *(GaussianDP(mu) for mu in (0.25, 1.0, 5.0)),
    ),
)


DRAWN = Tails(
    name="arms-tails-drawn",
    title="Rare bad runs on instances drawn at random",
    after=ArmsLeaderboard.name,
    instances=_drawn(),
    budgets=(PureDP(1.0), GaussianDP(1.0)),
)
CAUTIOUS = DRAWN._replace(
    name="arms-tails-cautious",
    title="The same with usual_lead=3",
    settings={"usual_lead": 3.0},
)


def _matroids() -> dict[str, Instance]:
    complete = tuple((one, other) for one in range(5) for other in range(one + 1, 5))
    wheel = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1))
    vectors = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1), (1, 2, 3))
    sets = ((0,), (0, 1), (1,), (1, 2), (2,), (0, 2), (2,), (0, 1, 2))
    other_sets = ((0,), (0, 1), (0,), (1,), (1, 2), (2, 3), (3,), (2,), (0, 3))
    groups = PartitionMatroid((0,) * 4 + (1,) * 4 + (2,) * 4, (1, 1, 2))
    other_groups = PartitionMatroid((0, 0, 0, 1, 1, 1, 2, 2, 2), (1, 1, 1))
    seen = {
        "3 of 7": MatroidArms(UniformMatroid(7, 3), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
        "3 of 10": MatroidArms(UniformMatroid(10, 3), tuple((i + 0.5) / 10 for i in range(10))),
        "partition": MatroidArms(
            groups, (0.5, 0.4, 0.3, 0.2, 0.8, 0.7, 0.65, 0.3, 0.3, 0.25, 0.15, 0.1)
        ),
        "graphic": MatroidArms(
            GraphicMatroid(complete), (0.9, 0.8, 0.35, 0.6, 0.5, 0.4, 0.7, 0.45, 0.2, 0.3)
        ),
        "linear, Table 2": TABLE_2,
        "transversal": MatroidArms(
            TransversalMatroid(sets), (0.3, 0.45, 0.6, 0.55, 0.2, 0.4, 0.35, 0.25)
        ),
    }
    held_out = {
        "4 of 12": MatroidArms(
            UniformMatroid(12, 4), (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.65, 0.75, 0.8)
        ),
        "partition of 9": MatroidArms(other_groups, (0.6, 0.45, 0.2, 0.35, 0.2, 0.1, 0.9, 0.8, 0.5)),
        "wheel": MatroidArms(GraphicMatroid(wheel), (0.55, 0.25, 0.7, 0.4, 0.65, 0.3, 0.5, 0.15)),
        "linear of 8": MatroidArms(LinearMatroid(vectors), (0.3, 0.55, 0.2, 0.75, 0.45, 0.6, 0.35, 0.5)),
        "transversal of 9": MatroidArms(
            TransversalMatroid(other_sets), (0.7, 0.5, 0.6, 0.3, 0.4, 0.55, 0.2, 0.45, 0.35)
        ),
    }
    return {name: Instance(one, _TENTH) for name, one in seen.items()} | {
        name: Instance(one, _TENTH, held_out=True) for name, one in held_out.items()
    }


MATROIDS = Tails(
    name="matroid-tails",
    title="The rare bad runs of the recommended policy for matroids",
    after=MatroidLeaderboard.name,
    instances=_matroids(),
    budgets=(PureDP(0.5), PureDP(2.0), PureDP(8.0), GaussianDP(1.0)),
)
ALL = ARMS, DRAWN, CAUTIOUS, MATROIDS


def tail_rows(
    tails: Tails,
    runs: int | None = None,
    rounds: int = ROUNDS,
    *,
    leaps: bool = False,
    **options: Any,
) -> Iterator[Row]:
    """One for each instance and budget, in `leaps` where its world can be played so.

    `runs` are the most of any, `options` those of `simulate`.
    """
    for name, instance in tails.instances.items():
        for budget in tails.budgets:
            environment = instance.environment
            policy = recommend(environment.problem(ROUNDS), budget).policy
            policy = dataclasses.replace(policy, **tails.settings)
            trace = simulate(
                {"it": policy},
                environment,
                rounds,
                instance.runs if runs is None else min(runs, instance.runs),
                seed=_SEED,
                points=1,
                progress=False,
                leaps=leaps and can_leap(policy, environment, rounds),
                **options,
            )
            yield {
                "instance": name,
                "policy": policy.name(),
                "held out": "yes" if instance.held_out else "",
                "guarantee": str(budget),
                **_summary(trace.regret("it")[:, -1]),
                **_lost(trace.regret("it")[:, -1], environment, rounds),
            }


def can_leap(policy: Policy, environment: Environment, rounds: int) -> bool:
    """Whether a policy can be played in leaps on an environment."""
    return world_can_leap(environment) and policy_can_leap(policy, environment.problem(rounds))


def _summary(regret: NDArray[np.float64]) -> Row:
    tails = np.percentile(regret, _PERCENTILES).tolist()
    return {
        "runs": regret.size,
        "mean regret": float(regret.mean()),
        "standard error": float(regret.std(ddof=1) / np.sqrt(regret.size)),
        **{f"{share:g} %": value for share, value in zip(_PERCENTILES, tails, strict=True)},
        "worst run": float(regret.max()),
        f"over {_MANY:g} × mean": int((regret > _MANY * regret.mean()).sum()),
    }


def _lost(regret: NDArray[np.float64], world: Environment, rounds: int) -> Row:
    """In how many runs another arm was played for so long that the best one was lost.

    Nothing is said where learning alone costs about as much.
    """
    if not isinstance(world, ArmsEnvironment):
        return {}
    best, second, *_ = sorted(world.arm_means(), reverse=True)
    much = 0.5 * (best - second) * rounds
    return {_LOST: int((regret > much).sum()) if 2.0 * regret.mean() < much else ""}


def measure_tails(
    folder: Path,
    tails: Tails,
    device: Device = "cuda",
    runs: int | None = None,
    *,
    leaps: bool = False,
    **options: Any,
) -> Path:
    """Write the file of one family, row after row, of at most so many runs."""
    from dpbandits.simulation.gpu import about_gpu

    path = folder / tails.file()
    made_by: dict[str, str] = about_gpu() if device == "cuda" else {"device": device}
    if leaps:
        made_by["device"] += ", in leaps where the policy and the rewards allow it"
    record: dict[str, Any] = {
        **made_by,
        **({} if runs is None else {"most runs": runs}),
        "rounds": ROUNDS,
        "seed": _SEED,
        "code": _code(tails),
        "rows": [],
    }
    for row in tail_rows(tails, runs, device=device, leaps=leaps, **options):
        record["rows"].append(row)
        # After each: what is measured is not lost.
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _code(tails: Tails) -> str:
    """The stamp of what is played."""
    worlds = [one.environment for one in tails.instances.values()]
    policies = [recommend(worlds[0].problem(ROUNDS), budget).policy for budget in tails.budgets]
    return stamp_of(*policies, *worlds)


def tails_section(folder: Path, tails: Tails) -> str:
    """The section of docs/reproduction.md, from the file; empty where there is none."""
    path = folder / tails.file()
    if not path.exists():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        row | _level(row, tails) | _least_mean(tails.instances[row["instance"]])
        for row in record["rows"]
    ]
    device = " ".join(record.get(name, "") for name in ("device", "gpu", "generator")).strip()
    option = " --device cpu --leaps" if "in leaps" in device else ""
    if apart := record.get("instances played in leaps"):
        device += f"; {', '.join(apart)} on a CPU, in leaps"
    option += f" --runs {record['most runs']}" if "most runs" in record else ""
    return (
        f"\n## {tails.name}: {tails.title}\n\n"
        f"dpbandits · `python benchmarks/gpu.py --tails --only {tails.name}{option} --out docs`"
        f"{'' if record.get('code') == _code(tails) else OLDER}\n\n"
        f"{_introduction(tails)}{counted(record['rounds'], 'round')} each ({device}). Nothing was tuned "
        "on the instances that are held out. The columns of percentages are percentiles of regret over "
        f"runs; then come the runs of more than {_MANY:g} times the mean regret"
        f"{_AND_LOST if _LOST in rows[0] else ''}.{_price(rows)}{_unplayed(tails, rows)}\n\n"
        f"{_means(tails)}{markdown_table(rows)}"
    )


_AND_LOST = (
    ", and those that lost the best arm: their regret is more than half of what it would be to play the "
    "second best throughout (left out where learning costs nearly as much). Where noise makes the mean "
    "large, no run may reach 10 times as much"
)


def _introduction(tails: Tails) -> str:
    """What a reader should know of lost arms."""
    if tails is not ARMS:
        return ""
    return (
        "A run can lose the best arm: a few unlucky rewards, or one draw of noise far out, make it look "
        "so bad that it is hardly tried again. From then on every round costs the gap to the next arm, "
        "in all a hundred times the mean. As this is rare it takes very many runs to see how rare. "
        "`NoiseAwareIMED(caution=…, usual_lead=…)` says what to pay against it: an arm is tried until "
        "there is evidence of about `caution`, plus the logarithm of the number of rounds, that it is "
        "not just better than the leader; that most others trail by more than `usual_lead`, in log "
        "odds, counts as evidence. More of either loses fewer best arms at a larger mean: compare "
        "arms-tails-cautious. The default saves where most arms trail by far, and loses most where the "
        "second best does not, as with the two instances called far.\n\n"
    )


def _means(tails: Tails) -> str:
    """What the arms of each instance pay on average."""
    found = []
    for name, instance in tails.instances.items():
        if isinstance(world := instance.environment, ArmsEnvironment):
            groups = groupby(sorted(world.arm_means(), reverse=True))
            parts = [(mean, len(list(same))) for mean, same in groups]
            said = [f"{mean:.3g}" + (f" ({count} ×)" if count > 1 else "") for mean, count in parts]
            if len(said) > _SAID:
                said = [*said[:3], "…", said[-1]]
            found.append(f"{name}: {', '.join(said)}")
    return f"Means of the arms. {'; '.join(found)}.\n\n" if found else ""


def _unplayed(tails: Tails, rows: list[Row]) -> str:
    """Which instances are left, wholly or at some budgets."""
    played, left = {(row["instance"], row["guarantee"]) for row in rows}, []
    for name in tails.instances:
        missing = [str(one) for one in tails.budgets if (name, str(one)) not in played]
        if missing:
            left.append(
                name if len(missing) == len(tails.budgets) else f"{name} at {', '.join(missing)}"
            )
    return f" Not played yet: {'; '.join(left)}." if left else ""


def _least_mean(instance: Instance) -> Row:
    """What a policy without disasters must lose; known of Bernoulli arms whose best leads clearly."""
    world = instance.environment
    if isinstance(world, MatroidArms):
        return {}
    least: float | str = ""
    if isinstance(world, BernoulliArms):
        means = sorted(world.arm_means(), reverse=True)
        if means[0] - means[1] > _GAP - ROUNDING:
            least = regret_without_disasters(means, _SHARE, _GAP)
    return {_LEAST: least}


def _level(row: Row, tails: Tails) -> Row:
    """The mean as a multiple of what the index of IMED alone would have cost."""
    world = tails.instances[row["instance"]].environment
    if isinstance(world, MatroidArms):
        return {}
    if not isinstance(world, BernoulliArms):
        return {_LEVEL: ""}
    held = next(budget for budget in tails.budgets if str(budget) == row["guarantee"])
    return {_LEVEL: Ratio(row["mean regret"] / imed_level(world.arm_means(), ROUNDS, held))}


def _price(rows: list[Row]) -> str:
    if not any(row.get(_LEAST) for row in rows):
        return ""
    lost = round(_SHARE * _MILLION)
    return (
        f" The {_LEAST} is no property of what was played. It is what every policy, private or not, "
        f"would lose on average if, wherever the best arm leads by {_GAP:g}, it had most of the rounds "
        f"in all but {lost} of 10⁶ runs ([a bound](limits.md#regret_without_disasters)). "
        "[IMED's level](limits.md#imed_level) is no bound: what its index alone would cost."
    )
