"""Shariff & Sheffet 2018, "Differentially Private Contextual Linear Bandits"."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Streams, implementation
from dpbandits.environments import SphereContexts
from dpbandits.environments.linear.worlds import Rewards
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.linear_bounds import gap_regret_bound, regret_bound
from dpbandits.policies import Policy
from dpbandits.policies.linear import LinUCB, TreeLinUCB
from dpbandits.policies.linear.tree_lin_ucb import GAMMA, HIGH, LOW
from dpbandits.privacy.budgets import ApproxDP
from dpbandits.reports.figures import COLOURS, draw_curves, line_style, new_figure
from dpbandits.simulation import Trace

PAPER = "Shariff & Sheffet 2018"
PRIVACY = ApproxDP(1.0, 0.1)
Array = NDArray[np.float64]


class DecisionSet(Figure):
    """Figure 1: one decision set in three dimensions."""

    name: ClassVar[str] = "shariff-fig1"
    title: ClassVar[str] = "A decision set in R³ with 1000 actions"
    paper: ClassVar[str] = f"{PAPER}, Figure 1"
    _WORLD: ClassVar = SphereContexts(3, 1000)

    def describe_scale(self, scale: Scale) -> str:
        """One drawing."""
        return "one decision set, d = 3, K = 1000"

    def _drawn(self) -> tuple[Array, Array, Array]:
        """Features, means and θ*."""
        world = self._WORLD.world()
        (features,) = implementation("offer", type(world))(world, Streams.of(0).chance)
        return features, world.shown.means, world.shown.theta

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The sphere, with θ* and the optimal action marked."""
        from matplotlib.figure import Figure as Picture

        features, means, theta = self._drawn()
        picture = Picture(figsize=(7.0, 5.4), layout="constrained")
        axes: Any = picture.add_subplot(projection="3d")
        best = int(means.argmax())
        others = np.delete(np.arange(means.size), best)
        shown = axes.scatter(*features[others].T, c=means[others], s=7, cmap="viridis")
        axes.scatter(*features[best], c=COLOURS[1], s=90, marker="*", label="optimal action, mean .75")
        axes.quiver(0, 0, 0, *theta, color="black", arrow_length_ratio=0.1, label="θ*")
        bar = picture.colorbar(shown, shrink=0.6, pad=0.08)
        bar.set_label("mean reward ⟨x, θ*⟩ of the suboptimal actions")
        # Seen from the side of θ*, where the cap without actions is.
        up, around = math.degrees(math.asin(theta[2])), math.degrees(math.atan2(theta[1], theta[0]))
        axes.view_init(elev=0.6 * up, azim=around + 40.0)
        axes.set_box_aspect((1, 1, 1))
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_ticks([-1.0, 0.0, 1.0])
        axes.legend(loc="upper left", frameon=False)
        return picture

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The set is what the text says."""
        features, means, theta = self._drawn()
        others = np.sort(means)[:-1]
        lengths = np.linalg.norm(features, axis=1)
        wrong = np.abs(features @ theta - means).max()
        return [
            Claim(
                paper="One optimal action of mean .75, all others in [−.75, .65], all of unit length",
                measured=f"best {means.max():.4f}, others {others.min():.3f} to {others.max():.3f}, "
                f"lengths within {np.abs(lengths - 1).max():.0e} of 1",
                holds=bool(
                    (means == 0.75).sum() == 1
                    and wrong < 1e-9
                    and others.max() <= 0.65
                    and others.min() >= -0.75
                    and np.abs(lengths - 1).max() < 1e-9
                ),
            )
        ]


class _ByDimension(Figure):
    """Non-private LinUCB on K = d² actions, for several d and both kinds of reward noise."""

    minutes: ClassVar[bool] = True
    _NOISES: ClassVar[dict[str, Rewards]] = {"Gaussian noise": "gaussian", "±1 rewards": "signs"}
    _DIMS: ClassVar = {
        Scale.quick: (4, 6, 8, 11, 16),
        Scale.paper: (4, 6, 8, 11, 16, 23, 32, 45, 64),
    }
    _ROUNDS: ClassVar = {Scale.quick: 20_000, Scale.paper: 100_000}
    _RUNS: ClassVar = {Scale.quick: 3, Scale.paper: 1}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs, dimensions."""
        dims = self._DIMS[scale]
        return (
            f"n = {self._ROUNDS[scale]:,}, {self._RUNS[scale]} run{'s' * (self._RUNS[scale] > 1)}, "
            f"d = {dims[0]} … {dims[-1]}, K = d²"
        )

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """One for each dimension and noise. The learner knows that σ = S = 1 either way; α = 1/n."""
        policy = LinUCB(alpha=1.0 / self._ROUNDS[scale], noise_level=1.0, parameter_norm=1.0)
        return {
            f"{rewards}-{dim}": Simulation(
                policies={"LinUCB": policy},
                environment=SphereContexts(dim, dim * dim, rewards=rewards),
                rounds=self._ROUNDS[scale],
                runs=self._RUNS[scale],
            )
            for dim in self._DIMS[scale]
            for rewards in self._NOISES.values()
        }

    def _final(self, traces: Mapping[str, Trace], scale: Scale, rewards: str) -> Array:
        """Mean final regret, by dimension."""
        named = (f"{rewards}-{dim}" for dim in self._DIMS[scale])
        return np.array([traces[name].regret("LinUCB")[:, -1].mean() for name in named])


