"""A policy at work: `select` an action, then `update` with its reward, or `skip`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandits.engine import Streams, implementation, is_paused
from dpbandits.engine.loop import compiled_for
from dpbandits.errors import HorizonReached, RoundError
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems import Problem

if TYPE_CHECKING:
    from dpbandits.policies.policy import Policy


class Learner:
    """Decides for one person at a time and learns from what each person did.

    A round is opened by `select` and closed by `update` or `skip`; a second `select` skips the first.
    Every round counts, with or without a reward. Only the actions are safe to publish: nothing else
    here is, and nothing else is printed.
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
        self._last = self.guarantee.horizon if self.guarantee.is_private else None
        if compiled:
            code = compiled_for(public)
            self._release, self._select, self._observe = code.release, code.select, code.observe
        else:
            self._release, self._select, self._observe = (
                implementation(verb, type(public)) for verb in ("release", "select", "observe")
            )

    def __repr__(self) -> str:
        return f"<Learner {self.policy!r} on {self.problem!r}, {self.rounds} rounds>"

    @property
    def rounds(self) -> int:
        """Rounds closed so far."""
        return self._rounds

    @property
    def spent(self) -> Budget | None:
        """What the rounds so far have really cost; None where the policy cannot tell."""
        return self.policy.spent(self._public)

    def select(self, *offered: Any) -> Any:
        """Choose an action for the next person; `offered` is her context, where there is one."""
        context = self.problem.context(*offered)
        rounds = self._rounds + (self._open is not None)
        if self._last is not None and rounds >= self._last:
            raise HorizonReached(
                f"the guarantee covers {self._last:,} rounds and they are used up; "
                "start a new learner with a longer horizon"
            )
        if self._open is not None:
            self.skip()
        if is_paused(self._public, self._rounds):
            pause = implementation("pause", type(self._public))
            pause(self._public, self._secret, self._streams.noise)
        self._release(self._public, self._secret, self._streams.noise)
        action = self._select(self._public, context, self._streams.explore)
        if isinstance(action, np.integer):
            action = int(action)
        elif isinstance(action, np.ndarray):
            action = action.copy()
        self._open = (context, action)
        return action

    def update(self, action: Any, reward: Any) -> None:
        """Close the open round with the reward of its action."""
        context = self._opened(action)
        self._close(context, action, self.problem.reward(reward))

    def skip(self) -> None:
        """Close the open round without a usable reward."""
        if self._open is None:
            raise RoundError("no round is open: call select() first")
        context, action = self._open
        self._close(context, action, self.problem.missing)

    def save(self, path: str | Path) -> Path:
        """Write everything needed to go on to a file that only its owner may read.

        The file holds **raw, unprotected data**. It may be continued once: `dpbandits.load`.
        """
        from dpbandits.policies.saving import save

        return save(self, Path(path))

    def _opened(self, action: Any) -> Any:
        if self._open is None:
            raise RoundError("no round is open: call select() before update()")
        context, chosen = self._open
        if not (action is chosen or np.array_equal(action, chosen)):
            raise RoundError(f"the open round chose action {chosen!r}, got an update for {action!r}")
        return context

    def _close(self, context: Any, action: Any, reward: Any) -> None:
        self._open = None
        self._rounds += 1
        self._observe(self._public, self._secret, context, action, reward)
