"""The figure changing-arms: its claims follow what was measured."""

import dataclasses

import numpy as np
import pytest

from dpbandits import simulate
from dpbandits.experiments import figure_named
from dpbandits.experiments.figure import Scale
from dpbandits.simulation import Trace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    found = {}
    for name, one in figure_named("changing-arms").simulations(Scale.quick).items():
        sizes = one.rounds, one.runs, one.seed
        found[name] = simulate(one.policies, one.environment, *sizes, points=4, progress=False)
    return found


def _with_regret(traces: dict[str, Trace], change: float) -> dict[str, Trace]:
    """The same with this much more regret of everybody."""
    moved = np.array([change, 0.0, 0.0])
    return {
        name: dataclasses.replace(
            trace, curves={label: moved + 0.0 * curve for label, curve in trace.curves.items()}
        )
        for name, trace in traces.items()
    }


def test_it_can_be_drawn_and_says_what_it_measured(traces: dict[str, Trace]) -> None:
    result = figure_named("changing-arms").result(traces, Scale.quick)
    held = {claim.paper.removeprefix("(ours) "): claim.holds for claim in result.claims}
    assert all(claim.criterion for claim in result.claims)
    assert next(holds for paper, holds in held.items() if paper.startswith("Fixed arms: NoiseAware"))
    assert result.rows[-1]["policy"] == "uniform play" and result.rows[-1]["fixed"] == "5,000"


def test_claims_fail_when_the_measurements_say_so(traces: dict[str, Trace]) -> None:
    """Controls: everybody alike, below every bound and above it."""
    claims = figure_named("changing-arms").claims
    alike = claims(_with_regret(traces, 0.0), Scale.quick)
    assert [claim.holds for claim in alike] == ["below its bound" in claim.paper for claim in alike]
    assert not any(claim.holds for claim in claims(_with_regret(traces, 1e5), Scale.quick))
