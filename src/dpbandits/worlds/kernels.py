"""Worlds whose mean reward is a function drawn from a kernel's space."""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems.kernel_contexts import KernelContexts, points, shares
from dpbandits.problems.kernels import Kernel, Matern, SquaredExponential
from dpbandits.recipes import FloatRows, Floats
from dpbandits.wording import counted
from dpbandits.worlds.environment import Environment


@dataclass(frozen=True)
class KernelWorld(Environment):
    """Contexts come by `weights`; a pair w pays ±`max_reward` with mean f(w).

    f = Σ a_i k(w_i, ·) with `centres` pairs w_i drawn uniformly and a_i ~ N(0, 1), rescaled to the norm
    `norm` in the kernel's space. Which f is part of the world: `seed` names it. `declared` are the
    weights a policy is told, where they are not the true ones.
    """

    kernel: Annotated[Kernel, "The kernel in whose space the mean reward lies."]
    contexts: Annotated[Floats | FloatRows, "The grid of contexts."]
    actions: Annotated[Floats | FloatRows, "The grid of actions."]
    norm: Annotated[float, "The norm of the mean reward in the kernel's space."] = field(
        default=1.0, kw_only=True
    )
    seed: Annotated[int, "Which mean reward it is."] = field(default=0, kw_only=True)
    centres: Annotated[int, "How many pairs the mean reward is made of."] = field(
        default=10, kw_only=True
    )
    max_reward: Annotated[float, "Rewards are plus or minus this."] = field(default=1.0, kw_only=True)
    weights: Annotated[Floats | None, "How often each context comes; equally often by default."] = field(
        default=None, kw_only=True
    )
    declared: Annotated[
        Floats | None, "What the problem says about the weights, where that is not the truth."
    ] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("contexts", "actions"):
            object.__setattr__(self, name, points(name, getattr(self, name)))
        for name in ("weights", "declared"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, shares(getattr(self, name), len(self.contexts)))
        checks.bound(norm=self.norm, max_reward=self.max_reward)
        checks.seed(self.seed)
        checks.integer(least=1, limit=checks.MOST_ACTIONS, centres=self.centres)
        if (largest := float(np.max(np.abs(self.means())))) > self.max_reward * (1.0 + 1e-9):
            raise InvalidInput(
                f"rewards of ±{self.max_reward:g} cannot have means up to {largest:g}: "
                f"expected a smaller norm than {self.norm:g}"
            )

    @classmethod
    def standard(cls, kernel: str = "squared-exponential", *, seed: int = 0) -> "KernelWorld":
        """20 contexts and 20 actions evenly on [0, 1], length scale 0.2."""
        kinds = {"squared-exponential": SquaredExponential(0.2), "matern": Matern(0.2)}
        chosen = kinds[checks.known("kernel", kernel, kinds)]
        grid = tuple((x,) for x in np.linspace(0.0, 1.0, 20).tolist())
        return cls(chosen, grid, grid, seed=seed)

    def problem(self, rounds: int | None) -> KernelContexts:
        """All but the function, with the declared weights."""
        return KernelContexts(
            self.kernel,
            self.contexts,
            self.actions,
            weights=self.weights if self.declared is None else self.declared,
            max_reward=self.max_reward,
            max_norm=self.norm,
            horizon=rounds,
        )

    def means(self) -> NDArray[np.float64]:
        """f, a row for each context."""
        chance = np.random.default_rng([self.seed, 7])
        rows = self.problem(None).features().rows
        centres = chance.integers(len(rows), size=self.centres)
        vector = np.einsum("i,im->m", chance.normal(size=self.centres), rows[centres])
        size = float(np.sqrt(np.sum(vector**2)))
        values = np.einsum("wm,m->w", rows, vector) * (self.norm / size if size > 0.0 else 0.0)
        return np.asarray(values.reshape(len(self.contexts), -1))

    def world(self) -> "KernelWorldState":
        """The means, the best of each context, and how contexts come."""
        means = self.means()
        return KernelWorldState(
            means, means.max(axis=1), np.cumsum(self._true_weights()), self.max_reward
        )

    def uniform_regret(self) -> float:
        """On average over contexts, the best mean minus the average mean."""
        means = self.means()
        return float(np.sum(self._true_weights() * (means.max(axis=1) - means.mean(axis=1))))

    def in_words(self) -> str:
        """How many contexts and actions."""
        contexts, actions = len(self.contexts), len(self.actions)
        return f"{counted(contexts, 'context')} and {counted(actions, 'action')} ({self.name()})"

    def _true_weights(self) -> NDArray[np.float64]:
        count = len(self.contexts)
        return np.full(count, 1.0 / count) if self.weights is None else np.array(self.weights)


class KernelWorldState(NamedTuple):
    """State of `KernelWorld`."""

    means: NDArray[np.float64]  # (contexts, actions)
    best: NDArray[np.float64]  # (contexts,)
    coming: NDArray[np.float64]  # cumulative weights
    bound: float

    def limits(self) -> Limits:
        """What no round changes."""
        return dict.fromkeys(("means", "best", "coming"), FROM_RECIPE)

    def offer(self, chance: Chance) -> int:
        """A context."""
        drawn = chance.random() * self.coming[self.coming.size - 1]
        context = 0
        while context < self.coming.size - 1 and drawn >= self.coming[context]:
            context += 1
        return context

    def pay(self, context: int, action: int, chance: Chance) -> float:
        """±bound with the pair's mean."""
        high = 0.5 + 0.5 * float(self.means[context, action]) / self.bound
        return self.bound if chance.random() < high else -self.bound

    def settle(self, context: int, action: int, reward: float) -> tuple[float, float, float]:
        """The best mean in this context, the pair's mean, the reward."""
        return self.best[context], self.means[context, action], reward
