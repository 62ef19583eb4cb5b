"""A policy at work: `select` an action, then `update` with its reward, or `skip`."""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpbandits.engine import Streams, check_policy_verbs, decide, is_local, learn, pause_if_due, wrapped
from dpbandits.engine.loop import compiled_for
from dpbandits.errors import HorizonReached, InvalidInput, PrivacyError, RoundError
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems import Problem

if TYPE_CHECKING:
    from dpbandits.policies.policy import Policy


class Learner:
    """Decides for one person at a time and learns from what each person did.

    A round is opened by `select` and closed by `update` or `skip`; a second `select` skips the first.
    Every round counts, with or without a reward. Only the actions are safe to publish: nothing else
    here is, and nothing else is printed. It may be used from several threads, one call at a time.
    """

    def __init__(
        self,
        policy: "Policy",
        problem: Problem,
        public: Any,
        secret: Any,
        streams: Streams,
        *,
        seeded: bool,
        compiled: bool = False,
    ) -> None:
        self.policy, self.problem = policy, problem
        self.guarantee: Guarantee = policy.guarantee(problem)
        self._public, self._secret = public, secret
        self._streams, self._seeded = streams, seeded
        self._rounds = 0
        self._open: tuple[Any, Any] | None = None  # the context and action of the open round
        self._busy: str | None = None  # the call that is changing the state, or was cut short doing so
        self._ended: str | None = None
        self._lock, self._process = threading.Lock(), os.getpid()
        self._last = self.guarantee.horizon if self.guarantee.is_private else None
        # Only a rehearsal of the local model draws when it learns: it is the person's own noise. Handing
        # a generator to compiled code takes as long as all the rest.
        self._reporting = streams.noise if is_local(type(public)) else None
        check_policy_verbs(type(public))
        if compiled:
            code = compiled_for(public)
            self._decide = code.decide
            self._learn = code.learn
        else:
            self._decide, self._learn = decide, learn

    def __repr__(self) -> str:
        return f"<Learner {self.policy!r} on {self.problem!r}, {self.rounds} rounds>"

    def __copy__(self) -> NoReturn:
        raise PrivacyError(
            "a learner cannot be copied: both copies would use the same noise; use save()"
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__copy__()

    @property
    def rounds(self) -> int:
        """Rounds closed so far."""
        return self._rounds

    @property
    def spent(self) -> Budget | None:
        """What the decisions so far have cost the person they cost most; see `Policy.spent`."""
        return self.policy.spent(self._public)

    def select(self, *offered: Any) -> Any:
        """Choose an action for the next person; `offered` is her context, where there is one.

        One round is open at a time: if the last person's still is, it is closed first, as by `skip`.
        """
        context = self.problem.context(*offered)
        with self._lock:
            self._refuse_if_unfit()
            rounds = self._rounds + (self._open is not None)
            if self._last is not None and rounds >= self._last:
                raise HorizonReached(
                    f"the guarantee covers {self._last:,} rounds and they are used up; "
                    "start a new learner with a longer horizon"
                )
            self._busy = "select"
            if self._open is not None:
                self._close(self.problem.missing)
            noise, explore = self._streams.noise, self._streams.explore
            pause_if_due(self._public, self._secret, noise, self._rounds)
            chosen = self._decide(self._public, self._secret, context, noise, explore)
            action: Any = chosen[0].copy() if type(chosen) is tuple else int(chosen)
            self._open = (context, action)
            self._busy = None
        # A basis that the caller sorts or renumbers must not change the one that is learned from.
        return action if type(action) is int else action.copy()

    def update(self, action: Any, reward: Any) -> None:
        """Close the open round with the reward of its action."""
        with self._lock:
            self._refuse_if_unfit()
            if self._open is None:
                raise RoundError("no round is open: call select() before update()")
            chosen = self._open[1]
            if action is not chosen and not np.array_equal(action, chosen):
                raise RoundError(f"the open round chose action {chosen!r}, got an update for {action!r}")
            value = self.problem.reward(reward)
            if type(chosen) is not int and np.shape(value) != np.shape(chosen):
                raise InvalidInput(
                    f"expected a reward for each of the {np.size(chosen)} items chosen, "
                    f"got {np.size(value)}"
                )
            self._busy = "update"
            self._close(value)
            self._busy = None

    def skip(self) -> None:
        """Close the open round without a usable reward."""
        with self._lock:
            self._refuse_if_unfit()
            if self._open is None:
                raise RoundError("no round is open: call select() first")
            self._busy = "skip"
            self._close(self.problem.missing)
            self._busy = None

    def save(self, path: str | Path) -> Path:
        """Write all that is needed to go on to a file only its owner may read, and end this learner.

        The file holds **raw, unprotected data**, and may be continued once: ``dpbandits.load(path)``. If
        this object went on as well, the same people would be released twice.
        """
        from dpbandits.policies.saving import save

        with self._lock:
            self._refuse_if_unfit()
            if self._open is not None:
                raise RoundError("a round is open: update() or skip() it before save()")
            written = save(self, Path(path))
            self._ended = f"it was saved; go on with dpbandits.load({str(written)!r})"
        return written

    def _refuse_if_unfit(self) -> None:
        """A learner works in the process that made it, until it ends or a call is cut short."""
        if self._process != os.getpid():
            raise PrivacyError("a learner does not survive a fork: both copies would use the same noise")
        if self._ended is not None:
            raise RoundError(f"this learner has ended: {self._ended}")
        if self._busy is not None:
            raise RoundError(
                f"an earlier {self._busy}() was cut short and may have done half its work; "
                "load a save or start again"
            )

    def _close(self, reward: Any) -> None:
        assert self._open is not None
        context, action = self._open
        if type(action) is not int:
            action, reward = wrapped(action), wrapped(reward)
        self._open = None
        self._rounds += 1
        self._learn(self._public, self._secret, context, action, reward, self._reporting)
