r"""Replay by rejection: a policy learns from the rows of a random log that match its decisions.

Li, Chu, Langford and Wang (2011). Each row is a person x_i, an action a_i that was drawn uniformly from
K, independently of everything, and its reward r_i. The policy decides for x_i; if it decides for a_i,
the row is a round, and its reward is learned from; if not, the row is skipped. Whatever the policy
decides, a row matches with probability 1/K, independently of the person and of what was decided before.
So the matched rows are distributed like the rounds of an experiment in which the policy decides, and
their mean reward is what it would have earned in its first n/K rounds.

**Only matched rows are rounds.** A skipped row fills no batch, is nobody who took part, and moves no
schedule. A decision releases what is due and then chooses; what was released stays for all rows until
one matches, and only the choice is made again (`Learner.select_again`). Without contexts not even that
is needed: the decision stands, and the next row that was given that action answers it.

**What is promised about the log.** A row that no longer matches moves all later rows by one round, and
with them what is in which batch; no guarantee about one replaced round covers that. So what matters is
what decides whether a row matches: its logged action, and the decision, which depends on the person's
context, and on earlier rows only through what was released. Take two logs that differ in the *reward*
of row j, and fix the results of all draws, of noise and of exploration. Up to row j nothing differs, and
the decision for row j is made before its reward is seen: it matches in both logs or in neither. From
then on what is released are the fixed results, in both logs; so all later decisions are the same, and
the same rows match, to the end of the log. On every sequence of results both runs therefore have the
same rounds, of which at most one has another reward: those are the neighbours that the policy's
guarantee is about. How much likelier the results are on one log than on the other is then bounded as in
`policies/rounds.py`; that argument never uses that the rounds to come are known beforehand. Therefore:

- the decisions on matched rows, and which rows matched, are private as the policy promises **under
  replacement of one reward**, the actions of the log, its contexts and its length being public;
- without contexts that is the whole promise of the policy, since the action of a row was drawn at random
  and tells nothing of the person;
- with contexts it is less than the policy promises in use, where a person's context may be replaced too.
  **Nothing is promised for that here.** Take two logs that differ in the context of row j, and fix the
  results of all draws. Decisions that do not match cost nothing: they are functions of the row's own
  context and of results. But row j may match in one log alone. From then on the t-th round is another
  row in the two logs, for every t: each batch to come has a row that the other log's has not, and they
  end at other rows. So the runs differ in a row of every release to come, where a guarantee about one
  replaced round pays for the releases that one round is part of; group privacy would charge for all of
  them. In use every person is a round, so there the promise holds in full. Rounds that store nothing,
  in place of skipped rows, would keep it here, and would fill batches with K − 1 empty rounds of K.

The rewards of matched rows, their mean and its interval are raw data: for those who may see the log.

**Interval.** Normal, on the rewards of matched rows, which are taken to be of different people. Given
the past, r_t has the mean μ(x_t, a_t) of its decision, so their differences form a martingale, and the
interval covers the mean of μ(x_t, a_t) over the matched rounds. Where few rewards differ from the
commonest it is too short, and says so (`telling`). It tells nothing of how another run with other noise
would have decided.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.streams import Seed
from dpbandits.errors import InvalidInput
from dpbandits.features import CrossedFeatures
from dpbandits.offline.estimates import telling_rows
from dpbandits.offline.intervals import if_short, normal_interval
from dpbandits.offline.rows import Rows
from dpbandits.policies import Learner, TrustedPolicy
from dpbandits.privacy.guarantees import Guarantee, Unit
from dpbandits.problems import Arms, KernelContexts, LinearActions, LinearContexts, Problem

Array = NDArray[np.float64]
# The chance with which a uniformly random log is taken for another.
_RISK = 1e-6
_ADVICE = "replay needs actions drawn uniformly at random; for other logs there are ips and snips"


@dataclass(frozen=True, kw_only=True, eq=False)
class Replayed:
    """What a policy did on a log, round by round. All but its decisions is raw data."""

    policy: TrustedPolicy
    rows: int  # of the log
    matched: NDArray[np.int64]  # those of them that are rounds
    actions: NDArray[np.int64]  # that were decided for, one for each round
    rewards: Array
    low: float
    high: float
    confidence: float
    guarantee: Guarantee  # of the decisions, on this log
    on_trust: bool = False  # that actions were drawn uniformly; there are no propensities to tell

    @property
    def rounds(self) -> int:
        """How many rows matched."""
        return int(self.matched.size)

    @property
    def reward(self) -> float:
        """The mean reward of a round."""
        return float(self.rewards.mean())

    @property
    def telling(self) -> float:
        """Rounds whose reward is not the commonest; where they are few, the interval is too short."""
        return telling_rows(self.rewards, np.ones(self.rounds))

    @property
    def _if_on_trust(self) -> str:
        if not self.on_trust:
            return ""
        return (
            " That actions were drawn at random, whoever it was for, is taken on trust: without "
            "propensities only how often each was drawn, and matched, can be seen."
        )

    def __str__(self) -> str:
        ends = f"{self.low:.4g} to {self.high:.4g}{if_short(self.telling)}"
        return (
            f"{type(self.policy).__name__}: {self.reward:.4g} a round, {100 * self.confidence:g} % "
            f"interval {ends}, in {self.rounds:,} rounds that match, of {self.rows:,} rows. On this "
            f"log: {self.guarantee} (The rewards are raw data, not private.){self._if_on_trust}"
        )


def replay(
    policy: TrustedPolicy,
    rows: Rows,
    *,
    problem: Problem | None = None,
    seed: Seed = None,
    confidence: float = 0.95,
) -> Replayed:
    """Let a policy learn from the rows of a uniformly random log that match its decisions.

    Without a `problem` it is `Arms`, or `LinearContexts` with arms where the rows have a feature map and
    the policy is for contexts; a policy that needs the horizon is told n/K rounds. It ends with the log,
    or where a guarantee ends.

    >>> import numpy as np
    >>> import dpbandits as dpb
    >>> chance = np.random.default_rng(0)
    >>> actions = chance.integers(3, size=30_000)
    >>> clicks = chance.random(30_000) < np.array([0.1, 0.5, 0.2])[actions]
    >>> rows = dpb.offline.Rows(actions=actions, rewards=clicks, labels=("a", "b", "c"))
    >>> found = dpb.offline.replay(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), rows, seed=0)
    >>> 9_000 < found.rounds < 11_000, found.reward > 0.4
    (True, True)
    """
    if not isinstance(policy, TrustedPolicy):
        raise InvalidInput(f"expected a policy whose learner is trusted, got {checks.shown(policy)}")
    if not isinstance(rows, Rows):
        raise InvalidInput(f"expected rows as offline.read(…) gives them, got {checks.kind_of(rows)}")
    checks.open_unit(confidence=confidence)
    refuse_unless_uniform(rows)
    problem = _problem(policy, rows) if problem is None else problem
    _check_problem(problem, rows)
    guarantee = policy.guarantee(problem)
    learner = policy.start(problem, seed=seed)
    matched, actions = play(learner, rows, guarantee.horizon if guarantee.is_private else None)
    if not matched.size:
        raise InvalidInput(f"none of the {len(rows):,} rows matches a decision: the log is too short")
    refuse_unless_matched(rows, matched, guarantee.horizon if guarantee.is_private else None)
    low, high = normal_interval(rows.rewards[matched], confidence)
    return Replayed(
        policy=policy,
        rows=len(rows),
        matched=matched,
        actions=actions,
        rewards=rows.rewards[matched],
        low=low,
        high=high,
        confidence=confidence,
        guarantee=on_a_log(guarantee, has_contexts=not _is_free(problem)),
        on_trust=rows.propensities is None,
    )


def play(
    learner: Learner, rows: Rows, horizon: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Drive a learner over the rows: which of them matched, and what was decided for each."""
    rewards = _rewards(learner.problem, rows)
    matched: list[int] = []
    actions: list[int] = []
    row = 0
    free = _is_free(learner.problem)
    find = _next_alike(rows) if free else _next_decided(rows, _offers(learner.problem, rows))
    while row < len(rows) and (horizon is None or len(matched) < horizon):
        action, row = find(learner, row)
        if row < len(rows):
            learner.update(action, rewards[row])
            matched.append(row)
            actions.append(action)
        row += 1
    return np.array(matched, np.int64), np.array(actions, np.int64)


