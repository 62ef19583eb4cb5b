"""The kernel figures at quick scale, and controls that their claims can fail."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from dpbandits import Trace
from dpbandits.experiments import figure_named
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.reproduce import reproduce

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["capri-misspecified", "capri-scaling", "kernel-leaderboard"])
def test_quick_scale_reaches_the_verdicts(name: str, tmp_path: Path) -> None:
    figure = figure_named(name)
    result = reproduce(figure, Scale.quick, tmp_path, progress=False)
    assert all(claim.holds for claim in result.claims), result.claims
    traces = {one: Trace.load(tmp_path / f"{one}.parquet") for one in figure.simulations(Scale.quick)}
    # A control: curves that are all alike show no order, no slope and no cost of wrong weights.
    alike = {
        one: dataclasses.replace(trace, curves={x: np.ones_like(y) for x, y in trace.curves.items()})
        for one, trace in traces.items()
    }
    assert not all(claim.holds for claim in figure.claims(alike, Scale.quick))


def test_the_regret_figure_covers_both_models_three_kernels_and_three_budgets() -> None:
    simulations = figure_named("capri-regret").simulations(Scale.paper)
    kernels = {name.split(", f")[0] for name in simulations}
    assert len(kernels) == 3
    for simulation in simulations.values():
        assert simulation.rounds == 10**6
        labels = set(simulation.policies)
        for trust in ("joint", "local"):
            assert {
                f"{p} {trust} {e}" for p in ("thompson", "capri") for e in ("0.5", "1", "5")
            } <= labels
        for label, policy in simulation.policies.items():
            held = policy.guarantee(simulation.environment.problem(10**6))
            assert held.is_private == (label != "not private")
            if " " in label and label != "not private":
                assert held.trust.name.lower() == label.split()[1]
