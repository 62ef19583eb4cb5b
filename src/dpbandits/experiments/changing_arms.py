"""Which policy for arms that change: fixed arms, a change of the best arm, and a script, at ε = 1."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.policies.arms import (
    Exp3,
    LazyThompson,
    LazyUCB,
    NoiseAwareIMED,
    PrivateExp3,
    PrivateIMED,
)
from dpbandits.privacy.budgets import PureDP
from dpbandits.reports.figures import SHADED, draw_curves, light_axes, new_figure
from dpbandits.reports.kept import mean_and_interval
from dpbandits.simulation import Trace
from dpbandits.worlds import BernoulliArms, Environment, ScriptedArms, ShiftingArms

Runs = NDArray[np.float64]
_SEED = 20_263
_HELD = PureDP(1.0)
_FIXED = BernoulliArms((0.5, 0.25, 0.75, 0.375, 0.625))
# After a quarter of the rounds the best arm becomes the worst, and the worst the best.
_ROWS = ((0.75, 0.5, 0.25, 0.5, 0.5), (0.25, 0.5, 0.75, 0.5, 0.5))
_DIPS = ((0.8, 0.55, 0.3, 0.3, 0.3), (0.1, 0.55, 0.3, 0.3, 0.3), (0.8, 0.55, 0.3, 0.3, 0.3))
_BEST, _OTHER, _BETWEEN = 0.8, 0.2, 0.45  # of the script: two arms in turn, and a third
# Those that take each arm's mean to be fixed.
_LEARN_MEANS: dict[str, Policy] = {
    "NoiseAwareIMED": NoiseAwareIMED(privacy=_HELD),
    "LazyThompson": LazyThompson(privacy=_HELD),
    "LazyUCB": LazyUCB(privacy=_HELD),
    "PrivateIMED": PrivateIMED(privacy=_HELD),
}
_EXP3, _FADING, _OPEN = "PrivateExp3", "PrivateExp3, memory T/10", "Exp3 (not private)"
_STILL, _SHIFT, _MOVING, _SCRIPT, _DIP = "fixed", "shift", "moving", "script", "dip"
_AGAINST_FIXED = (_STILL, _SHIFT, _SCRIPT, _DIP)
_TITLES = {
    _STILL: "Fixed arms",
    _SHIFT: "The best arm changes",
    _MOVING: "The same, against each round's best arm",
    _SCRIPT: "Two arms in turn, stretches growing fourfold",
    _DIP: "The best arm is bad for a while",
}


def _script(rounds: int) -> ScriptedArms:
    """Bernoulli rewards, drawn once: the first two arms take turns to be best, from T/1024 on."""
    means = np.full((rounds, 3), _BETWEEN)
    best = np.zeros(rounds, np.int64)
    for place in range(6):
        best[rounds // 4 ** (5 - place) :] = (place + 1) % 2
    means[:, :2] = _OTHER
    means[np.arange(rounds), best] = _BEST
    drawn = np.random.default_rng(_SEED).random(means.shape) < means
    return ScriptedArms(drawn.astype(np.float64))


class ChangingArms(Figure):
    """Policies that learn means, and Exp3, where the means change and where they do not."""

    name: ClassVar[str] = "changing-arms"
    title: ClassVar[str] = "Which policy where arms may change"
    paper: ClassVar[str] = "dpbandits"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "All private policies are 1-DP. Regret is against the best fixed arm up to each round, in "
        "one panel against the best arm of each round. It can be negative where arms change.",
        "The change, after a quarter of the rounds: means (.75, .5, .25, .5, .5) become (.25, .5, "
        ".75, .5, .5). The script is drawn once, so that only the policies differ from run to run: "
        "two arms pay .8 and .2 in turn, a third .45, in stretches that grow fourfold. The dip: the "
        "best arm of means (.8, .55, .3, .3, .3) pays .1 from T/5 to 8T/25.",
        "The first four claims were written down before anything was played. The dip, and the "
        "claims about it and about the worst world, were added after a quick run (T = 20,000) in "
        "which LazyUCB followed both the change and the script: of an arm only its last batch "
        "counts. The dip is aimed at that; it was written down before it was played.",
        "Which to use: NoiseAwareIMED where means are fixed, or nearly so, since Exp3 loses many "
        "times as much there. PrivateExp3 with a memory where the best arm is known to change, "
        "about every so many rounds; it costs more than Exp3 where nothing changes, and has no "
        "bound. PrivateExp3 where nothing is known: its mean regret is bounded, single runs are "
        "not, and some are bad. The worlds are made to be hard, and say nothing about how often "
        "arms behave so.",
    )
    _ROUNDS: ClassVar = {Scale.quick: 20_000, Scale.paper: 100_000}
    _RUNS: ClassVar = {Scale.quick: 10, Scale.paper: 100}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"T = {self._ROUNDS[scale]:,}, {self._RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All policies on every world."""
        rounds = self._ROUNDS[scale]
        worlds: dict[str, Environment] = {
            _STILL: _FIXED,
            _SHIFT: ShiftingArms(_ROWS, (rounds // 4,)),
            _MOVING: ShiftingArms(_ROWS, (rounds // 4,), against="moving"),
            _SCRIPT: _script(rounds),
            _DIP: ShiftingArms(_DIPS, (rounds // 5, 8 * rounds // 25)),
        }
        policies = _LEARN_MEANS | {
            _EXP3: PrivateExp3(privacy=_HELD),
            _FADING: PrivateExp3(privacy=_HELD, memory=rounds // 10),
            _OPEN: Exp3(),
        }
        sizes: dict[str, Any] = {"rounds": rounds, "runs": self._RUNS[scale], "seed": _SEED}
        return {
            name: Simulation(policies=policies, environment=world, **sizes)
            for name, world in worlds.items()
        }

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """Final regret by policy and world, with intervals and the worst run; uniform play last."""
        found: list[dict[str, Any]] = [
            {"policy": label} | {name: f"{_shown(_final(traces, name, label))}" for name in traces}
            for label in traces[_STILL].policies
        ]
        worlds = self.simulations(scale)
        uniform = {
            name: f"{worlds[name].environment.uniform_total(self._ROUNDS[scale]):,.0f}"
            for name in traces
        }
        return [*found, {"policy": "uniform play"} | uniform]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Regret over time, a panel for each world."""
        figure, panels = new_figure(3, width=4.4, height=3.4, rows=2)
        for axes, (name, title) in zip(panels, _TITLES.items(), strict=False):
            trace = traces[name]
            curves = {label: trace.regret(label) for label in trace.policies}
            draw_curves(axes, trace.rounds, curves, policies=trace.recipes())
            axes.axhline(0.0, color="0.7", lw=0.8, zorder=0)
            axes.set_title(title)
            light_axes(axes)
        panels[-1].axis("off")
        figure.supylabel(f"regret ({SHADED})", fontsize="medium")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Which policy loses less where, and the bound of `PrivateExp3`."""
        rivals = tuple(_LEARN_MEANS)
        found = [
            _less(traces, _STILL, "NoiseAwareIMED", (_EXP3, _FADING)),
            _less(traces, _SHIFT, _EXP3, rivals),
            _less(traces, _SCRIPT, _EXP3, rivals),
            _less(traces, _MOVING, _FADING, (*rivals, _EXP3)),
        ]
        found += [_less(traces, _DIP, _EXP3, ("LazyUCB",)), _worst(traces, rivals)]
        for name in _AGAINST_FIXED:
            arms = 3 if name == _SCRIPT else 5
            bound = math.sqrt(8.0 * 3.65 * arms * self._ROUNDS[scale] * math.log(arms))
            runs = _final(traces, name, _EXP3)
            found.append(
                Claim(
                    paper=f"(ours) {_TITLES[name]}: the mean regret of PrivateExp3 is below its bound",
                    criterion="the upper end of its 95 % interval is below √(8cKT ln K), c = 3.65",
                    measured=f"{_shown(runs)}, bound {bound:,.0f}",
                    holds=bool(sum(mean_and_interval(runs)) < bound),
                )
            )
        return found


def _less(traces: Mapping[str, Trace], world: str, label: str, others: tuple[str, ...]) -> Claim:
    """That a policy loses less than each of the others, by intervals that do not overlap."""
    mean, half = mean_and_interval(_final(traces, world, label))
    ends = {
        other: np.subtract(*mean_and_interval(_final(traces, world, other))).item() for other in others
    }
    nearest = min(ends, key=lambda other: ends[other])
    return Claim(
        paper=f"(ours) {_TITLES[world]}: {label} loses less than {', '.join(others)}",
        criterion="its 95 % interval is below that of each of them",
        measured=f"{_shown(_final(traces, world, label))}; next {nearest}, "
        f"{_shown(_final(traces, world, nearest))}",
        holds=bool(mean + half < ends[nearest]),
    )


def _worst(traces: Mapping[str, Trace], rivals: tuple[str, ...]) -> Claim:
    """That the worst of all worlds is less bad for `PrivateExp3` than for each of the others."""
    worst = {
        one: max(_AGAINST_FIXED, key=lambda name: float(_final(traces, name, one).mean()))
        for one in (_EXP3, *rivals)
    }
    ends = {one: mean_and_interval(_final(traces, worst[one], one)) for one in worst}
    own = sum(ends[_EXP3])
    return Claim(
        paper="(ours) In its worst world PrivateExp3 loses less than each of the others in theirs",
        criterion="against fixed arms, by means: its 95 % interval is below that of each of them",
        measured="; ".join(
            f"{one} {_shown(_final(traces, worst[one], one))} ({worst[one]})" for one in worst
        ),
        holds=all(own < ends[one][0] - ends[one][1] for one in rivals),
    )


def _shown(runs: Runs) -> str:
    """Mean ± half its 95 % interval (worst run)."""
    mean, half = mean_and_interval(runs)
    return f"{mean:,.0f} ± {half:,.0f} ({runs.max():,.0f})"


def _final(traces: Mapping[str, Trace], world: str, label: str) -> Runs:
    return traces[world].regret(label)[:, -1]


FIGURES: tuple[Figure, ...] = (ChangingArms(),)
