"""How much the best policy keeps at each budget, by horizon."""

from collections.abc import Mapping
from typing import Any, ClassVar

from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.obd import setting
from dpbandits.experiments.obd.budgets import SORTS, Budgets, percent
from dpbandits.privacy.budgets import Budget, NonPrivate, PureDP
from dpbandits.reports.figures import INK, legend_below, light_axes, line_style, new_figure
from dpbandits.simulation import Trace
from dpbandits.wording import counted


class Horizons(Figure):
    """Privacy is paid once: it costs less where there are more people to learn from."""

    name: ClassVar[str] = "obd-horizons"
    title: ClassVar[str] = "Reward kept at real click rates, by the number of rounds"
    paper: ClassVar[str] = setting.PAPER
    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (Budgets.notes[0], "The worlds are those of obd-budgets.")

    def missing(self) -> str | None:
        """The data."""
        return setting.missing()

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        horizons = ", ".join(f"{rounds:,}" for rounds in setting.HORIZONS[scale])
        return f"T = {horizons}; {setting.worlds_and_runs(scale)}"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Those of the other figure."""
        return setting.simulations(scale)

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """Who is best, and how much it keeps."""
        found = []
        for shrunk, sort in SORTS.items():
            for rounds in setting.HORIZONS[scale]:
                row: dict[str, Any] = {"worlds": sort, "rounds": rounds}
                for budget in (*setting.BUDGETS, NonPrivate()):
                    name, share = setting.best(traces, budget, rounds, shrunk=shrunk)
                    row[str(budget)] = f"{percent(share)} ({name})"
                found.append(row | {"uniform play": percent(setting.kept_by_uniform(shrunk=shrunk))})
        return found

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each sort of world."""
        figure, panels = new_figure(2, width=4.6, height=4.2, sharey=True)
        horizons = setting.HORIZONS[scale]
        for axes, (shrunk, sort) in zip(panels, SORTS.items(), strict=True):
            for index, budget in enumerate(setting.BUDGETS):
                shares = self._shares(traces, budget, horizons, shrunk=shrunk)
                axes.plot(horizons, shares, marker="o", label=f"{budget}, the best", **line_style(index))
            free = self._shares(traces, NonPrivate(), horizons, shrunk=shrunk)
            axes.plot(horizons, free, marker="o", color=INK, label="without privacy, the best")
            uniform = setting.kept_by_uniform(shrunk=shrunk)
            axes.axhline(uniform, color=INK, linestyle=":", label="uniform play")
            axes.set_xscale("log")
            axes.set_xticks(list(horizons), [f"{rounds:,}" for rounds in horizons])
            axes.minorticks_off()
            axes.set_ylim(top=1.0)
            axes.set_xlabel("rounds")
            axes.set_title(sort, fontsize="medium")
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")
            light_axes(axes)
        panels[0].set_ylabel("reward kept, as a share of the best item's")
        legend_below(figure)
        return figure

    @staticmethod
    def _shares(
        traces: Mapping[str, Trace], budget: Budget, horizons: tuple[int, ...], *, shrunk: bool
    ) -> list[float]:
        return [setting.best(traces, budget, rounds, shrunk=shrunk)[1] for rounds in horizons]

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """What we expected before any of this was played."""
        horizons, found = setting.HORIZONS[scale], []
        for epsilon in (0.1, 1.0):
            first, *_, last = self._costs(traces, PureDP(epsilon), horizons)
            found.append(
                Claim(
                    paper=f"As logged, what ε = {epsilon:g} costs falls with the number of rounds",
                    measured=f"{percent(first)} of the best reward at {horizons[0]:,} rounds, "
                    f"{percent(last)} at {horizons[-1]:,}",
                    holds=last < first,
                )
            )
        return [*found, self._little(traces, horizons), self._replay()]

    @staticmethod
    def _costs(traces: Mapping[str, Trace], budget: Budget, horizons: tuple[int, ...]) -> list[float]:
        free = Horizons._shares(traces, NonPrivate(), horizons, shrunk=False)
        paid = Horizons._shares(traces, budget, horizons, shrunk=False)
        return [one - other for one, other in zip(free, paid, strict=True)]

    @staticmethod
    def _little(traces: Mapping[str, Trace], horizons: tuple[int, ...]) -> Claim:
        """With rates that are hardly different there is little to lose, and little to learn."""
        free = setting.best(traces, NonPrivate(), horizons[0], shrunk=True)[1]
        uniform = setting.kept_by_uniform(shrunk=True)
        gained = (free - uniform) / (1.0 - uniform)
        return Claim(
            paper=f"Shrunk, {horizons[0]:,} rounds are too few to learn from even without privacy: less "
            "than a quarter of what there is to gain over uniform play is gained",
            measured=f"{percent(gained)}: {percent(free)} is kept, {percent(uniform)} by uniform play",
            holds=gained < 0.25,
        )

    @staticmethod
    def _replay() -> Claim:
        """Without assuming anything of rates, but with one row in as many as there are items."""
        found = setting.replays()
        clicks = {name: counted(int(one.rewards.sum()), "click") for name, one in found.items()}
        said = [f"{one.rounds:,} rounds, {clicks[name]} ({name})" for name, one in found.items()]
        return Claim(
            paper="The log is long enough to replay a policy on it by rejection: 10,000 rounds match in "
            "each campaign",
            measured=f"noise-aware-imed at ε = 1: {'; '.join(said)}",
            holds=all(one.rounds >= 10_000 for one in found.values()),
        )
