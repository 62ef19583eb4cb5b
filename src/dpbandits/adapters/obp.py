"""A policy for the Open Bandit Pipeline's simulator, and its feedback as a table."""

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.adapters.asking import Asked
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.extras import extra
from dpbandits.policies import Learner, TrustedPolicy
from dpbandits.privacy import Guarantee

if TYPE_CHECKING:
    import polars as pl


class _PolicyType(enum.Enum):
    """As `obp.policy.PolicyType`, which it is equal to; importing that takes torch."""

    CONTEXT_FREE = enum.auto()

    def __eq__(self, other: object) -> bool:
        return getattr(other, "name", None) == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class OBPPolicy:
    """A policy for arms as an `obp.policy`: `select_action`, then `update_params` with its reward.

    A decision that was not answered before the next one is a round without a reward; an answer that
    comes later still must be thrown away, for it would be taken for the next person's. With
    `replay=True` it waits instead for the first row of its arm, and rows of the log that do not match
    open no round: for `obp.simulator.run_bandit_simulation`, whose result goes into OBP's estimators
    such as `ReplayMethod`, and never for people (`adapters/asking.py`).

    What is lost: lists of several actions (`len_list` is 1; filter the log by position) and contexts (a
    decision by one person's context cannot wait for another's row; `LinearContexts` and logs are what
    `dpbandits.offline` is for). There is no `batch_size`: a policy has batches of its own. A copy
    before the first decision begins anew, as `calc_ground_truth_policy_value` wants it; later ones are
    refused, since both would use the same noise. `random_state`, which is usual there, is for tests:
    with one that is known nobody is protected, and all copies draw the same. `n_trial` and
    `action_counts` count answers, and are not protected: they tell whether the last person gave one.

    >>> import dpbandits as dpb
    >>> policy = OBPPolicy(dpb.LazyThompson(privacy=dpb.PureDP(1.0)), n_actions=3, random_state=1)
    >>> (action,) = policy.select_action()
    >>> policy.update_params(action=action, reward=1.0)
    """

    len_list = 1
    policy_type = _PolicyType.CONTEXT_FREE

    def __init__(
        self,
        policy: TrustedPolicy,
        n_actions: int,
        *,
        horizon: int | None = None,
        random_state: int | None = None,
        replay: bool = False,
    ) -> None:
        checks.integer(least=2, limit=checks.MOST_ACTIONS, n_actions=n_actions)
        self.policy, self.n_actions = policy, int(n_actions)
        self.horizon, self.random_state, self.replay = horizon, random_state, replay
        self.policy_name = policy.name()
        self._asked = Asked(policy, horizon=horizon, seed=random_state, replay=replay)
        self.initialize()

    def initialize(self) -> None:
        """Before the first decision, where there is nothing to forget; later that is refused."""
        if self._asked.learner is not None:
            raise RoundError(
                "initialize() comes before the first decision: to run on the same people again would "
                "spend the budget again; for others make a new policy"
            )
        self.n_trial = 0
        self.action_counts = np.zeros(self.n_actions, int)

    def select_action(self) -> NDArray[np.int64]:
        """A list of one action."""
        return np.array([self._asked.ask(self.n_actions)])

    def update_params(self, action: int, reward: float) -> None:
        """Answer the last `select_action` with the reward of its action."""
        checks.integer(least=0, limit=self.n_actions - 1, action=action)
        self._asked.answer(int(action), reward)
        self.n_trial += 1
        self.action_counts[int(action)] += 1

    @property
    def learner(self) -> Learner:
        """What decides; it starts with the first `select_action`."""
        return self._asked.started()

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        return self.learner.guarantee


def feedback_frame(feedback: Mapping[str, Any]) -> "pl.DataFrame":
    """OBP's feedback dictionary as a table with the columns action, reward, propensity and position.

    Positions are 0 where the feedback has none, and propensities are left out where it has none. The
    context is not part of it.

    >>> feedback_frame({"action": [0, 1], "reward": [1, 0], "pscore": [0.5, 0.5]}).shape
    (2, 4)
    """
    with extra("tables"):
        import polars as pl
    if not isinstance(feedback, Mapping):
        raise InvalidInput(f"expected OBP's feedback dictionary, got {checks.kind_of(feedback)}")
    action, reward = (_column(feedback, name) for name in ("action", "reward"))
    columns = {"action": action.astype(np.int64), "reward": reward}
    if feedback.get("pscore") is not None:
        columns["propensity"] = pscore = _column(feedback, "pscore")
        _refuse("pscore", "above 0 and at most 1", ~((pscore > 0.0) & (pscore <= 1.0)))
    position = np.zeros(action.size)
    if feedback.get("position") is not None:
        position = _column(feedback, "position")
    for name, whole in (("action", action), ("position", position)):
        _refuse(name, "whole numbers from 0 on", ~((whole >= 0) & (whole == np.floor(whole))))
    _refuse("reward", "numbers", np.isnan(reward))
    columns["position"] = position.astype(np.int64)
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) > 1 or action.size == 0:
        raise InvalidInput(f"expected columns of one length, at least 1, in the feedback, got {sizes}")
    return pl.DataFrame(columns)


def _column(feedback: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    if feedback.get(name) is None:
        raise InvalidInput(f"the feedback has no {name}")
    column = checks.array(f"the feedback's {name} as a column of numbers", feedback[name])
    if column.ndim != 1:
        raise InvalidInput(f"expected the feedback's {name} as one column, got shape {column.shape}")
    return column


def _refuse(name: str, expected: str, wrong: NDArray[np.bool_]) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"expected the feedback's {name} to be {expected}: row {row} is not")