class RegretByDimension(_ByDimension):
    """Figure 2: regret over time."""

    name: ClassVar[str] = "shariff-fig2"
    title: ClassVar[str] = "Regret of LinUCB over time for dimensions from 4 to 64, without privacy"
    paper: ClassVar[str] = f"{PAPER}, Figure 2"

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each noise."""
        figure, panels = new_figure(len(self._NOISES), width=5.6, height=4.4)
        for axes, (title, rewards) in zip(panels, self._NOISES.items(), strict=True):
            dims = self._DIMS[scale][::-1]  # as the curves lie
            curves = {f"d = {dim}": traces[f"{rewards}-{dim}"].regret("LinUCB") for dim in dims}
            draw_curves(axes, traces[f"{rewards}-{dims[0]}"].rounds, curves)
            axes.set_title(title)
            axes.xaxis.set_major_locator(_few_ticks())
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0.0, top)
        _one_legend(panels)
        panels[0].set_ylabel("regret (mean; shaded: best to worst run)")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Order of the curves, and of the noises."""
        gaussian, signs = (self._final(traces, scale, x) for x in self._NOISES.values())
        dims, ratios = self._DIMS[scale], signs / gaussian
        return [
            Claim(
                paper="Regret grows with the dimension",
                measured=", ".join(
                    f"{value:,.0f} (d={d})" for d, value in zip(dims, gaussian, strict=True)
                ),
                holds=bool((np.diff(gaussian) > 0).all() and (np.diff(signs) > 0).all()),
            ),
            Claim(
                paper="With ±1 rewards the regret is somewhat lower than with Gaussian noise",
                measured=f"{100 * (1 - ratios.mean()):.0f} % lower on average over the dimensions, from "
                f"{100 * (1 - ratios.max()):.0f} % to {100 * (1 - ratios.min()):.0f} %",
                holds=bool(0.5 < ratios.mean() < 1.0),
            ),
        ]