def on_a_log(guarantee: Guarantee, *, has_contexts: bool) -> Guarantee:
    """What is promised about the decisions on matched rows; see the head of this file."""
    if not guarantee.is_private:
        return guarantee
    what = "the contexts, the actions" if has_contexts else "the actions"
    public = (*guarantee.public, f"{what} and the length of the log")
    return replaced(guarantee, unit=Unit.REWARD, public=public)


def refuse_unless_uniform(rows: Rows) -> None:
    """By the propensities, where they are known; by the counts of actions otherwise.

    A uniformly random log is refused by its counts with a chance of about 10⁻⁶. That actions were drawn
    independently of people cannot be seen in counts: without propensities it is taken on trust, as far
    as matches do not tell (`refuse_unless_matched`).
    """
    count = len(rows.labels)
    if rows.propensities is not None:
        if np.abs(rows.propensities * count - 1.0).max() > 1e-6:
            raise InvalidInput(f"the propensities are not all 1/{count}: {_ADVICE}")
        return
    counts = np.bincount(rows.actions, minlength=count)
    if scipy.stats.chisquare(counts).pvalue < _RISK:
        most = int(counts.argmax())
        raise InvalidInput(
            f"action {rows.labels[most]!r} has {counts[most]:,} of {len(rows):,} rows, among {count} "
            f"actions: {_ADVICE}"
        )


