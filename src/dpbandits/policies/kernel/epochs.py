"""What the policies of this family share: a table to choose from, and epochs that only count rounds."""

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.errors import InvalidInput
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.kernel_contexts import KernelContexts

Array = NDArray[np.float64]


@register_jitable(forceinline=True)
def pick(table: Array, context: int, explore: Chance) -> int:
    """An action for the context, from cumulative probabilities (contexts, actions).

    Always an action of the problem, and one draw, whatever the table says.
    """
    drawn, last = explore.random(), table.shape[1] - 1
    action = 0
    while action < last and drawn >= table[context, action]:
        action += 1
    return action


def uniform_table(problem: KernelContexts) -> Array:
    """Every action equally likely in every context."""
    return cumulative(np.ones((len(problem.contexts), len(problem.actions)), np.int64))


def cumulative(counts: Any) -> Array:
    """Cumulative probabilities of each row of whole numbers; the last is 1 exactly."""
    sums = np.cumsum(np.asarray(counts), axis=1)
    return np.asarray(sums / sums[:, -1:])


def shares_of(table: Array, weights: Array) -> Array:
    """q(w) = κ(c)·π(x | c) for every pair: public, since the table and the weights are."""
    return np.asarray((np.diff(table, axis=1, prepend=0.0) * weights[:, None]).ravel())


def promise(budget: Budget, trust: str, problem: KernelContexts) -> Guarantee:
    """The budget itself, for one person's context and reward, for any number of rounds."""
    return Guarantee(
        budget=budget,
        unit=Unit.ROUND,
        trust=Trust[trust.upper()],
        public=problem.public_facts(),
    )


# No Gaussian generator gets further from the location than this many scales.
_REACH = 40.0


def noisy_vector(content: Any, size: int, bound: float, scale: float) -> tuple[Array]:
    """The content of a message: one vector, each number within reach of noise around ±bound."""
    vector = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not (isinstance(vector, list) and len(vector) == size):
        raise InvalidInput(f"expected the content of a message to be a list of {size} numbers")
    values = np.array([checks.number("content", value) for value in vector])
    limit = 1.001 * bound + _REACH * scale
    if not (np.abs(values) <= limit).all():
        raise InvalidInput(f"expected the numbers of a message to be at most {limit:g} in size")
    return (values,)
