"""Pavlovic, Salgia & Zhao, "Differential privacy in kernelized contextual bandits …".

The paper has no experiment; these are the first. Worlds: contexts and actions evenly on [0, 1],
functions of norm 1 drawn from the kernel's space (`KernelWorld`), rewards ±1.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.environments import KernelWorld
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.policies.kernel import Capri, KernelThompson, KernelUCB
from dpbandits.privacy.budgets import ApproxDP
from dpbandits.problems import Kernel, Matern, SquaredExponential
from dpbandits.recommend import recommend
from dpbandits.reports.figures import COLOURS, log_axes, new_figure
from dpbandits.simulation import Trace

PAPER = "Pavlovic, Salgia & Zhao"
KERNELS: dict[str, Kernel] = {
    "squared exponential": SquaredExponential(0.2),
    "Matérn 2.5": Matern(0.2, 2.5),
    "Matérn 1.5": Matern(0.2, 1.5),
}
DELTA = 1e-5


def world(kernel: Kernel, function: int, **options: Any) -> KernelWorld:
    """20 contexts, 20 actions, one of the functions."""
    grid = tuple((x,) for x in np.linspace(0.0, 1.0, 20).tolist())
    return KernelWorld(kernel, grid, grid, seed=function, **options)


def dialled(epsilon: float, trust: str = "joint") -> Policy:
    """`Capri` with the dial that `recommend` sets."""
    problem = KernelWorld.standard().problem(None)
    width = recommend(problem, ApproxDP(epsilon, DELTA), kind=Capri).policy.width  # type: ignore[attr-defined]
    return Capri(privacy=ApproxDP(epsilon, DELTA), trust=trust, width=width)


def thompson(epsilon: float, trust: str = "joint") -> Policy:
    """The recommended policy."""
    return KernelThompson(privacy=ApproxDP(epsilon, DELTA), trust=trust)


def printed(epsilon: float, trust: str = "joint") -> Policy:
    """`Capri` as printed: noise, copies and confidence."""
    return Capri(
        privacy=ApproxDP(epsilon, DELTA),
        trust=trust,
        confidence="paper",
        calibration="paper",
        design="copies",
        tau=1.0,
    )


def shares(traces: Mapping[str, Trace], prefix: str, policy: str) -> NDArray[np.float64]:
    """Regret as a share of uniform play's, by round, over all functions of a prefix."""
    mine: Any = 0.0
    uniform: Any = 0.0
    for name, trace in traces.items():
        if name.startswith(prefix):
            gap = KernelWorld.from_dict(trace.header["environment"]).uniform_regret()
            mine = mine + trace.regret(policy).mean(axis=0)
            uniform = uniform + gap * trace.rounds
    return np.asarray(mine / uniform)


def _functions(count: int) -> str:
    return f"{count} function{'s'[: count != 1]}"


