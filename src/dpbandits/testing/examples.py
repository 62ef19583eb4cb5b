"""Small standard worlds, budgets and recipes that the suites are run on."""

from dpbandits.environments import BernoulliArms, Environment, KernelWorld
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.problems import Arms, KernelContexts, Problem, SquaredExponential

_BUDGETS: tuple[Budget, ...] = (
    PureDP(1.0),
    ApproxDP(1.0, 1e-6),
    GaussianDP(1.0),
    ZeroConcentratedDP(0.5),
    RenyiDP(8.0, 4.0),
    NonPrivate(),
)
_ENVIRONMENTS: dict[type[Problem], Environment] = {
    Arms: BernoulliArms((0.8, 0.5, 0.2)),
    KernelContexts: KernelWorld(
        SquaredExponential(0.3), ((0.0,), (1.0,)), ((0.0,), (0.5,), (1.0,)), norm=1.8, centres=5, seed=26
    ),
}


def example_budget(kind: type[Budget]) -> Budget:
    """A middling budget of this kind."""
    return next(budget for budget in _BUDGETS if type(budget) is kind)


def example_environment(problem_kind: type[Problem]) -> Environment:
    """A small world for this kind of problem, in which choosing well pays."""
    return _ENVIRONMENTS[problem_kind]


def example_policies(kind: type[Policy]) -> list[Policy]:
    """The policy at the kinds of budget that it accepts, everything else at its default.

    (ε, δ), zCDP and Rényi budgets are met by the same calibration as μ ones, and are left out.
    """
    left_out = {ApproxDP, ZeroConcentratedDP, RenyiDP} if GaussianDP in kind.accepts else set()
    return [kind(privacy=example_budget(one)) for one in kind.accepts if one not in left_out]
