"""Playing arms in batches: what the policies that do so share.

Every arm has an open batch, into which its rounds go when they are closed. A batch is released at the
first decision at which it holds at least its planned length (`sums/batches.py`); its size is what it
holds by then. With one round at a time that is the length exactly. With several in flight, or closed
by a clock, rounds of other batches come in between, and many at once.

An episode is a run of decisions for one arm, until its open batch is decided. So it ends when they are
*made*, which is long before they are closed if many are in flight, and also when any batch is full. Then
the policy chooses again, and counts a batch that is decided but not released as if it had come back like
those before: otherwise all that are in flight would go to one arm.

Fields of a state: `turns` is the policy's own, `waiting` is counted by the engine (`engine/flight.py`),
`away` is set from outside (`changes.py`): arms that are not to be chosen. All are counts of decisions or
public facts.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance
from dpbandits.engine.state import ANYTHING, COUNT, FLAG, MOST, Limits, exactly
from dpbandits.policies.arms.shared.tally import (
    Due,
    Integers,
    any_due,
    is_due,
    make_due,
    nothing_due,
    take_due,
)
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.batches import Buffers

Episode = NDArray[np.int64]
# Places in an episode: its arm, where that can be played without asking for another; its arm; and the
# decisions left, counted where rounds are in flight: with one at a time it ends as its batch is full.
NEXT, ARM, LEFT = 0, 1, 2


class Turns(NamedTuple):
    """For every arm its released batches, and its open one."""

    plays: Integers  # decisions in released batches
    length: Integers  # decisions planned for the open batch
    left: Integers  # of them, not closed yet; below 0 where it holds more
    unknown: Integers  # (1,) arms without a released batch
    full: Due  # arms whose batch is

    def limits(self) -> Limits:
        """A batch is full exactly if nothing of it is left."""
        is_full = is_due(self.full)
        return {
            "plays": COUNT,
            "length": (1, MOST),
            "left": (np.where(is_full, -MOST, 1), np.where(is_full, 0, self.length)),
            "unknown": exactly(np.count_nonzero(self.plays == 0)),
        }

    def observed(self) -> int:
        """Rounds closed so far."""
        return int((self.plays + self.length - self.left).sum())


def start_turns(problem: Arms, first_batch: int) -> dict[str, Any]:
    """The fields `turns`, `waiting` and `away` of a state in which nothing was played."""
    arms = problem.slots
    return {
        "turns": Turns(
            plays=np.zeros(arms, np.int64),
            length=np.full(arms, first_batch, np.int64),
            left=np.full(arms, first_batch, np.int64),
            unknown=np.full(1, arms, np.int64),
            full=nothing_due(arms),
        ),
        "waiting": np.zeros(arms, np.int64),
        "away": np.arange(arms) >= problem.arms,
    }


def start_episode() -> Episode:
    """No episode under way."""
    return np.full(3, -1, np.int64)


def episode_limits(arms: int) -> tuple[Any, Any]:
    """An arm that there is, or none."""
    return np.array([-1, -1, -MOST]), np.array([arms - 1, arms - 1, MOST])


@register_jitable(forceinline=True)
def fill(turns: Turns, buffers: Buffers, arm: int, reward: float) -> bool:
    """Put a closed round into its arm's batch; a missing reward is counted as exactly nothing.

    True if the batch is now full.
    """
    buffers.open[arm, 0] += centred(reward)
    turns.left[arm] -= 1
    if turns.left[arm] == 0:
        make_due(turns.full, arm)
        return True
    return False


@register_jitable(forceinline=True)
def close_batch(turns: Turns) -> tuple[int, int]:
    """Count a full batch as released: its arm and size."""
    arm = take_due(turns.full)
    size = int(turns.length[arm] - turns.left[arm])
    if turns.plays[arm] == 0:
        turns.unknown[0] -= 1
    turns.plays[arm] += size
    return arm, size


@register_jitable(forceinline=True)
def open_batch(turns: Turns, arm: int, length: int) -> None:
    """Plan an arm's next batch."""
    turns.length[arm] = length
    turns.left[arm] = length


@register_jitable
def plan_again(turns: Turns, arm: int, length: int) -> None:
    """Plan an arm's open batch anew, which keeps what is closed of it and ends with a later round."""
    closed = turns.length[arm] - turns.left[arm]
    turns.length[arm] = max(length, closed + 1)
    turns.left[arm] = turns.length[arm] - closed


@register_jitable(forceinline=True)
def decisions(public: Any, arm: int) -> int:
    """All decisions for an arm: released, in its open batch, in flight."""
    turns = public.turns
    return int(turns.plays[arm] + turns.length[arm] - turns.left[arm] + public.waiting[arm])


@register_jitable(forceinline=True)
def is_known(public: Any, arm: int) -> bool:
    """Whether an arm can be judged: it is in play, and a batch of it was released."""
    return bool(public.turns.plays[arm] > 0 and not public.away[arm])


