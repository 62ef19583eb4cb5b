"""A policy for river's bandits, and in its evaluation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbandits.adapters.asking import Asked
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.policies import Learner, TrustedPolicy
from dpbandits.privacy import Guarantee

with extra("river"):
    from river import bandit


class RiverPolicy(bandit.base.Policy):
    """A policy for arms as a `river.bandit` policy: `pull`, then `update` with its reward.

    Works in `river.bandit.evaluate` and `evaluate_offline`. The arms of the first `pull` are those there
    are, for good. What river does otherwise: its own policies keep a statistic of raw rewards for each
    arm, which `ranking` and `print` show. Here both show what is released, and nothing else is kept. So
    there is no `reward_obj`, no `reward_scaler` (rewards are clipped to [0, 1]: scale them by numbers
    that are public) and no `burn_in`, which would pull arms that nobody decided on.

    `pull` before the last arm was answered makes that a round without a reward; an answer that comes
    later still must be thrown away, for it would be taken for the next person's. With `replay=True` it
    gives the same arm again, as `evaluate_offline` needs; that is for logs, never for people
    (`adapters/asking.py`). `clone` gives a policy that has not begun; with a `seed`, which is for tests,
    all clones draw the same.

    >>> import dpbandits as dpb
    >>> policy = RiverPolicy(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), seed=1)
    >>> arm = policy.pull(["red", "blue"])
    >>> policy.update(arm, 1.0)
    """

    def __init__(
        self,
        policy: TrustedPolicy,
        horizon: int | None = None,
        seed: int | None = None,
        replay: bool = False,
    ) -> None:
        super().__init__()
        self.policy, self.horizon, self.seed, self.replay = policy, horizon, seed, replay
        self._asked = Asked(policy, horizon=horizon, seed=seed, replay=replay)
        self._arms: list[Any] = []

    def _pull(self, arm_ids: Sequence[Any]) -> Any:
        arms = list(arm_ids)
        if self._arms and arms != self._arms:
            raise InvalidInput("expected the arms of the first pull, in the same order")
        arm = self._asked.ask(len(arms))
        self._arms = arms
        return arms[arm]

    def update(self, arm_id: Any, *reward: Any) -> None:
        """Answer the last `pull` with the reward of its arm."""
        if len(reward) != 1:
            raise InvalidInput(f"expected one reward, a number, got {len(reward)}")
        if arm_id not in self._arms and self._arms:
            raise InvalidInput(f"there is no arm {arm_id!r}")
        self._asked.answer(self._arms.index(arm_id) if self._arms else 0, reward[0])
        self._counts[arm_id] += 1
        self._n += 1

    @property
    def learner(self) -> Learner:
        """What decides; it starts with the first `pull`."""
        return self._asked.started()

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        return self.learner.guarantee

    @property
    def ranking(self) -> list[Any]:
        """The arms by their released means, the best first; those without one come last."""
        released = self.learner.released()
        if released is None:
            raise InvalidInput(
                f"{type(self.policy).__name__} releases nothing that arms could be ranked by"
            )
        means = np.where(np.isnan(released.mean), -1.0, released.mean)
        return [self._arms[arm] for arm in np.argsort(-means, kind="stable")]

    def __repr__(self) -> str:
        return f"RiverPolicy({self.policy!r})"
