"""What the policies of this family share: a table to choose from, and epochs that only count rounds."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, MOST, Limits
from dpbandits.problems.kernel_contexts import KernelContexts, bounded

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
# Tables that rounds in flight may have been decided with. Epochs grow, so that few are ever needed.
_SLOTS = 16


def epoch_limits(public: Any) -> Limits:
    """An epoch ends after the rounds that are closed, and no later than it is long."""
    done, length = int(public.round[0]), int(public.length[0])
    return {
        "round": COUNT,
        "next_pause": (done, done + length),
        "length": (1, MOST),
        "table": (0.0, 1.0),
    }


def limits_of_maps(maps: Array) -> tuple[Array, Array]:
    """No row is longer than the noise is for."""
    length = np.sqrt(np.einsum("wm,wm->w", maps, maps))[:, None]
    longest = np.abs(maps) / np.maximum(length / (1.0 + 1e-9), 1.0)
    return -longest, longest


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


class Tables(NamedTuple):
    """The tables that rounds in flight were decided with, oldest first; the last one is in play.

    Rounds are closed in the order of decisions, so that the number of the first decision made with each
    says with which one any round was decided. Tables and these numbers are public.
    """

    shares: Array  # (slots, |W|) how often each pair is played with it
    first: Integers  # (slots,) the first decision made with it
    size: Integers  # (1,) how many there are

    def limits(self) -> Limits:
        """At least one, and no more than there is room for."""
        return {"first": COUNT, "size": (1, self.first.size)}


def start_tables(shares: Array) -> Tables:
    """One, from the first decision on."""
    held = np.zeros((_SLOTS, shares.size))
    held[0] = shares
    return Tables(held, np.zeros(_SLOTS, np.int64), np.ones(1, np.int64))


def shares_between(tables: Tables, first: int, end: int) -> Array:
    """How often each pair is played on average in the rounds from `first` to before `end`."""
    count, mixed = int(tables.size[0]), np.zeros(tables.shares.shape[1])
    for place in range(count):
        last = end if place == count - 1 else min(end, int(tables.first[place + 1]))
        rounds = last - max(first, int(tables.first[place]))
        if rounds > 0:
            mixed += rounds / (end - first) * tables.shares[place]
    return mixed


def renew(public: Any, table: Array, weights: Array) -> None:
    """Play by this table from the next decision on.

    Where more than 16 would be in flight, the one in play stays for another epoch: what is known of each
    round's table is then still exact.
    """
    tables, closed = public.tables, int(public.round[0])
    decided, count = closed + int(public.waiting[0]), int(tables.size[0])
    gone = int(np.searchsorted(tables.first[1:count], closed, side="right"))  # with no round in flight
    for part in (tables.shares, tables.first):
        part[: count - gone] = part[gone:count].copy()
    count -= gone
    if tables.first[count - 1] == decided:
        count -= 1  # nothing was decided with it
    if count < tables.first.size:
        tables.shares[count], tables.first[count] = shares_of(table, weights), decided
        public.table[...] = table
        count += 1
    tables.size[0] = count


class Sums(NamedTuple):
    """The open epoch of a learner that is trusted with it."""

    sums: Array  # Σ y of each pair


class InEpochs:
    """The verbs that all states with epochs have in common."""

    def limits(self) -> Limits:
        """Those of its epoch."""
        return epoch_limits(self)

    def select(self: Any, context: int, explore: Chance) -> int:
        """An action from the table."""
        return pick(self.table, context, explore)


class TrustedEpochs(InEpochs):
    """Of a learner that holds raw data until an epoch ends."""

    def limits(self) -> Limits:
        """Those of its epoch, and what is in flight is counted."""
        return {"waiting": COUNT, **super().limits()}

    def release(self: Any, secret: Sums, noise: Noise) -> None:
        """Nothing between the ends of epochs."""

    def observe(self: Any, secret: Sums, context: int, action: int, reward: float) -> None:
        """Add the reward to its pair's sum."""
        secret.sums[context * self.table.shape[1] + action] += bounded(reward, self.bound)
        self.round[0] += 1


class LocalEpochs(InEpochs):
    """Of a server that adds up what people send."""

    def receive(self: Any, message: tuple[Array]) -> None:
        """Add it up."""
        (vector,) = message
        self.round[0] += 1
        for axis in range(self.total.size):
            self.total[axis] += vector[axis]