class CapriRegret(Figure):
    """Regret in both models, at three budgets, with three kernels."""

    name: ClassVar[str] = "capri-regret"
    title: ClassVar[str] = (
        "Regret of private kernel bandits, joint and local, as a share of uniform play"
    )
    paper: ClassVar[str] = PAPER
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "All at δ = 10⁻⁵, one run on each function. `Capri` is shown with the dial that `recommend` "
        "sets (a quarter of the valid widths). As printed it stays at uniform play: Δ_r is in the "
        "thousands while no two mean rewards differ by more than 2, so nothing is ever dropped; "
        "`plays_uniform_below` tells from which horizon on something could be.",
    )
    _EPSILONS: ClassVar = (0.5, 1.0, 5.0)
    _ROUNDS: ClassVar = {Scale.quick: 100_000, Scale.paper: 1_000_000}
    _FUNCTIONS: ClassVar = {Scale.quick: 1, Scale.paper: 4}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and functions."""
        functions = _functions(self._FUNCTIONS[scale])
        return f"T = {self._ROUNDS[scale]:,}, 20 contexts × 20 actions, {functions}"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Every kernel and function."""
        policies: dict[str, Policy] = {"not private": KernelUCB(), "printed": printed(1.0)}
        for trust in ("joint", "local"):
            for epsilon in self._EPSILONS:
                policies[f"thompson {trust} {epsilon:g}"] = thompson(epsilon, trust)
                policies[f"capri {trust} {epsilon:g}"] = dialled(epsilon, trust)
        return {
            f"{kernel}, f{function}": Simulation(
                policies=policies,
                environment=world(KERNELS[kernel], function),
                rounds=self._ROUNDS[scale],
                runs=1,
                seed=function,
            )
            for kernel in KERNELS
            for function in range(self._FUNCTIONS[scale])
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A row for each model, a column for each kernel."""
        figure, panels = new_figure(3, rows=2, width=4.6, height=3.6)
        rounds = next(iter(traces.values())).rounds
        seen = rounds >= 1000
        for index, axes in enumerate(panels):
            kernel, trust = list(KERNELS)[index % 3], ("joint", "local")[index // 3]
            for place, epsilon in enumerate(self._EPSILONS):
                for name, stroke in (("thompson", "-"), ("capri", "--")):
                    curve = shares(traces, kernel, f"{name} {trust} {epsilon:g}")
                    label = f"{name}, ε = {epsilon:g}"
                    axes.plot(rounds[seen], curve[seen], stroke, color=COLOURS[place], label=label)
            if trust == "joint":
                for name, colour in (("printed", "#999999"), ("not private", "#000000")):
                    curve = shares(traces, kernel, name)
                    axes.plot(rounds[seen], curve[seen], ":", color=colour, label=name)
            axes.axhline(1.0, color="#cccccc", linewidth=0.8)
            axes.set_title(f"{kernel}, {trust}")
            log_axes(axes, percent=True)
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[3:]:
            axes.set_xlabel("round")
        for axes in (panels[0], panels[3]):
            axes.set_ylabel("regret / uniform play")
            axes.legend(frameon=False, fontsize="x-small")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """What the theorems say about order, and what the constants do."""

        def last(kernel: str, policy: str) -> float:
            return float(shares(traces, kernel, policy)[-1])

        def falls(policy: str, trust: str, kernel: str) -> bool:
            found = [last(kernel, f"{policy} {trust} {e:g}") for e in self._EPSILONS]
            return bool(np.all(np.diff(found) <= 0.02))

        ordered = [
            (kernel, policy)
            for kernel in KERNELS
            for policy in ("thompson", "capri")
            if all(falls(policy, trust, kernel) for trust in ("joint", "local"))
        ]
        local_costs = min(
            last(k, f"{p} local {e:g}") / last(k, f"{p} joint {e:g}")
            for k in KERNELS
            for p in ("thompson", "capri")
            for e in self._EPSILONS
        )
        stays = [last(kernel, "printed") for kernel in KERNELS]
        ahead = min(
            last(k, f"capri joint {e:g}") / last(k, f"thompson joint {e:g}")
            for k in KERNELS
            for e in self._EPSILONS
        )
        sublinear = [
            shares(traces, k, "thompson joint 1")[[len(next(iter(traces.values())).rounds) // 2, -1]]
            for k in KERNELS
        ]
        return [
            Claim(
                paper="Regret falls as ε grows, in both models",
                measured=f"for {len(ordered)} of {2 * len(KERNELS)} pairs of policy and kernel "
                "(to 2 % of uniform play)",
                holds=len(ordered) == 2 * len(KERNELS),
            ),
            Claim(
                paper="The local model costs more than the joint one (√T in the privacy term)",
                measured=f"at least {local_costs:.2g} times the regret, over kernels, policies and ε",
                holds=local_costs > 1.0,
            ),
            Claim(
                paper="Regret is sublinear: its share of uniform play falls with the rounds",
                measured="KernelThompson, joint, ε = 1, half way and at the end: "
                + ", ".join(f"{a:.3f} → {b:.3f}" for a, b in sublinear),
                holds=all(b < a for a, b in sublinear),
            ),
            Claim(
                paper="CAPRI as printed attains Õ(√(γ_T T) + γ_T/ε) (here: better than uniform play)",
                measured=f"{100 * min(stays):.1f} % of uniform play: its Δ_r never drops an action",
                holds=min(stays) < 0.95,
            ),
            Claim(
                paper="(ours) KernelThompson has less regret than CAPRI at the same guarantee, joint",
                measured=f"CAPRI has at least {ahead:.2g} times its regret, over kernels and ε",
                holds=ahead > 1.0,
            ),
        ]


class CapriScaling(Figure):
    """Regret against 1/ε and against the effective dimension."""

    name: ClassVar[str] = "capri-scaling"
    title: ClassVar[str] = "Regret against 1/ε and against γ_T"
    paper: ClassVar[str] = f"{PAPER}, Theorem 4.1"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "γ_T = ½ ln det(I + K T/|W|), the information gain of playing every pair equally often; it "
        "is varied by the length scale of the squared exponential kernel, at ε = 1. Slopes are of "
        "straight lines through logarithms, and leave out what is above half of uniform play, where "
        "regret cannot grow on. The theorem bounds the joint regret by √(γ_T T) + γ_T/ε and the "
        "local one by √(γ_T T) + γ_T √T/ε, up to logarithms: slopes of at most 1. It "
        "is about CAPRI; for KernelThompson nothing is proved.",
    )
    _LINES: ClassVar[dict[str, Callable[[float], Policy]]] = {
        "CAPRI, joint": dialled,
        "Thompson, joint": thompson,
        "Thompson, local": partial(thompson, trust="local"),
    }
    _EPSILONS: ClassVar = (0.1, 0.3, 1.0, 3.0, 10.0)
    _LENGTHS: ClassVar = (1.0, 0.6, 0.4, 0.25, 0.15)
    _ROUNDS: ClassVar = {Scale.quick: 30_000, Scale.paper: 300_000}
    _FUNCTIONS: ClassVar = {Scale.quick: 4, Scale.paper: 8}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and functions."""
        return f"T = {self._ROUNDS[scale]:,}, {_functions(self._FUNCTIONS[scale])}"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Budgets on one kernel, length scales at one budget."""

        def both(epsilon: float) -> dict[str, Policy]:
            return {f"{label} {epsilon:g}": make(epsilon) for label, make in self._LINES.items()}

        def one(policies: dict[str, Policy], length: float, function: int) -> Simulation:
            return Simulation(
                policies=policies,
                environment=world(SquaredExponential(length), function),
                rounds=self._ROUNDS[scale],
                runs=1,
                seed=function,
                points=10,
            )

        found = {}
        for function in range(self._FUNCTIONS[scale]):
            budgets = {x: y for epsilon in self._EPSILONS for x, y in both(epsilon).items()}
            found[f"budgets, f{function}"] = one(budgets, 0.2, function)
            for length in self._LENGTHS:
                found[f"length {length:g}, f{function}"] = one(both(1.0), length, function)
        return found

    def _gain(self, length: float, rounds: int) -> float:
        rows = world(SquaredExponential(length), 0).problem(None).features().rows
        gram = np.eye(rows.shape[1]) + rows.T @ rows * (rounds / len(rows))
        return float(np.linalg.slogdet(gram)[1] / 2.0)

    def _lines(
        self, traces: Mapping[str, Trace], scale: Scale, line: str
    ) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]]:
        """(x, regret, whether below half of uniform play) against 1/ε and against γ_T."""
        rounds = self._ROUNDS[scale]

        def mean(prefix: str, policy: str) -> tuple[float, float]:
            kept = [trace for name, trace in traces.items() if name.startswith(prefix)]
            regret = float(np.mean([trace.regret(policy)[0, -1] for trace in kept]))
            return regret, float(shares(traces, prefix, policy)[-1])

        budgets = [mean("budgets", f"{line} {e:g}") for e in self._EPSILONS]
        lengths = [mean(f"length {x:g},", f"{line} 1") for x in self._LENGTHS]
        gains = [self._gain(x, rounds) for x in self._LENGTHS]
        return {
            "1/ε": (
                1.0 / np.array(self._EPSILONS),
                np.array([regret for regret, _ in budgets]),
                np.array([share for _, share in budgets]) < 0.5,
            ),
            "γ_T": (
                np.array(gains),
                np.array([regret for regret, _ in lengths]),
                np.array([share for _, share in lengths]) < 0.5,
            ),
        }

    @staticmethod
    def _slope(x: NDArray[np.float64], y: NDArray[np.float64], kept: NDArray[np.bool_]) -> float:
        if kept.sum() < 2:
            return math.nan
        return float(np.polyfit(np.log(x[kept]), np.log(y[kept]), 1)[0])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Two panels; hollow where it is near uniform play."""
        figure, panels = new_figure(2, width=5.0, height=4.0)
        for colour, line in zip(COLOURS, self._LINES, strict=False):
            for axes, (name, (x, y, kept)) in zip(
                panels, self._lines(traces, scale, line).items(), strict=True
            ):
                slope = self._slope(x, y, kept)
                label = line if math.isnan(slope) else f"{line}: slope {slope:.2f}"
                axes.plot(x, y, "-", color=colour, label=label)
                axes.plot(x[kept], y[kept], "o", color=colour)
                axes.plot(x[~kept], y[~kept], "o", color=colour, markerfacecolor="white")
                axes.set_xlabel(name)
        panels[0].set_ylabel("regret (hollow: above half of uniform play)")
        for axes in panels:
            log_axes(axes)
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Slopes of the joint model, and the order of the two."""
        capri, joint, local = (self._lines(traces, scale, line) for line in self._LINES)
        slopes = {name: (self._slope(*capri[name]), self._slope(*joint[name])) for name in capri}
        middle = self._EPSILONS.index(1.0)
        ratio = local["1/ε"][1][middle] / joint["1/ε"][1][middle]
        found = [
            Claim(
                paper=f"Joint: regret grows at most like {name}",
                measured=f"slope {both[0]:.2f} (CAPRI), {both[1]:.2f} (KernelThompson)",
                holds=0.0 < both[0] <= 1.0,
            )
            for name, both in slopes.items()
        ]
        return [
            *found,
            Claim(
                paper="Local: the privacy term is up to √T times as large",
                measured=f"at ε = 1, {ratio:.1f} times the joint regret; √T = "
                f"{math.sqrt(self._ROUNDS[scale]):.0f}",
                holds=bool(1.0 < ratio <= math.sqrt(self._ROUNDS[scale])),
            ),
        ]


class CapriMisspecified(Figure):
    """The declared context weights are wrong."""

    name: ClassVar[str] = "capri-misspecified"
    title: ClassVar[str] = "Regret where the declared weights of contexts are off"
    paper: ClassVar[str] = f"{PAPER}, Assumption 2.5"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "Contexts come equally often; declared is a mixture with a share u of weights that put "
        "everything on the first quarter of them, so that the total variation between the two is "
        "¾u. Privacy does not depend on the weights: the noise covers every context.",
    )
    _SHARES: ClassVar = (0.0, 0.1, 0.2, 0.4, 0.8)
    _ROUNDS: ClassVar = {Scale.quick: 50_000, Scale.paper: 1_000_000}
    _FUNCTIONS: ClassVar = {Scale.quick: 2, Scale.paper: 8}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and functions."""
        return f"T = {self._ROUNDS[scale]:,}, ε = 1, {_functions(self._FUNCTIONS[scale])}"

    @staticmethod
    def _declared(share: float) -> tuple[float, ...]:
        wrong = np.repeat([1.0 / 5.0, 0.0], [5, 15])
        return tuple((1.0 - share) * np.full(20, 1.0 / 20.0) + share * wrong)

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Every u and function."""
        return {
            f"u {share:g}, f{function}": Simulation(
                policies={"thompson": thompson(1.0), "capri": dialled(1.0)},
                environment=world(
                    KERNELS["squared exponential"], function, declared=self._declared(share)
                ),
                rounds=self._ROUNDS[scale],
                runs=1,
                seed=function,
                points=10,
            )
            for share in self._SHARES
            for function in range(self._FUNCTIONS[scale])
        }

    def _ends(self, traces: Mapping[str, Trace], policy: str) -> list[float]:
        return [float(shares(traces, f"u {share:g},", policy)[-1]) for share in self._SHARES]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Regret against u."""
        figure, (axes,) = new_figure(width=6.0, height=4.0)
        for colour, policy in zip(COLOURS, ("thompson", "capri"), strict=False):
            axes.plot(self._SHARES, self._ends(traces, policy), "o-", color=colour, label=policy)
        axes.set(xlabel="u: wrong share of the declared weights", ylabel="regret / uniform play")
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How much it takes to hurt."""
        ends = self._ends(traces, "thompson")
        shown = ", ".join(
            f"{100 * x:.1f} % at u = {u:g}" for x, u in zip(ends, self._SHARES, strict=True)
        )
        return [
            Claim(
                paper="(ours) Weights a tenth off cost little: at most twice the regret",
                measured=f"KernelThompson {shown} (of uniform play)",
                holds=ends[1] <= 2.0 * ends[0],
            ),
            Claim(
                paper="The context generator must be right (Assumption 2.5): far off costs regret",
                measured=f"{ends[-1] / ends[0]:.1f} times the regret at u = {self._SHARES[-1]:g}",
                holds=ends[-1] > 1.2 * ends[0],
            ),
        ]


FIGURES: tuple[Figure, ...] = (CapriRegret(), CapriScaling(), CapriMisspecified())
