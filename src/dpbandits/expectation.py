"""What to expect of a policy, by a quick simulation of a standard instance of the problem's size."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.problems import (
    Arms,
    KernelContexts,
    LinearActions,
    LinearContexts,
    MatroidBases,
    Problem,
)
from dpbandits.simulation import simulate
from dpbandits.wording import ROUNDING, counted
from dpbandits.worlds import (
    BernoulliArms,
    DisjointContexts,
    Environment,
    FixedActions,
    KernelWorld,
    MatroidArms,
    SphereContexts,
)

# Below this share of what can be gained over uniform play, a policy hardly learns.
_LITTLE = 0.25
_ROUNDS, _RUNS = 100_000, 4
# Rounds times numbers looked at in each: what some seconds allow.
_WORK = 4e7
_ANY_ROUND = 20
_ACTIONS = 25


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Mean regret on a standard instance, beside that of uniform and of non-private play.

    `complete` says whether that were all rounds of the horizon: more may take too long.
    """

    instance: str
    rounds: int
    runs: int
    complete: bool
    regret: float
    without_privacy: float | None  # None for a policy that is not private itself
    uniform: float

    def gain(self, regret: float) -> float:
        """What a regret leaves of what there is to gain: 1 for the best action, 0 for uniform play."""
        return 1.0 - regret / self.uniform if self.uniform > ROUNDING else 1.0

    @property
    def is_little(self) -> bool:
        """Whether it is hardly better than uniform play, over the whole horizon."""
        return self.complete and self.gain(self.regret) < _LITTLE

    def __str__(self) -> str:
        said = f"Simulated on {self.instance}, {self.played()}: "
        said += f"regret {self.regret:,.0f}, uniform play {self.uniform:,.0f}"
        if self.without_privacy is not None:
            said += f", without privacy {self.without_privacy:,.0f}"
        said += "."
        return f"{said} {self.warning()}" if self.is_little else said

    def played(self) -> str:
        """The rounds, in words."""
        if self.complete:
            return counted(self.rounds, "round")
        some = f"the first {counted(self.rounds, 'round')}"
        return f"{some} (all would take too long; early ones lose most)"

    def warning(self) -> str:
        """The sentence where a budget leaves little."""
        share = max(0.0, self.gain(self.regret))
        return (
            f"Expect little better than uniform play: {100 * share:.0f} % of what the best action gains "
            "over it. More rounds, a larger budget or a smaller problem help."
        )


def expect(
    policy: Policy,
    problem: Problem,
    *,
    rate: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Expectation:
    """Play a policy and its non-private twin on a standard instance of the problem's size.

    Arms have means from 0.75 to 0.25, or with a `rate` from one and a half times to half of that.
    """
    world, instance, size = _standard(problem)
    if rate is not None and isinstance(problem, Arms):
        world = BernoulliArms(_means(problem.arms, rate))
        instance = world.in_words()
    wanted = problem.horizon or _ROUNDS
    rounds = min(wanted, max(1000, int(_WORK / (size + _ANY_ROUND))))
    twin = policy.twin()
    trace = simulate(
        {"policy": policy} | ({} if twin is None else {"twin": twin}),
        world,
        rounds,
        _RUNS,
        seed,
        progress=progress,
        points=1,
        rounds_per_person=problem.rounds_per_person,
    )
    regret = {label: float(trace.regret(label)[:, -1].mean()) for label in trace.policies}
    return Expectation(
        instance=instance,
        rounds=rounds,
        runs=_RUNS,
        complete=rounds == wanted,
        regret=regret["policy"],
        without_privacy=regret.get("twin"),
        uniform=world.uniform_total(rounds),
    )


class _Instance(NamedTuple):
    """A world of the problem's size, in words, and how many numbers a round looks at."""

    world: Environment
    words: str
    size: int


def _means(count: int, rate: float = 0.5) -> tuple[float, ...]:
    """Evenly about the rate, shuffled: many policies try arms in the order they are given."""
    means = np.linspace(min(1.0, 1.5 * rate), 0.5 * rate, count)
    return tuple(np.random.default_rng(0).permutation(means).tolist())


def _work(dim: int, actions: int, blocks: int = 1) -> int:
    """Of a linear policy: scores, Gram matrices and, every now and then, their decomposition."""
    return dim * (blocks * dim + actions) + blocks * dim**3 // 10


@functools.singledispatch
def _standard(problem: Problem) -> _Instance:
    raise InvalidInput(f"there is no standard instance of {checks.shown(problem)} yet")


@_standard.register
def _(problem: Arms) -> _Instance:
    world = BernoulliArms(_means(problem.arms))
    return _Instance(world, world.in_words(), problem.arms)


@_standard.register
def _(problem: LinearContexts) -> _Instance:
    if problem.arms is not None:
        words = f"{problem.arms} arms and {counted(problem.dim, 'feature')} (disjoint-contexts)"
        size = _work(problem.dim, problem.arms, problem.arms)
        return _Instance(DisjointContexts(problem.dim, problem.arms), words, size)
    dim = max(2, problem.dim)  # in one dimension there are no directions to learn
    words = f"{dim} features and {_ACTIONS} actions (sphere-contexts)"
    return _Instance(SphereContexts(dim, _ACTIONS), words, _work(dim, _ACTIONS))


@_standard.register
def _(problem: LinearActions) -> _Instance:
    actions, dim = np.shape(problem.features)
    words = f"{counted(dim, 'feature')} and {actions} actions (fixed-actions:public=true)"
    return _Instance(FixedActions(dim, actions, public=True), words, _work(dim, actions))


@_standard.register
def _(problem: MatroidBases) -> _Instance:
    world = MatroidArms(problem.matroid, _means(problem.items))
    return _Instance(world, world.in_words(), problem.items)


@_standard.register
def _(problem: KernelContexts) -> _Instance:
    world = KernelWorld(problem.kernel, problem.contexts, problem.actions, max_reward=problem.max_reward)
    return _Instance(world, world.in_words(), problem.pairs)
