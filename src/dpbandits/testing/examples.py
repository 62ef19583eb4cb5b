"""Small standard worlds, budgets and recipes that the suites are run on."""

from dpbandits.policies import Policy
from dpbandits.policies.arms import UniformArms
from dpbandits.policies.kernel import UniformKernelActions
from dpbandits.policies.linear import UniformActions
from dpbandits.policies.matroid import UniformBases
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.problems import (
    Arms,
    KernelContexts,
    LinearContexts,
    LinearMatroid,
    MatroidBases,
    Problem,
    SquaredExponential,
)
from dpbandits.worlds import (
    BernoulliArms,
    Environment,
    KernelWorld,
    MatroidArms,
    SphereContexts,
)

_BUDGETS: tuple[Budget, ...] = (
    PureDP(1.0),
    ApproxDP(1.0, 1e-6),
    GaussianDP(1.0),
    ZeroConcentratedDP(0.5),
    RenyiDP(8.0, 4.0),
    NonPrivate(),
)
# With a loop, which pays well and must never be played, and two parallel vectors.
_MATROID = LinearMatroid(((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (2, 0, 0), (0, 0, 0)))
_ENVIRONMENTS: dict[type[Problem], Environment] = {
    Arms: BernoulliArms((0.8, 0.5, 0.2)),
    MatroidBases: MatroidArms(_MATROID, (0.8, 0.75, 0.6, 0.2, 0.4, 0.9)),
    LinearContexts: SphereContexts(dim=2, actions=3, gap=0.3),
    KernelContexts: KernelWorld(
        SquaredExponential(0.3), ((0.0,), (1.0,)), ((0.0,), (0.5,), (1.0,)), norm=1.8, centres=5, seed=26
    ),
}

_UNIFORM: tuple[Policy, ...] = (UniformArms(), UniformActions(), UniformBases(), UniformKernelActions())


def uniform_policy(problem: Problem) -> Policy:
    """The policy that plays this problem at random."""
    return next(policy for policy in _UNIFORM if isinstance(problem, policy.problem_kind))


def example_budget(kind: type[Budget]) -> Budget:
    """A middling budget of this kind."""
    return next(budget for budget in _BUDGETS if type(budget) is kind)


def example_environment(problem_kind: type[Problem]) -> Environment:
    """A small world for this kind of problem, in which choosing well pays."""
    return next(world for kind, world in _ENVIRONMENTS.items() if issubclass(kind, problem_kind))


def example_policies(kind: type[Policy]) -> list[Policy]:
    """The policy at the kinds of budget that it accepts, everything else at its default.

    (ε, δ), zCDP and Rényi budgets are met by the same calibration as μ ones, and are left out.
    """
    left_out = {ApproxDP, ZeroConcentratedDP, RenyiDP} if GaussianDP in kind.accepts else set()
    return [kind(privacy=example_budget(one)) for one in kind.accepts if one not in left_out]
