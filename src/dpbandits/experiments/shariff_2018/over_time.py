"""Figure 4: the private variants over time."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from dpbandits.experiments.evidence import (
    Interval,
    as_power_of_ten,
    mean_of,
    ratio_of,
    ratio_of_ratios,
    speaks_from,
)
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.linear_bounds import gap_regret_bound, regret_bound
from dpbandits.experiments.shariff_2018.lower_bounds import lower_bound_claims
from dpbandits.experiments.shariff_2018.setting import (
    PAPER,
    PRIVACY,
    READINGS,
    Array,
    few_ticks,
)
from dpbandits.policies import Policy
from dpbandits.policies.linear import LinUCB, TreeLinUCB
from dpbandits.policies.linear.tree_lin_ucb import GAMMA, HIGH, LOW
from dpbandits.reports.figures import SHADED, draw_curves, new_figure
from dpbandits.simulation import Trace
from dpbandits.worlds import SphereContexts

_ALIKE = 0.8, 1.25  # a ratio within these is no difference that one would speak of
_WORST = "WishartUnshifted"


def _wishart(nodes: Literal["live", "all"], shifted: bool) -> TreeLinUCB:
    return TreeLinUCB(
        privacy=PRIVACY, noise="wishart", calibration="paper", nodes=nodes, shifted=shifted
    )


class RegretOverTime(Figure):
    """Figure 4: the private variants over time, without and with a gap."""

    name: ClassVar[str] = "shariff-fig4"
    title: ClassVar[str] = (
        "Regret over time of the variants as printed, ε = 1, δ = .1, without and with a gap"
    )
    paper: ClassVar[str] = f"{PAPER}, Figure 4"
    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (
        "Noise as printed; it guarantees more than it claims (0.07-GDP, where (1, .1) allows 0.92). "
        'The paper sums "at most m" noisy counters (Section 4), and says that the noise of a round is '
        "N_t ~ W(mk), that of m of them (4.1). We read the latter as the noise of all m nodes of the "
        'tree in every round (`nodes="all"`), where nodes that hold nobody keep theirs throughout; its '
        'claims are judged on this reading. The other one, "live nodes", is our default: noise of the '
        "nodes that are summed, and a shift that follows their number. It is drawn beside, of one run, "
        "and its numbers are in the row on the worst variant, whose order it reverses. The picture "
        "shows the first two fifths of the rounds, as the paper's does.",
        '"Statistically indistinguishable" asks for an interval within 0.8 to 1.25, or one without 1 to '
        "say no. That what is neither is undecided was added after the runs: three runs show only large "
        "differences, and here they show none. The row on relative performance quoted D.2 before, and "
        "was judged on the unshifted variant alone.",
        READINGS,
    )
    _GAPS: ClassVar = (0.0, 0.1)
    _ROUNDS: ClassVar = {Scale.quick: 500_000, Scale.paper: 50_000_000}
    _RUNS: ClassVar = 3

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS[scale]:,}, {self._RUNS} runs (1 of live nodes), d = 5, K = 25"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """One for each gap, and one for each gap of our own form."""
        printed: dict[str, Policy] = {
            "WishartUnshifted": _wishart("all", shifted=False),
            "Wishart": _wishart("all", shifted=True),
            "Gaussian": TreeLinUCB(privacy=PRIVACY, calibration="paper"),
            "NonPrivate": LinUCB(failure=1.0 / self._ROUNDS[scale]),
        }
        ours: dict[str, Policy] = {
            "WishartUnshifted, live nodes": _wishart("live", shifted=False),
            "Wishart, live nodes": _wishart("live", shifted=True),
        }
        return {
            f"{name}{gap:g}": Simulation(
                policies=policies,
                environment=SphereContexts(gap=gap),
                rounds=self._ROUNDS[scale],
                runs=runs,
                points=200,
            )
            for gap in self._GAPS
            for name, policies, runs in (("gap-", printed, self._RUNS), ("live-gap-", ours, 1))
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """As the paper, the first two fifths of the rounds."""
        figure, panels = new_figure(len(self._GAPS), width=6.0, height=4.4, sharey=True)
        for axes, gap in zip(panels, self._GAPS, strict=True):
            both = [traces[f"{name}{gap:g}"] for name in ("gap-", "live-gap-")]
            part = both[0].rounds <= 0.4 * both[0].rounds[-1]
            curves = {x: trace.regret(x)[:, part] for trace in both for x in trace.policies}
            recipes = both[0].recipes() | both[1].recipes()
            draw_curves(axes, both[0].rounds[part], curves, policies=recipes)
            axes.set_title(f"gap Δ = {gap:g}" + (" (none forced)" if gap == 0.0 else ""))
            axes.xaxis.set_major_locator(few_ticks())
            axes.set_ylim(bottom=0.0)
        panels[0].set_ylabel(f"regret ({SHADED})")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The order of the variants in both panels, and what is proved."""
        final = {
            gap: {x: traces[f"gap-{gap:g}"].regret(x)[:, -1] for x in traces[f"gap-{gap:g}"].policies}
            for gap in self._GAPS
        }
        none, large = final[0.0], final[0.1]
        gaussian = {gap: ratio_of(by["Gaussian"], by["Wishart"]) for gap, by in final.items()}
        worst = {x: ratio_of(none["WishartUnshifted"], none[x]) for x in ("Wishart", "Gaussian")}
        alike = ratio_of(large["WishartUnshifted"], large["Wishart"])
        unseen = alike.low <= 1.0 <= alike.high
        live = traces["live-gap-0"]
        change = ratio_of_ratios(*((by[_WORST], by["Wishart"]) for by in (none, large)))
        changed = True if not change.low <= 1.0 <= change.high else False if _alike(change) else None
        height = {gap: max(by.values(), key=np.mean) for gap, by in final.items()}
        axis = {gap: ratio_of(by["NonPrivate"], height[gap]) for gap, by in final.items()}
        late = {
            f"{x}, Δ = {gap:g}": self._late(traces[f"gap-{gap:g}"], x)
            for gap in self._GAPS
            for x in ("Gaussian", "Wishart", "WishartUnshifted")
        }
        return [
            Claim(
                paper="Gaussian noise outperforms Wishart noise, with and without a gap",
                criterion="at both gaps the 99 % interval of Gaussian's mean regret over Wishart's is "
                "below 1",
                measured="; ".join(
                    f"Δ = {gap:g}: {_mean(final[gap], 'Gaussian')} against "
                    f"{_mean(final[gap], 'Wishart')}, {ratio:.3f}"
                    for gap, ratio in gaussian.items()
                ),
                holds=all(ratio.high < 1.0 for ratio in gaussian.values()),
            ),
            Claim(
                paper="Unshifted Wishart has the worst regret without a gap",
                criterion="at Δ = 0 the 99 % intervals of its mean regret over that of Wishart and of "
                "Gaussian are above 1",
                measured=", ".join(f"{x} {_mean(none, x)}" for x in none)
                + "; "
                + ", ".join(f"{ratio:.2f} times {x}'s" for x, ratio in worst.items())
                + "; by the other reading, live nodes (one run), "
                + ", ".join(f"{live.regret(x)[0, -1]:,.0f} {x.split(',')[0]}" for x in live.policies),
                holds=all(ratio.low > 1.0 for ratio in worst.values()),
            ),
            Claim(
                paper='With a gap of .1, unshifted Wishart "is statistically indistinguishable from the '
                'shifted Wishart variant" (D.2)',
                criterion="the 99 % interval of unshifted over shifted is within "
                f"{_ALIKE[0]}–{_ALIKE[1]}; not so if it excludes 1",
                measured=f"unshifted {_mean(large, 'WishartUnshifted')}, shifted "
                f"{_mean(large, 'Wishart')}: {alike:.2f}; without a gap "
                f"{worst['Wishart']:.2f}"
                + (
                    ". By the words themselves so: no difference is seen. That there is none, which we "
                    f"ask for, {self._RUNS} runs cannot show"
                    if unseen and not _alike(alike)
                    else ""
                ),
                holds=True if _alike(alike) else None if unseen else False,
                differs=_few(self._RUNS) if unseen and not _alike(alike) else "",
            ),
            Claim(
                paper="Without privacy the regret is too small to be distinguished from the x-axis",
                criterion="at both gaps the 99 % interval of its mean regret over the largest of the "
                "panel is below 1 %, about the width of a line",
                measured=", ".join(
                    f"{_percent(ratio)} of the largest (Δ = {gap:g})" for gap, ratio in axis.items()
                ),
                holds=all(ratio.high < 0.01 for ratio in axis.values()),
            ),
            Claim(
                paper="The curves are essentially flat after two fifths of the rounds",
                criterion="for each variant and gap the 99 % interval of the share of the regret that "
                "comes later is below 5 %",
                measured=", ".join(f"{_percent(part)} ({x})" for x, part in late.items()),
                holds=all(part.high < 0.05 for part in late.values()),
            ),
            Claim(
                paper='"The relative performance of the shifted and unshifted Wishart variants changes '
                'drastically depending on the gap" (D.3)',
                criterion="the 99 % interval of unshifted over shifted without a gap, over the same "
                f"with one, does not contain 1; where it does and is not within {_ALIKE[0]} to "
                f"{_ALIKE[1]}, nothing is decided",
                measured=f"{worst['Wishart'].value:.2f} and {alike.value:.2f} times: {change:.2f}",
                holds=changed,
                differs=_few(self._RUNS) if changed is None else "",
            ),
            self._bounded(none["Gaussian"], large["Gaussian"], scale),
            *lower_bound_claims(self._ROUNDS[scale]),
        ]

    def _bounded(self, without: Array, with_gap: Array, scale: Scale) -> Claim:
        """Theory beside measurement, with the regularisers of the policy that was played."""
        rounds, uniform = self._ROUNDS[scale], SphereContexts(gap=0.1).uniform_regret()
        general, by_gap = self._bounds(rounds)
        empty = min(general, by_gap) > rounds * uniform
        told = [
            speaks_from(lambda n, theorem=theorem: self._bounds(round(n))[theorem], uniform)  # type: ignore[misc]
            for theorem in (0, 1)
        ]
        return Claim(
            paper="Theorems 5 and 6 bound the regret of the Gaussian variant",
            criterion="all runs are below the bounds; a bound above the regret of uniform play says "
            "nothing",
            measured=f"at most {without.max():,.0f} without a gap (bound {general:.1e}), "
            f"{with_gap.max():,.0f} with one (bound {by_gap:.1e}); uniform play has "
            f"{rounds * uniform:.1e}",
            holds=bool(without.max() <= general and with_gap.max() <= by_gap),
            speaks_from=f"n ≈ {as_power_of_ten(told[0])} (Theorem 5) and {as_power_of_ten(told[1])} "
            "(Theorem 6, Δ = .1)"
            if empty
            else "",
        )

    @staticmethod
    def _bounds(rounds: int) -> tuple[float, float]:
        """Theorems 5 and 6 for the Gaussian variant made for so many rounds."""
        world = SphereContexts()
        state, _ = TreeLinUCB(privacy=PRIVACY, calibration="paper").begin(world.problem(rounds))
        low, high, gamma = (float(state.regularizers[-1, index]) for index in (LOW, HIGH, GAMMA))
        given = {"rho_min": low, "rho_max": high, "gamma": gamma}
        alpha = 1.0 / rounds
        return (
            regret_bound(rounds, world.dim, alpha, **given),
            gap_regret_bound(rounds, world.dim, alpha, 0.1, **given),
        )

    @staticmethod
    def _late(trace: Trace, policy: str) -> Interval:
        """The share of the regret that comes after what is drawn."""
        runs = trace.regret(policy)
        drawn = runs[:, trace.rounds <= 0.4 * trace.rounds[-1]][:, -1]
        return mean_of(1.0 - drawn / runs[:, -1])


def _few(runs: int) -> str:
    """Why nothing can be said."""
    return f"as in the paper, but our {runs} runs are too few"


def _alike(ratio: Interval) -> bool:
    """Whether it is shown that there is no difference that one would speak of."""
    return _ALIKE[0] < ratio.low and ratio.high < _ALIKE[1]


def _mean(runs: Mapping[str, Array], policy: str) -> str:
    return f"{runs[policy].mean():,.0f}"


def _percent(share: Interval) -> str:
    value, low, high = (100.0 * x for x in share)
    return f"{value:.2f} [{low:.2f}, {high:.2f}] %"
