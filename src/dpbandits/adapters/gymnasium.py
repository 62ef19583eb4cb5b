"""Worlds as environments of Gymnasium."""

from typing import Any

import numpy as np

from dpbandits import checks
from dpbandits.engine import bare, wrapped
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.extras import extra
from dpbandits.problems import (
    Arms,
    KernelContexts,
    LinearActions,
    LinearContexts,
    MatroidBases,
    Problem,
)
from dpbandits.problems.matroids.greedy import rebuild, start_greedy
from dpbandits.worlds import Environment

with extra("gymnasium"):
    import gymnasium
    from gymnasium import spaces


class GymnasiumWorld(gymnasium.Env[Any, Any]):
    """A world as a Gymnasium environment: a step is one person's round, an episode has `rounds` of them.

    The observation is the person's context: her features (actions × features), the number of her
    context, or 0 where there is none. An action is a number; where a basis of a matroid is chosen it is
    a score for each item, and the basis of the largest total score is played. The reward is what came of
    it, and `info` holds `action`, `reward` (of each item, where there are several), `regret` of this
    round, in expectation, and `total_regret`. Episodes end by truncation.

    What is lost: an environment pays rewards and protects nobody. Whoever learns from it without one of
    the policies of this package learns without privacy. `reset(seed=…)` draws from Gymnasium's own
    generator, so a run differs from that of `simulate` with the same seed.

    >>> import dpbandits as dpb
    >>> env = GymnasiumWorld(dpb.worlds.BernoulliArms([0.9, 0.1]), rounds=100)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> round(info["regret"], 3)
    0.8
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, world: Environment, rounds: int = 1_000) -> None:
        if not isinstance(world, Environment):
            raise InvalidInput(
                f"expected a world such as worlds.BernoulliArms([0.9, 0.1]), got {checks.shown(world)}"
            )
        checks.integer(least=1, rounds=rounds)
        self.world, self.rounds, self.problem = world, int(rounds), world.problem(rounds)
        self._state: Any = None
        self._context: Any = None
        self._round, self._total = 0, 0.0
        offered = world.world().offer(np.random.default_rng(0))
        self.observation_space, self.action_space = _spaces(self.problem, offered)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new episode; there are no options."""
        super().reset(seed=seed)
        self._state, self._round, self._total = self.world.world(), 0, 0.0
        return self._next_person(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One round: the next person's observation, the reward, and what is known about it."""
        if self._state is None or self._round >= self.rounds:
            raise RoundError("no episode is under way: call reset() first")
        if not self.action_space.contains(action):
            raise InvalidInput(f"expected an action of {self.action_space}, got {checks.shown(action)}")
        chosen = _best_basis(self.problem, action) if np.ndim(action) else int(action)
        context, state = self._context, self._state
        reward = state.pay(context, wrapped(chosen), self.np_random)
        best, mean, income = state.settle(context, wrapped(chosen), reward)
        self._round += 1
        self._total += best - mean
        told = {
            "action": chosen,
            "reward": np.copy(bare(reward))[()],
            "regret": float(best - mean),
            "total_regret": float(self._total),
        }
        return self._next_person(), float(income), False, self._round >= self.rounds, told

    def _next_person(self) -> Any:
        self._context = self._state.offer(self.np_random)
        seen = bare(self._context)
        if seen is None:
            return np.int64(0)
        if isinstance(seen, np.ndarray):
            one_row = isinstance(self.problem, LinearContexts) and self.problem.arms is not None
            return np.array(seen[0] if one_row else seen)
        return np.int64(seen)


def _best_basis(problem: Any, scores: Any) -> Any:
    greedy = start_greedy(problem.matroid.state(), problem.items)
    rebuild(greedy, np.asarray(scores, np.float64))
    return greedy.basis.copy()


def _spaces(problem: Problem, offered: Any) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Of observations and of actions."""
    nothing = spaces.Discrete(1)
    match problem:
        case Arms():
            return nothing, spaces.Discrete(problem.arms)
        case LinearActions():
            return nothing, spaces.Discrete(len(problem.features))
        case LinearContexts():
            shape, most = bare(offered).shape, problem.max_norm * (1.0 + 1e-9)
            if problem.arms is not None:  # one vector for all arms
                return spaces.Box(-most, most, shape[1:], np.float64), spaces.Discrete(problem.arms)
            return spaces.Box(-most, most, shape, np.float64), spaces.Discrete(shape[0])
        case KernelContexts():
            return spaces.Discrete(len(problem.contexts)), spaces.Discrete(len(problem.actions))
        case MatroidBases():
            return nothing, spaces.Box(0.0, 1.0, (problem.items,), np.float64)
    raise InvalidInput(f"there is no environment for {type(problem).__name__}")
