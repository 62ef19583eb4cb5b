"""A learner of arms for libraries that ask for one decision at a time, and may not answer it."""

from typing import Any

from dpbandits import checks
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.policies import Learner, TrustedPolicy
from dpbandits.problems import Arms

# What decides which decisions are answered, when one waits for a row of its arm.
_ON_A_LOG = "which decisions are answered, the actions and the length of the log"


class Asked:
    """Started at the first question; asked again before an answer, it closes that round without one.

    A round without a reward counts like any other. If it did not, a person who does not answer would
    move all who come later by one round, which no guarantee about one replaced reward covers.

    An answer names an arm and nobody. So one that comes after the next question must be thrown away: of
    the same arm it would be taken for the next person's, and whoever answers late would then change two
    rounds, her own and that one, where the guarantee pays for one. Where answers are late, use `decide`,
    whose tickets tell them apart.

    With `replay`, for logs alone, the decision that is open is given again instead. So a log that is
    replayed by rejection (Li et al. 2011) opens a round only for rows that match: a decision waits for
    the first row of its arm, and rows of other arms pass by. Where the log chose uniformly that is as
    good as a fresh decision for each row, since arms have no context. The guarantee then rests on the
    log's actions being public, for they decide what is answered, and it says so (`offline/replay.py`).
    """

    def __init__(self, policy: Any, *, horizon: int | None, seed: Any, replay: bool) -> None:
        if not isinstance(policy, TrustedPolicy) or not issubclass(Arms, policy.problem_kind):
            raise InvalidInput(
                "expected a policy for Arms such as NoiseAwareIMED(privacy=…), got "
                f"{checks.shown(policy)}"
            )
        if horizon is not None:
            checks.integer(least=1, horizon=horizon)
        checks.one_of((True, False), replay=replay)
        self.policy, self.horizon, self.seed, self.replay = policy, horizon, seed, replay
        self.learner: Learner | None = None
        self._open: int | None = None

    def ask(self, arms: int) -> int:
        """A new decision; on a log the one that is open, if one is."""
        if self.learner is None:
            problem = Arms(arms, horizon=self.horizon)
            self.learner = self.policy.start(problem, seed=self.seed)
            if self.replay:
                self.learner.rest_on(_ON_A_LOG)
        if self._open is not None and not self.replay:
            self._open = None
            self.learner.skip()
        if self._open is None:
            self._open = int(self.learner.select())
        return self._open

    def answer(self, arm: int, reward: Any) -> None:
        """The reward of the decision that is open."""
        if self.learner is None or self._open is None:
            raise RoundError("no decision is open: a reward must follow the decision that asked for it")
        self.learner.update(arm, reward)
        self._open = None

    def started(self) -> Learner:
        """The learner; before the first decision there is none."""
        if self.learner is None:
            raise RoundError("nothing was decided yet: the learner starts with the first decision")
        return self.learner