def refuse_unless_matched(rows: Rows, matched: NDArray[np.int64], horizon: int | None) -> None:
    """Whatever was decided, a row of a random log matches with probability 1/K, whoever it is of.

    A log that chose by contexts, or by turns, may have uniform counts; decisions that learn its ways
    match more of it, or less. A random one is refused with a chance of at most 10⁻⁶.
    """
    seen = int(matched[-1]) + 1 if matched.size == horizon else len(rows)
    law = scipy.stats.binom(seen, 1.0 / len(rows.labels))
    if min(law.cdf(matched.size), law.sf(matched.size - 1)) < 0.5 * _RISK:
        raise InvalidInput(
            f"{matched.size:,} of {seen:,} rows match, and of a random log about {law.mean():,.0f} "
            f"would: {_ADVICE}"
        )


Find = Callable[[Learner, int], tuple[int, int]]


def _next_alike(rows: Rows) -> Find:
    """Without contexts: the decision stands until a row was given that action."""
    places = [np.flatnonzero(rows.actions == action).tolist() for action in range(len(rows.labels))]
    for own in places:
        own.append(len(rows))  # where none is left

    def find(learner: Learner, row: int) -> tuple[int, int]:
        action = int(learner.select())
        return action, places[action][bisect_left(places[action], row)]

    return find


def _next_decided(rows: Rows, offer: Callable[[int], Any]) -> Find:
    """With contexts: a choice for every row, until one is the action that the row was given."""

    def find(learner: Learner, row: int) -> tuple[int, int]:
        action = int(learner.select(offer(row)))
        while action != rows.actions[row]:
            row += 1
            if row == len(rows):
                break
            action = int(learner.select_again(offer(row)))
        return action, row

    return find


def _offers(problem: Problem, rows: Rows) -> Callable[[int], Any]:
    """What a person brings, by row."""
    contexts = rows.contexts
    assert contexts is not None
    if isinstance(problem, LinearContexts) and isinstance(problem.features, CrossedFeatures):
        pairs = problem.features.pairs
        return lambda row: pairs(contexts[row])
    if isinstance(problem, KernelContexts):
        return lambda row: int(contexts[row])
    return lambda row: contexts[row]


def _is_free(problem: Problem) -> bool:
    """Whether people bring no context."""
    return isinstance(problem, Arms | LinearActions)


def _rewards(problem: Problem, rows: Rows) -> list[float]:
    """As the problem takes them: arms pay within [0, 1]."""
    low, high = rows.reward_range if isinstance(problem, Arms) else (0.0, 1.0)
    return [float(reward) for reward in (rows.rewards - low) / (high - low)]


def _problem(policy: TrustedPolicy, rows: Rows) -> Problem:
    """That of the rows, by what is declared about them."""
    count, horizon = len(rows.labels), None
    if policy.needs_horizon:
        horizon = max(len(rows) // count, 1)
    if rows.contexts is None or issubclass(Arms, policy.problem_kind):
        return Arms(count, horizon=horizon)
    if rows.features is None:
        raise InvalidInput(
            "say what is declared about the contexts: replay(…, problem=LinearContexts(dim, arms=K))"
        )
    largest = max(abs(end) for end in rows.reward_range)
    return LinearContexts.of(rows.features, arms=count, horizon=horizon, max_reward=largest)


def _check_problem(problem: Problem, rows: Rows) -> None:
    """It has the actions of the log, and the rows have what it needs."""
    if problem.rounds_per_person is not None:
        raise InvalidInput("rows of a log name nobody: replay takes no rounds_per_person")
    actions = _actions(problem)
    if actions is None:
        raise InvalidInput(
            "replay takes Arms, LinearActions, KernelContexts, and LinearContexts with arms or "
            f"CrossedFeatures; got {checks.shown(problem)}"
        )
    if actions != len(rows.labels):
        raise InvalidInput(
            f"expected a problem of {len(rows.labels)} actions, as the log has, got {actions}"
        )
    if _is_free(problem):
        return
    needed = 1 if isinstance(problem, KernelContexts) else 2
    if rows.contexts is None or rows.contexts.ndim != needed:
        kind = "numbers of contexts" if needed == 1 else "rows of features"
        raise InvalidInput(f"{type(problem).__name__} needs contexts that are {kind}")


def _actions(problem: Problem) -> int | None:
    if isinstance(problem, Arms):
        return problem.arms
    if isinstance(problem, LinearActions):
        return len(problem.features)
    if isinstance(problem, KernelContexts):
        return len(problem.actions)
    if isinstance(problem, LinearContexts):
        if isinstance(problem.features, CrossedFeatures):
            return len(problem.features.actions)
        return problem.arms
    return None