@register_jitable(forceinline=True)
def is_awaited(public: Any, arm: int) -> bool:
    """Whether an arm's open batch is decided to its end, so that it will be released without more."""
    return bool(public.waiting[arm] >= public.turns.left[arm])


@register_jitable(forceinline=True)
def first_needed(public: Any) -> int:
    """The arm to play before any is judged, −1 if there is none.

    That is the first whose first batch is not even decided; and while nothing is known of any arm in
    play, the one with the fewest decisions.
    """
    return _first_needed(public) if public.turns.unknown[0] > 0 else -1


@register_jitable
def _first_needed(public: Any) -> int:
    turns, least, known = public.turns, -1, False
    for arm in range(turns.plays.size):
        if public.away[arm]:
            continue
        if turns.plays[arm] > 0:
            known = True
        elif not is_awaited(public, arm):
            return arm
        if least < 0 or decisions(public, arm) < decisions(public, least):
            least = arm
    return -1 if known else least


@register_jitable(forceinline=True)
def any_full(public: Any) -> bool:
    """Whether a batch is to be released. That ended the episode, so that one look at it does."""
    return bool(public.episode[NEXT] < 0 and any_due(public.turns.full))


@register_jitable(forceinline=True)
def arm_in_turn(public: Any) -> int:
    """The arm of the episode, unless another is needed first; −1 if one is to be chosen."""
    arm = int(public.episode[NEXT])
    return arm if arm >= 0 else _asked(public)


@register_jitable
def _asked(public: Any) -> int:
    arm = first_needed(public)
    if arm < 0:
        arm = int(public.episode[ARM])
        if arm >= 0 and public.away[arm]:
            arm = -1
    return arm


@register_jitable
def untried(public: Any, explore: Chance) -> int:
    """The arm whose first batch is being decided, or one not begun, at random; −1 if there is none."""
    turns, found, others = public.turns, -1, 0
    for arm in range(turns.plays.size):
        if public.away[arm] or turns.plays[arm] > 0 or is_awaited(public, arm):
            continue
        if not is_untouched(public, arm):
            return arm
        others += 1
        if explore.random() * others < 1.0:
            found = arm
    return found


@register_jitable(forceinline=True)
def is_untouched(public: Any, arm: int) -> bool:
    """Whether no decision of an arm's open batch was made."""
    return bool(public.waiting[arm] == 0 and public.turns.left[arm] == public.turns.length[arm])


@register_jitable(forceinline=True)
def begin_episode(public: Any, arm: int, length: int) -> int:
    """Play this arm until its open batch is decided, or for a batch of this length if it is."""
    missing = public.turns.left[arm] - public.waiting[arm]
    public.episode[ARM] = arm
    public.episode[LEFT] = missing if missing > 0 else length
    if public.turns.unknown[0] == 0:  # otherwise one of the unknown may come in at any time
        public.episode[NEXT] = arm
    return arm


@register_jitable(forceinline=True)
def end_episode(public: Any) -> None:
    """Choose again: something is known that was not, or enough is in flight."""
    public.episode[NEXT] = -1
    public.episode[ARM] = -1


@register_jitable(forceinline=True)
def alike(public: Any, arm: int) -> float:
    """By what an arm's released decisions grow if its open batch comes back like them.

    1 while decisions for that are still to be made: it would not be released without them, and what
    was not seen would speak against an arm for as long as it is not played.
    """
    if is_awaited(public, arm):
        return decisions(public, arm) / float(public.turns.plays[arm])
    return 1.0


class InTurn:
    """The verbs that states which play arms in episodes have in common."""

    def limits(self: Any) -> Limits:
        """Limits for arms that exist; a score may be anything."""
        episode = episode_limits(self.away.size)
        return {"waiting": COUNT, "away": FLAG, "episode": episode, "score": ANYTHING}

    def observe(self: Any, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's open batch."""
        if fill(self.turns, secret, action, reward):
            end_episode(self)

    def rounds_ahead(self: Any, action: int) -> int:
        """The rounds of the arm's open batch that are left: its episode ends with them.

        Before arms are compared it is the first whose first batch is not full, which is no other then.
        """
        return int(self.turns.left[action])

    def observe_many(self: Any, secret: Buffers, action: int, count: int, total: float) -> None:
        """Fill the arm's open batch with rewards that are 0 or 1: halves, whose sums are exact."""
        secret.open[action, 0] += total - 0.5 * count
        self.turns.left[action] -= count
        if self.turns.left[action] == 0:
            make_due(self.turns.full, action)
            end_episode(self)

    def lingers(self: Any) -> bool:
        """Outside of episodes, batches are released and arms are compared."""
        return bool(self.episode[NEXT] < 0)

    def wait(self: Any, action: int, change: int) -> None:
        """Count a decision into or out of those in flight, and into those of the episode."""
        self.waiting[action] += change
        if change > 0 and action == self.episode[ARM]:
            self.episode[LEFT] -= 1
            if self.episode[LEFT] == 0:
                end_episode(self)
