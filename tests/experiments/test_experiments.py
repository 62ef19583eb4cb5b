"""Published figures: both scales, kept traces, claims that can fail."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from dpbandits import GaussianDP, Trace, simulate
from dpbandits.experiments import FIGURES, figure_named
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.ou_2024.analyses import Analyses
from dpbandits.experiments.ou_2024.privacy_curves import printed_mu
from dpbandits.experiments.reproduce import reproduce

pytestmark = pytest.mark.slow

EXPECTED_TO_FAIL = {
    "CAPRI as printed attains Õ(√(γ_T T) + γ_T/ε) (here: better than uniform play)",
    "Theorem 4: with probability 1 − γ regret is O(Σ_a k log²T log(kT/γ)/(ε Δ_a)); as printed, ε = 1, "
    "T = 10⁵",
    "Regret is polylogarithmic in T (as printed, ε = 1, T = 10⁵)",
    "Theorem 4 bounds the regret of Algorithm 1 (here k = 5, ε = 1, T = 10⁵)",
    "Algorithm 2 samples after its first two phases (here k = 5, ε = 1, T = 10⁵)",
    "Standard Thompson sampling (b=0, c=1) is √T-GDP by Lemma 4",
    "Theorem 1: Algorithm 2 is ε-differentially private (here ε = 2)",
    "R_n/ln n converges for both, at different rates",
    "DPUCB-MAT is comparable to OMM and approaches the optimal policy on films",
    "DPTS-MAT is comparable to the non-private CTS and approaches the optimum (4b)",
    "Theorem 6: N(0,1) moved by 2ε/√ln(1/2δ) is (ε, δ)-close to itself",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if not figure.minutes])
def test_quick_scale_reaches_the_same_verdicts(name: str, folder: Path) -> None:
    if (needed := figure_named(name).missing()) is not None:
        pytest.skip(needed)
    result = reproduce(figure_named(name), Scale.quick, folder / name, progress=False)
    for claim in result.claims:
        assert claim.holds == (claim.paper not in EXPECTED_TO_FAIL), claim
    written = {path.suffix for path in (folder / name).iterdir()}
    assert {".svg", ".png", ".pdf", ".json", ".html"} <= written
    record = json.loads((folder / name / "claims.json").read_text())
    assert len(record["claims"]) == len(result.claims)


def test_finished_units_are_not_played_again_and_make_the_trace_of_one_simulation(folder: Path) -> None:
    figure = figure_named("ou-fig2")
    reproduce(figure, Scale.quick, folder / "kept", progress=False)
    units = folder / "kept" / "sweep" / "units"
    made = {path: path.stat().st_mtime_ns for path in units.iterdir()}
    reproduce(figure, Scale.quick, folder / "kept", progress=False)
    assert {path: path.stat().st_mtime_ns for path in units.iterdir()} == made
    simulation = figure.simulations(Scale.quick)["eta-2"]
    whole = simulate(
        simulation.policies,
        simulation.environment,
        simulation.rounds,
        simulation.runs,
        simulation.seed,
        points=simulation.points,
        progress=False,
    )
    found = Trace.load(folder / "kept" / "eta-2.parquet")
    assert found.header == whole.header and found.table().equals(whole.table())


def test_claims_fail_when_the_measurements_say_so(folder: Path) -> None:
    """Controls: the same claims on curves that contradict them."""
    figure = figure_named("ou-fig2")
    reproduce(figure, Scale.quick, folder / "claims", progress=False)
    traces = {
        name: Trace.load(folder / "claims" / f"{name}.parquet")
        for name in figure.simulations(Scale.quick)
    }
    flat = {
        name: dataclasses.replace(
            trace, curves={label: np.zeros_like(curve) for label, curve in trace.curves.items()}
        )
        for name, trace in traces.items()
    }
    assert [claim.holds for claim in figure.claims(flat, Scale.quick)] == [False] * 4
    swapped = {"eta-1": traces["eta-5"], "eta-2": traces["eta-2"], "eta-5": traces["eta-1"]}
    falls = figure.claims(swapped, Scale.quick)[2]
    assert "falls" in falls.paper and not falls.holds


def test_the_figures_formulas() -> None:
    assert printed_mu(100_000, 1999, 50.0) == pytest.approx(1.0)
    # One round is 1/√2-GDP, exactly.
    exact = GaussianDP(2**-0.5)
    assert Analyses.corrected_round(1e-6) == exact.epsilon_at(1e-6)
    assert exact.delta_at(Analyses.corrected_round(1e-6)) == pytest.approx(1e-6, rel=1e-9)
    # The printed constant claims far less than the exact one for the same δ.
    assert Analyses.printed_round(2)(1e-6) < 0.5 * Analyses.corrected_round(1e-6)


def test_paper_scale_is_the_papers() -> None:
    for name in ("ou-fig2", "ou-fig3"):
        for simulation in figure_named(name).simulations(Scale.paper).values():
            assert simulation.rounds == 100_000 and simulation.runs == 10
            for policy in simulation.policies.values():
                held = policy.guarantee(simulation.environment.problem(simulation.rounds)).budget
                assert held.size <= policy.privacy.size
