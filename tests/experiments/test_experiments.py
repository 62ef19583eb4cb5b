"""Published figures: both scales, kept traces, claims that can fail."""

import dataclasses
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_traces import made_up
from movielens_files import write_many_1m
from numpy.typing import NDArray

from dpbandits import GaussianDP, NonPrivate, PureDP, Trace, simulate
from dpbandits.errors import InvalidInput
from dpbandits.experiments import FIGURES, Claim, Verdict, figure_named
from dpbandits.experiments.chandak import films
from dpbandits.experiments.chandak.returns import gain_ratio
from dpbandits.experiments.chandak.setting import TABLE_2, as_printed
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.ou_2024 import privacy_curves
from dpbandits.experiments.ou_2024.analyses import Analyses
from dpbandits.experiments.ou_2024.privacy_curves import printed_mu
from dpbandits.experiments.ou_2024.regret_bound import regret_bound, worst_case_bound
from dpbandits.experiments.ou_2024.tuning import PAIRS, tuning_claim, tuning_simulations
from dpbandits.experiments.reproduce import reproduce
from dpbandits.policies.matroid import PrivateMatroidThompson, PrivateMatroidUCB

pytestmark = pytest.mark.slow

EXPECTED_TO_FAIL = {
    "Theorem 4: with probability 1 − γ regret is O(Σ_a k log²T log(kT/γ)/(ε Δ_a)); as printed, ε = 1, "
    "T = 10⁵",
    "Regret is polylogarithmic in T (second-hand; as printed, ε = 1, T = 10⁵)",
    "Theorem 4 bounds the regret of Algorithm 1 (here k = 5, ε = 1, T = 10⁵)",
    "(ours) Algorithm 2 samples after its first two phases (k = 5, ε = 1, T = 10⁵)",
    "D.1: the interval √(r_a log t)/n_a + log t/n_a seems to perform the best",
    "Theorem 6.7, joint, with its constants",
    "Theorem 6.7, local, with its constants",
    "Theorem 4.1: the same where κ is 0 for one context, as neighbours may have any",
    "Theorem 5, Equation (10), at 1-GDP (b = 2000, c = 50)",
    "Theorem 5, whatever the gaps, for Algorithm 1",
    "Theorem 1: Algorithm 2 is ε-differentially private (here ε = 2)",
    "Theorem 3: Algorithm 3 is ε-differentially private (here ε = 2)",
    "(ours) DPUCB-MAT: at ε = 10⁵ nothing is lost against OMM",
    "(ours) DPTS-MAT: at ε = 10⁵ nothing is lost against CTS",
    "(ours) One slope fits all values of ε",
    "DPUCB-MAT approaches the optimal policy on films",
    "DPTS-MAT approaches the optimal policy on films (4b)",
    "DPUCB-MAT is comparable to OMM on films",
    "DPTS-MAT is comparable to the non-private CTS on films (4b)",
    "Lemma 12: N(0,1) moved by 2ε/√ln(1/2δ) is (ε, δ)-close to itself",
    "Remark 1: the guarantees by standard DP and by RDP are often orders of magnitude weaker than by "
    "GDP",
    "(ours) As delivered, b and c are alike within 5 %",
}
UNDECIDED: set[str] = {
    "The advantage of GDP over RDP shows particularly where δ is small",
    "Section 4: tuning b and c can achieve both tighter privacy and lower regret than b = 0, c = 1",
    "Theorem 4: with probability 1 − γ regret is O(Σ_a k log²T log(kT/γ)/(ε Δ_a)); as printed, ε = 1, "
    "T = 10⁶",
    "Regret falls as ε grows, as the bound of Theorem 4: noise is in proportion to 1/ε (Lemma 5, "
    "appendix B)",
    'DPUCB-MAT and OMM "have a similar growth rate in terms of the return"',
    'DPTS-MAT and CTS "also show similar trends": a similar growth rate (4a)',
    'R_n/ln n: "both DPUCB-MAT and DPTS-MAT converge but with different rates"; DPUCB-MAT',
    'R_n/ln n: "both DPUCB-MAT and DPTS-MAT converge but with different rates"; DPTS-MAT',
    '"For both the algorithms the regret trend is linear in 1/ε"',
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
        expected = None if claim.paper in UNDECIDED else claim.paper not in EXPECTED_TO_FAIL
        assert claim.holds is expected, claim
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
    grid = traces["eta-1"].rounds
    # All b and η the same, below half of uniform play.
    alike = np.tile(0.1 * grid[:, None], (8, 1, 3)).astype(np.float64)
    flat = {
        name: dataclasses.replace(trace, curves=dict.fromkeys(trace.curves, alike))
        for name, trace in traces.items()
    }
    assert [claim.holds for claim in figure.claims(flat, Scale.quick)] == [False] * 4
    dear = {label: 10.0 * curve for label, curve in traces["eta-5"].curves.items()}
    worse = traces | {"eta-5": dataclasses.replace(traces["eta-5"], curves=dear)}
    falls = figure.claims(worse, Scale.quick)[2]
    assert "falls" in falls.paper and not falls.holds


def test_a_bound_is_judged_only_where_it_says_something() -> None:
    """Theorem 5: T alone decides between holds, does not hold and not reached."""
    figure = figure_named("ou-theorem5")
    simulations = figure.simulations(Scale.paper)
    short = simulations["standard"]
    grids = {name: made_up(simulations[name]) for name in tuning_simulations(Scale.paper)}
    trace = simulate(short.policies, short.environment, 1000, 2, progress=False)
    long = dataclasses.replace(trace, rounds=trace.rounds * 20_000)
    cases = {trace: Verdict.not_reached, long: Verdict.holds}
    dear = {label: 1e7 * curve for label, curve in long.curves.items()}
    cases[dataclasses.replace(long, curves=dear)] = Verdict.fails
    for given, verdict in cases.items():
        other = dataclasses.replace(given, curves={"private": given.curves["standard"]})
        found = figure.claims(grids | {"standard": given, "private": other}, Scale.paper)
        assert found[0].verdict is verdict
        # The same runs for both: 1-GDP costs nothing.
        assert found[-1].ours and found[-1].holds is False
    steep = dataclasses.replace(trace, curves={"private": 1000.0 * trace.curves["standard"]})
    dear_one = figure.claims(grids | {"standard": trace, "private": steep}, Scale.paper)
    assert dear_one[-1].holds is True


def test_one_pair_shows_that_tuning_gains_and_no_grid_refutes_it() -> None:
    """Section 4. Controls: pairs alike or worse, and one that is better on one set of seeds only."""
    traces = {name: made_up(one) for name, one in tuning_simulations(Scale.paper).items()}

    def judged(times: dict[str, float], names: str = "") -> Claim:
        """Where the regret of some pairs is multiplied in the simulations so named."""
        changed = {
            name: dataclasses.replace(
                trace,
                curves={x: times.get(x, 1.0) * curve for x, curve in trace.curves.items()},
            )
            for name, trace in traces.items()
            if names in name
        }
        return tuning_claim(traces | changed, Scale.paper)

    pair = str(PAIRS[2])
    assert judged({}).in_words.endswith("undecided here")
    assert judged({str(one): 3.0 for one in PAIRS}).holds is None
    assert judged({pair: 0.5}, names="tuning").holds is None
    assert judged({pair: 0.5}, names="choosing").holds is None
    better = judged({pair: 0.5}, names="exponential")
    assert better.verdict is Verdict.holds and f"{pair} (exponential" in better.measured


def test_what_is_said_of_figure_1_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls: a formula in which b counts twice, and one that promises more than is delivered."""
    figure = figure_named("ou-fig1")
    said = [claim.holds for claim in figure.claims({}, Scale.paper)]
    assert said == [True, True, True, False, True, True]
    wrong = {
        "b twice": (lambda t, b, c: math.sqrt(t / (c * (b + 1.0) ** 2)), [True, False]),
        "c never": (lambda t, b, c: math.sqrt(t / (b + 1.0)), [False, False]),
        "half": (lambda t, b, c: 0.5 * math.sqrt(t / (c * (b + 1.0))), [True, True]),
    }
    for formula, of_the_formula in wrong.values():
        monkeypatch.setattr(privacy_curves, "printed_mu", formula)
        found = [claim.holds for claim in figure.claims({}, Scale.paper)]
        assert found[:4] == [*of_the_formula, True, False]
    assert found[4:] == [False, False]  # half of what is delivered
    # What is delivered, were it the formula of Lemma 4.
    monkeypatch.setattr(
        privacy_curves, "delivered_mu", lambda t, arms, b, c: math.sqrt(t / (c * (b + 1.0)))
    )
    assert [claim.holds for claim in figure.claims({}, Scale.paper)][2:4] == [True, True]


def test_where_gdp_gains_most_over_rdp_is_decided_where_every_α_agrees() -> None:
    class Small(Analyses):
        _ALPHAS = (1.1, 1.15)
        rdp = staticmethod(partial(Analyses.rdp_at, 1.1))

    class Large(Analyses):
        _ALPHAS = (1.5, 2.0)

    found = [
        next(claim for claim in one.claims({}, Scale.paper) if "particularly" in claim.paper)
        for one in (Small(), Analyses(), Large())
    ]
    assert [claim.holds for claim in found] == [True, None, False]
    assert "so at α = 1.1, 1.15; not so at α = 1.25, 1.5, 2; not so at the best" in found[1].differs


def test_much_higher_regret_without_prepulls_is_twice_that_of_the_best() -> None:
    figure = figure_named("ou-fig3")
    made = {name: made_up(one) for name, one in figure.simulations(Scale.paper).items()}
    for times, holds in ((4.0, True), (1.0, False)):
        dearer = {
            name: dataclasses.replace(
                trace,
                curves={
                    x: curve * (times if x.startswith("b = 0,") else 1.0)
                    for x, curve in trace.curves.items()
                },
            )
            for name, trace in made.items()
        }
        claim = figure.claims(dearer, Scale.paper)[1]
        assert "much higher" in claim.paper and claim.holds is holds


def test_at_1_gdp_theorem_5_speaks_where_c_grows_with_the_rounds() -> None:
    gaps = (0.0, 0.125, 0.25, 0.375, 0.5)

    def share(rounds: float) -> float:
        """Of uniform play, at the best b; c = T/(b + 1) is 1-GDP."""
        choices = np.unique(np.geomspace(1, rounds / 5, 200).astype(int))
        bounds = [regret_bound(rounds, gaps, int(b), max(1.0, rounds / (b + 1))) for b in choices]
        return min(bounds) / (0.25 * rounds)

    figure = figure_named("ou-theorem5")
    made = {name: made_up(one) for name, one in figure.simulations(Scale.paper).items()}
    said = float(figure.claims(made, Scale.paper)[1].speaks_from.removeprefix("T ≈ 10^"))
    assert share(10 ** (said - 0.1)) > 1.0 > share(10 ** (said + 0.1))


def test_theorem_5_by_hand() -> None:
    # Two arms, Δ = ½, b = 10, c = 2, T = 20 + 4e²: the logarithm is 2.
    rounds = 20.0 + 4.0 * math.e**2
    assert regret_bound(rounds, (0.0, 0.5), 10, 2.0) == pytest.approx(20 + 28 + 5130 * 2 * 2 / 0.5)
    wide = 14 + 5130 * 2 * math.log(math.e**2 * 2 * math.log(2))
    expected = 20 + math.sqrt(8 * math.e**2) * (
        wide / (math.e * math.sqrt(math.log(2))) + math.e * math.sqrt(math.log(2))
    )
    assert worst_case_bound(rounds, (0.0, 0.5), 10, 2.0) == pytest.approx(expected)
    # Nothing is claimed before T > bN + 4/Δ².
    assert regret_bound(36.0, (0.0, 0.5), 10, 2.0) == math.inf
    for gaps, c in (((0.0, 0.0), 1.0), ((0.0, 0.5), 0.5)):
        with pytest.raises(InvalidInput, match="Theorem 5"):
            regret_bound(1000, gaps, 0, c)


@pytest.mark.parametrize("name", [name for name, one in FIGURES.items() if one.is_of_a_paper])
def test_every_claim_on_a_paper_says_how_it_is_judged(name: str) -> None:
    figure = figure_named(name)
    if (needed := figure.missing()) is not None:
        pytest.skip(needed)
    simulations = figure.simulations(Scale.quick)
    claims = figure.claims({x: made_up(one) for x, one in simulations.items()}, Scale.quick)
    assert claims and all(claim.criterion for claim in claims)


@pytest.mark.parametrize("name", ["chandak-fig3", "chandak-fig4b", "chandak-table3"])
def test_films_are_judged_on_the_papers_edition_where_that_is_given(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = figure_named(name)
    write_many_1m(tmp_path)
    monkeypatch.setenv("DPBANDITS_MOVIELENS", str(tmp_path))
    traces = {x: made_up(one) for x, one in figure.simulations(Scale.paper).items()}
    claims = figure.claims(traces, Scale.paper)
    assert not any("MovieLens" in claim.differs for claim in claims)
    monkeypatch.setattr(films, "THEIRS", "MovieLens 25M")
    for claim in figure.claims(traces, Scale.paper):
        assert claim.ours or claim.differs.startswith("MovieLens 1M, not 25M")


def test_a_straight_line_is_told_from_a_bent_one() -> None:
    """Controls of 5a and 5b: curves that are as the paper says, and some that are not."""
    trend, chance = figure_named("chandak-fig5b"), np.random.default_rng(2)
    for bend, linear, one_slope in ((math.inf, True, True), (0.5, False, False)):
        traces = {}
        for panel, size in (("ucb", 2.0), ("thompson", 1.0)):
            one = made_up(trend.simulations(Scale.paper)[panel])
            curves = {
                label: size
                * (100.0 + 500.0 * min(1.0 / float(label), bend) + chance.normal(0.0, 5.0, (20, 1, 1)))
                * np.ones((20, one.rounds.size, 3))
                for label in one.curves
            }
            traces[panel] = dataclasses.replace(one, curves=curves)
        verdicts = [claim.holds for claim in trend.claims(traces, Scale.paper)]
        assert verdicts == [linear, one_slope, True]


def test_regret_that_is_linear_in_ln_n_converges_however_late_it_begins() -> None:
    """Figure 5a: with n₀ = 1,800 R_n/ln n still rises by a third over the last tenfold of rounds."""
    growth, chance = figure_named("chandak-fig5a"), np.random.default_rng(2)
    one = made_up(growth.simulations(Scale.paper)["regret"])
    sizes = {"DPUCB-MAT": 2.0, "DPTS-MAT": 1.0, "FocusedMatroidUCB": 0.1}

    def judged(curve: NDArray[np.float64], spread: float = 0.01) -> list[Claim]:
        """Runs of several sizes, whose second halves of the last decade differ as much again."""
        late = one.rounds > one.rounds[-1] / math.sqrt(10)
        bend = np.where(late, curve - curve[~late][-1], 0.0)[:, None]
        curves = {
            x: size * chance.uniform(0.99, 1.01, (20, 1, 3)) * curve[:, None]
            + size * chance.uniform(-spread, spread, (20, 1, 3)) * bend
            for x, size in sizes.items()
        }
        return growth.claims({"regret": dataclasses.replace(one, curves=curves)}, Scale.paper)

    n = one.rounds.astype(float)
    cases = {
        "at once": (1.0 + np.log(n), True),
        "late": (np.maximum(np.log(n / 1_800), 0.001), True),
        "a power": (n**0.25, False),
        "it stops": (1.0 + np.log(np.minimum(n, 3e5)), False),
    }
    for name, (curve, holds) in cases.items():
        assert [claim.holds for claim in judged(curve)] == [holds, holds, True], name
    unclear = judged(1.0 + np.log(n), spread=0.9)[:2]
    assert {claim.holds for claim in unclear} == {None}
    assert unclear[0].in_words.endswith("(as in the paper; our 20 runs are too few): undecided here")


@pytest.mark.parametrize("kind", [PrivateMatroidUCB, PrivateMatroidThompson])
def test_what_is_lost_at_the_largest_epsilon_is_not_due_to_noise(kind: Any) -> None:
    """Figure 2: gains as without noise, within 3 % at a level of 99 %; at ε = 2 they are not."""
    budgets = {"none": NonPrivate(), "1e5": PureDP(1e5), "2": PureDP(2.0)}
    policies = {label: as_printed(kind, budget) for label, budget in budgets.items()}
    trace = simulate(policies, TABLE_2, 10_000, 20, progress=False)
    assert gain_ratio(trace, "1e5", "none", TABLE_2).within(0.97, 1.03)
    assert gain_ratio(trace, "2", "none", TABLE_2).within(0.97, 1.03) is False


def test_growth_rates_are_told_from_levels() -> None:
    """Figure 1: the same slope at another level is similar; another slope is not; some are not told."""
    figure = figure_named("chandak-fig1")
    one, chance = made_up(figure.simulations(Scale.paper)["returns"]), np.random.default_rng(3)
    for power, spread, holds in ((0.5, 0.01, True), (0.9, 0.01, False), (0.62, 0.2, None)):
        powers = {"DPUCB-MAT": power, "OMM (not private)": 0.5, "FocusedMatroidUCB": 0.5}
        curves = {
            x: (0.2 if x == "DPUCB-MAT" else 0.1)
            * one.rounds[:, None] ** (exponent + chance.uniform(-spread, spread, (20, 1, 1)))
            * np.ones(3)
            for x, exponent in powers.items()
        }
        found = figure.claims({"returns": dataclasses.replace(one, curves=curves)}, Scale.paper)
        assert "growth rate" in found[0].paper and found[0].holds is holds, found[0]
        # The theorem is judged under a reading of ours, which no curve changes.
        assert found[3].holds is False and found[3].verdict is Verdict.other_set_up


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
