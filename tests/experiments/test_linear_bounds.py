"""Regret bounds of Shariff & Sheffet against values worked out by hand."""

import math

import pytest

import dpbandits as dpb
from dpbandits.experiments.linear_bounds import (
    gap_regret_bound,
    regret_bound,
)

PLAIN = {"rho_min": 1.0, "rho_max": 1.0}


def test_theorems_5_and_6_by_hand() -> None:
    # n = 2, d = 2, α = 2/e: nL²/(dρ) = 1, so the logarithms are 1, ln 2 and ln 2.
    bracket = (2.0 + 2.0 * math.log(2.0)) + math.sqrt(2.0 * math.log(2.0))
    assert regret_bound(2, 2, 2 / math.e, **PLAIN) == pytest.approx(4.0 * bracket)
    assert gap_regret_bound(2, 2, 2 / math.e, 0.5, **PLAIN) == pytest.approx(16.0 * bracket**2)
    # n = 50, d = 1, L = 2, S = 3, B = 2, σ = .5, ρ = (4, 16), γ = 5, α = 2/e²:
    # nL²/(dρ_min) = 50, bracket ½(4 + ln 54) + (3·4 + 5)√ln 51, and √(8n) = 20.
    bracket = 0.5 * (4.0 + math.log(54.0)) + 17.0 * math.sqrt(math.log(51.0))
    given = {"rho_min": 4.0, "rho_max": 16.0, "gamma": 5.0, "L": 2.0, "S": 3.0, "B": 2.0, "sigma": 0.5}
    assert regret_bound(50, 1, 2 / math.e**2, **given) == pytest.approx(40.0 * bracket)
    assert gap_regret_bound(50, 1, 2 / math.e**2, 0.1, **given) == pytest.approx(160.0 * bracket**2)
    # B below 1 counts as 1.
    assert regret_bound(2, 2, 0.5, B=0.1, **PLAIN) == regret_bound(2, 2, 0.5, **PLAIN)


def test_theorem_5_covers_what_is_measured() -> None:
    """Its failure probability is 10⁻³ a run; a hundredth of it is exceeded, so it is not vacuous."""
    trace = dpb.simulate(dpb.LinUCB(), dpb.worlds.SphereContexts(), 1000, 3, seed=0, progress=False)
    worst = float(trace.regret("lin-ucb")[:, -1].max())
    bound = regret_bound(1000, 5, 1e-3, **PLAIN)
    assert bound / 100 < worst < bound


@pytest.mark.parametrize(
    "call",
    [
        lambda: regret_bound(0, 2, 0.1, **PLAIN),
        lambda: regret_bound(10, 2, 1.0, **PLAIN),
        lambda: regret_bound(10, 2, 0.1, rho_min=0.0, rho_max=1.0),
        lambda: gap_regret_bound(10, 2, 0.1, 0.0, **PLAIN),
    ],
)
def test_bad_arguments_are_refused(call: object) -> None:
    with pytest.raises(dpb.errors.InvalidInput):
        call()  # type: ignore[operator]
