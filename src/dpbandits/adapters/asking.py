"""A learner of arms for libraries that ask for one decision at a time, and may not answer it."""

from typing import Any

from dpbandits import checks
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.policies import Learner, TrustedPolicy
from dpbandits.problems import Arms


class Asked:
    """Started at the first question; asked again before an answer, it gives the same decision again.

    So a log that is replayed by rejection (Li et al. 2011) opens a round only for rows that match: a
    decision waits for the first row of its arm, and rows of other arms pass by. Where the log chose
    uniformly that is as good as a fresh decision for each row, since arms have no context. And it costs
    no privacy: one decision may be shown to many, and one reward at most comes back.
    """

    def __init__(self, policy: Any, *, horizon: int | None, seed: Any) -> None:
        if not isinstance(policy, TrustedPolicy) or not issubclass(Arms, policy.problem_kind):
            raise InvalidInput(
                "expected a policy for Arms such as NoiseAwareIMED(privacy=…), got "
                f"{checks.shown(policy)}"
            )
        if horizon is not None:
            checks.integer(least=1, horizon=horizon)
        self.policy, self.horizon, self.seed = policy, horizon, seed
        self.learner: Learner | None = None
        self._open: int | None = None

    def ask(self, arms: int) -> int:
        """The decision that is open, or a new one."""
        if self.learner is None:
            problem = Arms(arms, horizon=self.horizon)
            self.learner = self.policy.start(problem, seed=self.seed)
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
