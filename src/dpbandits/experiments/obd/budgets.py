"""The reward that is kept at each budget, by policy, at the longest horizon."""

from collections.abc import Mapping
from typing import Any, ClassVar

from dpbandits.experiments.evidence import ratio_across
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.leaderboard import geometric_mean
from dpbandits.experiments.obd import setting
from dpbandits.privacy.budgets import GaussianDP, NonPrivate, PureDP
from dpbandits.reports.figures import INK, legend_below, light_axes, new_figure
from dpbandits.reports.styles import styles
from dpbandits.simulation import Trace

_SHOWN = 6  # policies with a line of their own
SORTS = {False: "as logged (3 campaigns × 3 positions)", True: "shrunk (3 campaigns)"}


def percent(share: float) -> str:
    """To a tenth."""
    return f"{100 * share:.1f} %"


class Budgets(Figure):
    """Every policy for arms at four budgets, on real click rates."""

    name: ClassVar[str] = "obd-budgets"
    title: ClassVar[str] = "Reward kept at real click rates, by budget and policy"
    paper: ClassVar[str] = setting.PAPER
    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (
        setting.LICENCE,
        "Empirical worlds: clicks are drawn at an item's rate in the log, independently. As logged, a "
        "world is a campaign at a position, with 40 to 100 rows an item and about 14 clicks in all: "
        "the best of many items looks far better than it can be, so these worlds are easier than the "
        f"truth. Shrunk, a world is a campaign with {setting.PRIOR_ROWS:,} rows of its average item "
        "added to each item: a guess at how much items differ, since the sample cannot tell.",
        "Reward kept: expected clicks as a share of those of always showing the best item, on average "
        "over worlds. All guarantees are for replacing one reward, with a trusted server. What is "
        "recommended is told the number of items and of rounds, and that about one row in 200 is a "
        "click: SequentialHalving where rounds are few, NoiseAwareIMED otherwise. Policies that play "
        "batches of one arm are played in leaps, with more runs.",
    )

    def missing(self) -> str | None:
        """The data."""
        return setting.missing()

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"T = {setting.HORIZONS[scale][-1]:,}, {setting.worlds_and_runs(scale)}"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All worlds, budgets and horizons, which the other figure has too."""
        return setting.simulations(scale)

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """By budget and policy, at each horizon, as logged and shrunk."""
        found = []
        for budget in (*setting.BUDGETS, NonPrivate()):
            for policy in setting.names(budget):
                row: dict[str, Any] = {"guarantee": str(budget), "policy": policy}
                for shrunk, sort in ((False, "logged"), (True, "shrunk")):
                    for rounds in setting.HORIZONS[scale]:
                        share = setting.kept(traces, budget, rounds, policy, shrunk=shrunk)
                        row[f"{sort}, T = {rounds:,}"] = percent(share)
                found.append(row)
        uniform = {
            f"{sort}, T = {rounds:,}": percent(setting.kept_by_uniform(shrunk=shrunk))
            for shrunk, sort in ((False, "logged"), (True, "shrunk"))
            for rounds in setting.HORIZONS[scale]
        }
        return [*found, {"guarantee": "", "policy": "uniform play"} | uniform]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each sort of world; the best policies, the others in grey."""
        figure, panels = new_figure(2, width=5.2, height=4.6, sharey=True)
        rounds = setting.HORIZONS[scale][-1]
        places = {str(budget): place for place, budget in enumerate(setting.BUDGETS)}
        order = self._order(traces, rounds)
        looks = styles(order[:_SHOWN])
        for axes, (shrunk, sort) in zip(panels, SORTS.items(), strict=True):
            for index, policy in enumerate(order):
                style: dict[str, Any] = {
                    "color": "#9aa5b1",
                    "linewidth": 0.8,
                    "zorder": 1,
                    "marker": "o",
                }
                style |= {"label": "others, in the table" if index == _SHOWN else "_"}
                if index < _SHOWN:
                    style = looks[policy] | {"label": policy}
                for kind in (PureDP, GaussianDP):  # no line joins the two
                    held = [one for one in setting.BUDGETS if type(one) is kind]
                    held = [one for one in held if policy in setting.policies(one)]
                    shares = [setting.kept(traces, one, rounds, policy, shrunk=shrunk) for one in held]
                    axes.plot([places[str(one)] for one in held], shares, ms=4, **style)
                    style["label"] = "_"
            free = setting.best(traces, NonPrivate(), rounds, shrunk=shrunk)[1]
            axes.axhline(free, color=INK, label="without privacy, the best")
            uniform = setting.kept_by_uniform(shrunk=shrunk)
            axes.axhline(uniform, color=INK, linestyle=":", label="uniform play")
            axes.set_xticks(list(places.values()), list(places))
            axes.set_title(f"{sort}, T = {rounds:,}", fontsize="medium")
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")
            axes.set_ylim(top=1.0)
            light_axes(axes)
        panels[0].set_ylabel("reward kept, as a share of the best item's")
        legend_below(figure)
        return figure

    @staticmethod
    def _order(traces: Mapping[str, Trace], rounds: int) -> list[str]:
        """Policies by what they keep at ε = 1 as logged; those without it last."""
        names = list(dict.fromkeys(name for held in setting.BUDGETS for name in setting.policies(held)))
        with_it = setting.policies(PureDP(1.0))
        shares = {
            name: setting.kept(traces, PureDP(1.0), rounds, name, shrunk=False) for name in with_it
        }
        return sorted(names, key=lambda name: -shares.get(name, -1.0))

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """What we expected before any of this was played."""
        rounds = setting.HORIZONS[scale][-1]
        return [
            self._cost(traces, rounds, 4.0, 0.05),
            self._cost(traces, rounds, 1.0, 0.1),
            self._gaussian(traces, rounds),
            *self._recommended(traces, scale),
            self._spread(),
        ]

    @staticmethod
    def _cost(traces: Mapping[str, Trace], rounds: int, epsilon: float, most: float) -> Claim:
        name, share = setting.best(traces, PureDP(epsilon), rounds, shrunk=False)
        _, free = setting.best(traces, NonPrivate(), rounds, shrunk=False)
        return Claim(
            paper=f"As logged, ε = {epsilon:g} costs at most {percent(most)} of the best reward",
            measured=f"{percent(free - share)}: {name} keeps {percent(share)}, and without privacy "
            f"{percent(free)} is kept",
            holds=free - share <= most,
        )

    @staticmethod
    def _gaussian(traces: Mapping[str, Trace], rounds: int) -> Claim:
        mine = setting.best(traces, GaussianDP(1.0), rounds, shrunk=False)[1]
        pure = setting.best(traces, PureDP(1.0), rounds, shrunk=False)[1]
        return Claim(
            paper="As logged, μ = 1 keeps more than ε = 1",
            measured=f"{percent(mine)} and {percent(pure)}",
            holds=mine > pure,
        )

    @staticmethod
    def _recommended(traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Against whichever other policy is best at the budget and horizon, mean and worst run."""
        means, worst, size = [], [], setting.RUNS[scale]
        for budget in setting.BUDGETS:
            for rounds in setting.HORIZONS[scale]:
                mine = setting.regrets(traces, budget, rounds, setting.RECOMMENDED)
                others = {
                    name: setting.regrets(traces, budget, rounds, name)
                    for name in setting.others(budget, rounds)
                }
                found = {name: ratio_across(mine, theirs) for name, theirs in others.items()}
                name = max(found, key=lambda one: found[one].value)
                means.append((found[name], f"{name}, {budget}, T = {rounds:,}"))
                bad = {
                    name: geometric_mean(
                        [
                            setting.worst_of(a, size) / setting.worst_of(b, size)
                            for a, b in zip(mine, theirs, strict=True)
                        ]
                    )
                    for name, theirs in others.items()
                }
                name = max(bad, key=lambda one: bad[one])
                worst.append((bad[name], f"{name}, {budget}, T = {rounds:,}"))
        return [
            Claim(
                paper="What is recommended is the best private policy at every budget and horizon: its "
                "regret over that of the best other, in the geometric mean over worlds",
                measured="; ".join(f"{ratio:.2f} ({said})" for ratio, said in means),
                holds=all(ratio.value <= 1.0 for ratio, _ in means),
            ),
            Claim(
                paper=f"The worst of {size} runs is the best too: that of what is recommended over that "
                "of the best other in this respect",
                measured="; ".join(f"{ratio:.2f} ({said})" for ratio, said in worst),
                holds=all(ratio <= 1.0 for ratio, _ in worst),
            ),
        ]

    @staticmethod
    def _spread() -> Claim:
        found = {name: world.chance_of_spread() for name, world in setting.worlds().items()}
        chances = [chance for chance in found.values() if chance is not None]
        return Claim(
            paper="The sample shows that items differ in their click rates (χ² test at 1 %)",
            measured=f"in {sum(chance < 0.01 for chance in chances)} of {len(chances)} worlds; the "
            f"smallest chance of such a spread among equal items is {min(chances):.2f}",
            holds=all(chance < 0.01 for chance in chances),
        )
