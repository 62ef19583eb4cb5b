"""What `recommend` says about what to expect."""

import pytest

import dpbandits as dpb
from dpbandits.errors import InvalidInput
from dpbandits.expectation import Expectation, _standard, expect

KERNELS = dpb.worlds.KernelWorld.standard().problem(None)
FEATURES = [(1.0, 0.0), (0.0, 1.0), (0.6, 0.6)]


@pytest.mark.parametrize(
    "problem",
    [
        dpb.Arms(7),
        dpb.LinearContexts(3),
        dpb.LinearContexts(3, arms=4),
        dpb.MatroidBases(dpb.matroids.UniformMatroid(6, 2)),
        KERNELS,
    ],
)
def test_the_standard_instance_is_of_the_problems_size(problem: dpb.Problem) -> None:
    made = _standard(problem).world.problem(None)
    assert type(made) is type(problem)
    for size in ("arms", "dimension", "items", "pairs"):
        if getattr(problem, size, None) is not None:
            assert getattr(made, size) == getattr(problem, size)


def test_a_fixed_set_of_actions_has_a_fixed_set_of_the_same_shape() -> None:
    made = _standard(dpb.LinearActions(FEATURES)).world.problem(None)
    assert isinstance(made, dpb.LinearActions) and len(made.features) == 3 and made.dimension == 2


def test_little_is_said_to_be_little() -> None:
    facts = {"instance": "x", "rounds": 10, "runs": 1, "without_privacy": 2.0, "uniform": 100.0}
    good = Expectation(regret=5.0, complete=True, **facts)  # type: ignore[arg-type]
    assert good.gain(good.regret) == pytest.approx(0.95) and not good.is_little
    assert str(good) == "Simulated on x, 10 rounds: regret 5, uniform play 100, without privacy 2."
    poor = Expectation(regret=90.0, complete=True, **facts)  # type: ignore[arg-type]
    assert "little better than uniform play: 10 % of" in str(poor)
    alike = Expectation(regret=0.0, complete=True, **(facts | {"uniform": 0.0}))  # type: ignore[arg-type]
    assert alike.gain(0.0) == 1.0  # where all actions are equal there is nothing to lose
    # The first rounds of a long horizon say nothing about what is learned by its end.
    assert not Expectation(regret=90.0, complete=False, **facts).is_little  # type: ignore[arg-type]


def test_a_policy_without_privacy_has_no_twin_to_compare_with() -> None:
    found = expect(dpb.arms.UniformArms(), dpb.Arms(3, horizon=2000))
    assert found.without_privacy is None and found.rounds == 2000
    assert found.regret == pytest.approx(found.uniform, rel=0.2) and found.is_little


def test_a_problem_of_ones_own_has_no_standard_instance() -> None:
    with pytest.raises(InvalidInput, match="no standard instance"):
        _standard(dpb.Problem())  # type: ignore[abstract]


def test_what_is_expected_is_about_such_rates() -> None:
    """Two in a hundred at most, where one is declared; and what is left out is said."""
    problem = dpb.Arms(10, horizon=5000)
    clicks = dpb.recommend(problem, dpb.PureDP(1.0), rate=0.01)
    assert "means 0.015 to 0.005" in str(clicks.expect(problem))
    assert clicks.expect(problem).uniform == pytest.approx(0.005 * 5000)
    assert "means 0.75 to 0.25" in str(dpb.recommend(problem, dpb.PureDP(1.0)).expect(problem))
    part = Expectation(
        instance="x", rounds=10, runs=1, complete=False, regret=1.0, without_privacy=None, uniform=2.0
    )
    assert str(part).startswith("Simulated on x, the first 10 rounds (all would take too long")