class RegretAgainstDimension(_ByDimension):
    """Figure 3: final regret against the dimension."""

    name: ClassVar[str] = "shariff-fig3"
    title: ClassVar[str] = "Regret of LinUCB against the dimension, without privacy"
    paper: ClassVar[str] = f"{PAPER}, Figure 3"

    def _slope(self, traces: Mapping[str, Trace], scale: Scale, rewards: str) -> tuple[float, float]:
        """Of the best-fit line on log-log axes, and its height at d = 1."""
        final = self._final(traces, scale, rewards)
        slope, height = np.polyfit(np.log(self._DIMS[scale]), np.log(final), 1)
        return float(slope), float(height)

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Log-log, with best-fit lines."""
        figure, (axes,) = new_figure(width=6.4, height=4.6)
        dims = np.array(self._DIMS[scale])
        for index, (title, rewards) in enumerate(self._NOISES.items()):
            slope, height = self._slope(traces, scale, rewards)
            style = line_style(index)
            final = self._final(traces, scale, rewards)
            axes.loglog(dims, final, "os"[index], label=title, color=style["color"])
            line = np.exp(height) * dims**slope
            axes.loglog(dims, line, label=f"best fit, slope {slope:.2f}", **style)
        axes.set_xticks(dims, [str(d) for d in dims])
        axes.minorticks_off()
        axes.set_xlabel("dimension d")
        axes.set_ylabel("regret after the last round (mean)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The slope."""
        slopes = {title: self._slope(traces, scale, x)[0] for title, x in self._NOISES.items()}
        return [
            Claim(
                paper="The best-fit line has a slope of roughly 2, clearly super-linear",
                measured=", ".join(f"{slope:.2f} ({title})" for title, slope in slopes.items()),
                holds=all(1.5 <= slope <= 2.5 for slope in slopes.values()),
            )
        ]


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
        "One thing is mended: the paper shifts Wishart noise as if all nodes of the tree were summed in "
        "every round, which leaves V negative in most; here the shift follows the number of nodes.",
    )
    _GAPS: ClassVar = (0.0, 0.1)
    _ROUNDS: ClassVar = {Scale.quick: 500_000, Scale.paper: 50_000_000}
    _RUNS: ClassVar = {Scale.quick: 3, Scale.paper: 2}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS[scale]:,}, {self._RUNS[scale]} runs, d = 5, K = 25"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """One for each gap."""
        rounds = self._ROUNDS[scale]
        policies: dict[str, Policy] = {
            "WishartUnshifted": TreeLinUCB(
                privacy=PRIVACY, noise="wishart", calibration="paper", shifted=False
            ),
            "Wishart": TreeLinUCB(privacy=PRIVACY, noise="wishart", calibration="paper"),
            "Gaussian": TreeLinUCB(privacy=PRIVACY, calibration="paper"),
            "NonPrivate": LinUCB(alpha=1.0 / rounds),
        }
        return {
            f"gap-{gap:g}": Simulation(
                policies=policies,
                environment=SphereContexts(gap=gap),
                rounds=rounds,
                runs=self._RUNS[scale],
                points=200,
            )
            for gap in self._GAPS
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """As the paper, the first two fifths of the rounds."""
        figure, panels = new_figure(len(self._GAPS), width=6.0, height=4.4)
        for axes, gap in zip(panels, self._GAPS, strict=True):
            trace = traces[f"gap-{gap:g}"]
            part = trace.rounds <= 0.4 * trace.rounds[-1]
            curves = {x: trace.regret(x)[:, part] for x in trace.policies}
            draw_curves(axes, trace.rounds[part], curves)
            axes.set_title(f"gap Δ = {gap:g}" + (" (none forced)" if gap == 0.0 else ""))
            axes.xaxis.set_major_locator(_few_ticks())
            axes.set_ylim(bottom=0.0)
        _one_legend(panels)
        panels[0].set_ylabel("regret (mean; shaded: best to worst run)")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The order of the variants in both panels."""
        final = {
            gap: {x: traces[f"gap-{gap:g}"].regret(x)[:, -1] for x in traces[f"gap-{gap:g}"].policies}
            for gap in self._GAPS
        }
        means = {gap: {x: runs.mean() for x, runs in by.items()} for gap, by in final.items()}
        none, gap = means[0.0], means[0.1]
        apart, error = _difference(final[0.1]["WishartUnshifted"], final[0.1]["Wishart"])
        flat = {
            x: float(np.mean([self._late(traces[f"gap-{gap:g}"], x) for gap in self._GAPS]))
            for x in ("Gaussian", "Wishart", "WishartUnshifted")
        }
        return [
            Claim(
                paper="Gaussian noise outperforms Wishart noise, with and without a gap",
                measured="; ".join(
                    f"Δ = {g:g}: {means[g]['Gaussian']:,.0f} against {means[g]['Wishart']:,.0f}"
                    for g in self._GAPS
                ),
                holds=all(means[g]["Gaussian"] < means[g]["Wishart"] for g in self._GAPS),
            ),
            Claim(
                paper="Unshifted Wishart has the worst regret without a gap",
                measured=", ".join(f"{x} {value:,.0f}" for x, value in none.items()),
                holds=max(none, key=lambda x: none[x]) == "WishartUnshifted",
            ),
            Claim(
                paper="With a gap of .1, shifted and unshifted Wishart are statistically alike",
                measured=f"unshifted {gap['WishartUnshifted']:,.0f}, shifted {gap['Wishart']:,.0f}: "
                f"{apart:+,.0f} ± {error:,.0f}",
                holds=abs(apart) <= 2.0 * error,
            ),
            Claim(
                paper="Without privacy the regret is too small to be told from the axis",
                measured=", ".join(
                    f"{100 * by['NonPrivate'] / by['Wishart']:.2f} % of Wishart's (Δ = {g:g})"
                    for g, by in means.items()
                ),
                holds=all(by["NonPrivate"] < 0.02 * by["Wishart"] for by in means.values()),
            ),
            Claim(
                paper="The curves are essentially flat after two fifths of the rounds",
                measured=", ".join(f"{x}: {100 * part:.0f} %" for x, part in flat.items())
                + " of the regret comes later",
                holds=max(flat.values()) < 0.1,
            ),
            self._bounded(none["Gaussian"], gap["Gaussian"], scale),
        ]

    def _bounded(self, without: float, with_gap: float, scale: Scale) -> Claim:
        """Theory beside measurement, with the regularisers of the policy that was played."""
        rounds, world = self._ROUNDS[scale], SphereContexts()
        state, _ = TreeLinUCB(privacy=PRIVACY, calibration="paper").begin(world.problem(rounds))
        low, high, gamma = (float(state.regularizers[-1, index]) for index in (LOW, HIGH, GAMMA))
        given = {"rho_min": low, "rho_max": high, "gamma": gamma}
        general = regret_bound(rounds, world.dim, 1.0 / rounds, **given)
        by_gap = gap_regret_bound(rounds, world.dim, 1.0 / rounds, 0.1, **given)
        return Claim(
            paper="Theorems 5 and 6 bound the regret of the Gaussian variant",
            measured=f"{without:,.0f} without a gap (bound {general:.1e}), {with_gap:,.0f} with one "
            f"(bound {by_gap:.1e}); uniform play has {rounds * world.uniform_regret():.1e}",
            holds=bool(without <= general and with_gap <= by_gap),
        )

    @staticmethod
    def _late(trace: Trace, policy: str) -> float:
        """The share of the regret that comes after what is drawn."""
        mean = trace.regret(policy).mean(axis=0)
        drawn = mean[trace.rounds <= 0.4 * trace.rounds[-1]][-1]
        return float(1.0 - drawn / mean[-1])


class RegretAgainstShift(Figure):
    """Figure 5: regret against ρ_min, for several gaps."""

    name: ClassVar[str] = "shariff-fig5"
    title: ClassVar[str] = (
        "Regret against the least eigenvalue of the shifted regulariser, for several gaps"
    )
    paper: ClassVar[str] = f"{PAPER}, Figure 5"
    minutes: ClassVar[bool] = True
    _GAPS: ClassVar = (0.0, 0.05, 0.1, 0.2)
    _SHIFTS: ClassVar = tuple(float(x) for x in np.geomspace(1e3, 1e7, 9).round(-2))
    _ROUNDS: ClassVar = {Scale.quick: 100_000, Scale.paper: 50_000_000}
    _RUNS: ClassVar = {Scale.quick: 2, Scale.paper: 1}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs and grid."""
        runs = self._RUNS[scale]
        return (
            f"n = {self._ROUNDS[scale]:,}, {runs} run{'s' * (runs > 1)}, "
            f"{len(self._SHIFTS)} values of ρ_min, {len(self._GAPS)} gaps"
        )

    @staticmethod
    def _policy(noise: str, shift: float | None) -> TreeLinUCB:
        return TreeLinUCB(privacy=PRIVACY, noise=noise, calibration="paper", rho_min=shift)

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """One for each gap."""
        return {
            f"gap-{gap:g}": Simulation(
                policies={
                    f"{noise} {shift:g}": self._policy(noise, shift)
                    for noise in ("wishart", "gaussian")
                    for shift in self._SHIFTS
                },
                environment=SphereContexts(gap=gap),
                rounds=self._ROUNDS[scale],
                runs=self._RUNS[scale],
                points=10,
            )
            for gap in self._GAPS
        }

    def _regrets(self, traces: Mapping[str, Trace], noise: str, gap: float) -> Array:
        """Mean final regret, by ρ_min."""
        trace = traces[f"gap-{gap:g}"]
        return np.array([trace.regret(f"{noise} {shift:g}")[:, -1].mean() for shift in self._SHIFTS])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each noise; dotted: the ρ_min of its section of the paper."""
        figure, panels = new_figure(2, width=5.4, height=4.4)
        problem = SphereContexts().problem(self._ROUNDS[scale])
        for axes, noise in zip(panels, ("wishart", "gaussian"), strict=True):
            for index, gap in enumerate(self._GAPS):
                regrets = self._regrets(traces, noise, gap)
                axes.semilogx(
                    self._SHIFTS,
                    regrets,
                    marker="os^D"[index],
                    label=f"Δ = {gap:g}",
                    **line_style(index),
                )
            chosen, _ = self._policy(noise, None).begin(problem)
            axes.axvline(chosen.regularizers[-1, LOW], color="gray", linestyle=":")
            axes.set_title(f"{noise.capitalize()} noise (dotted: the paper's shift)")
            axes.set_xlabel("ρ_min")
            axes.set_ylim(bottom=0.0)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        panels[1].legend(frameon=False)
        panels[0].set_ylabel("regret after the last round (mean)")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How much the shift matters, with and without a gap."""
        found = []
        for noise in ("wishart", "gaussian"):
            title, spread, excess = noise.capitalize(), {}, {}
            for gap in (self._GAPS[0], self._GAPS[-1]):
                regrets = self._regrets(traces, noise, gap)
                spread[gap] = float(regrets.max() / regrets.min())
                excess[gap] = float(regrets[-1] / regrets.min())
            none, large = self._GAPS[0], self._GAPS[-1]
            found += [
                Claim(
                    paper=f"{title}: the shift matters mostly where the gap is small or zero",
                    measured=f"most over least regret {spread[none]:.1f} at Δ = {none:g}, "
                    f"{spread[large]:.1f} at Δ = {large:g}",
                    holds=spread[none] > spread[large],
                ),
                Claim(
                    paper=f"{title}: too much regularisation hardly hurts with a large gap",
                    measured=f"at ρ_min = {self._SHIFTS[-1]:g} {excess[large]:.2f} times the least "
                    f"regret at Δ = {large:g}, {excess[none]:.2f} times at Δ = {none:g}",
                    holds=excess[large] < 1.5,
                ),
            ]
        return found


def _difference(one: Array, other: Array) -> tuple[float, float]:
    """The difference of two means over the same runs, and its standard error."""
    apart = one - other
    return float(apart.mean()), float(apart.std(ddof=1) / math.sqrt(apart.size))


def _one_legend(panels: list[Any]) -> None:
    """Beside the last panel, where it hides no curve."""
    for axes in panels:
        axes.legend().remove()
    panels[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


FIGURES: tuple[Figure, ...] = (
    DecisionSet(),
    RegretByDimension(),
    RegretAgainstDimension(),
    RegretOverTime(),
    RegretAgainstShift(),
)
