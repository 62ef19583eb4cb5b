"""What the policies without privacy share: the exact mean of every item, restated in every round."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, COUNT, FLAG, FROM_RECIPE, Limits
from dpbandits.policies.matroid.shared.matroid_policy import TIE, MatroidPolicy
from dpbandits.policies.matroid.shared.pending import (
    News,
    any_basis,
    count_waiting,
    list_news,
    start_news,
    take_news,
    unknown_index,
)
from dpbandits.policies.matroid.shared.protection import no_guarantee
from dpbandits.policies.released import Reading, of_sums
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import centred
from dpbandits.problems.matroids import MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.problems.matroids.greedy import Greedy, improve, start_greedy

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Totals(NamedTuple):
    """Sums of centred rewards."""

    total: Array


class ExactMeans(NamedTuple):
    """Means of all rewards so far; of an item without any beyond every index, so that it comes first."""

    round: Integers  # (1,) rounds closed so far
    look: Integers  # (1,) 1 if the next decision is to look at all items
    everything: Integers  # all items
    greedy: Greedy
    plays: Integers  # T_e, of rounds closed
    waiting: Integers  # decisions in flight
    news: News
    mean: Array  # ŵ_e
    width: Array  # 1/√T_e, in flight or not
    score: Array  # the index
    option: float  # whatever the policy adds to it

    def limits(self) -> Limits:
        """It counts; the index may be anything."""
        known: Limits = {"look": FLAG, "everything": FROM_RECIPE, "score": ANYTHING}
        return {**dict.fromkeys(("round", "plays", "waiting"), COUNT), **known}

    def select(self, context: None, explore: Chance) -> Items:
        """Any basis first, then that of the largest total index."""
        if self.round[0] == 0:
            return any_basis(self, explore)
        self.restate()
        improve(self.greedy, self.score)
        return (self.greedy.basis,)

    def restate(self) -> None:
        """The index of every item: each policy's own."""
        raise NotImplementedError

    def release(self, secret: Totals, noise: Noise) -> None:
        """Restate the means of the items with new rewards, exactly: draws of scale 0."""
        for place in range(self.news.size[0]):
            item = take_news(self.news, place)
            self.mean[item] = noise.normal(secret.total[item], 0.0) / self.plays[item] + 0.5
        self.news.size[0] = 0

    def wait(self, action: Items, change: int) -> None:
        """What is in flight narrows an item's width, as if it had come back alike."""
        for item in action[0]:
            if count_waiting(self, item, change):
                self.width[item] = 1.0 / math.sqrt(self.plays[item] + self.waiting[item])

    def observe(self, secret: Totals, context: None, action: Items, reward: Rewards) -> None:
        """Add the rewards up; a missing one counts ½."""
        self.round[0] += 1
        items, rewards = action[0], reward[0]
        for place in range(items.size):
            item = items[place]
            self.plays[item] += 1
            self.width[item] = 1.0 / math.sqrt(self.plays[item] + self.waiting[item])
            secret.total[item] += centred(rewards[place])
        list_news(self.news, items)


@dataclass(frozen=True, kw_only=True)
class ExactPolicy(WithoutBudget, MatroidPolicy):
    """A policy on exact means, with a state class of its own and a `select` for it."""

    abstract: ClassVar[bool] = True
    state: ClassVar[type[ExactMeans]]

    first_round: Annotated[
        Literal["basis", "look"], '"basis": play one; "look": at all items, which earns nothing.'
    ] = "basis"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("basis", "look"), first_round=self.first_round)

    def option(self) -> float:
        """What the verbs must know of the recipe."""
        return 0.0

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """Nothing played yet."""
        items = problem.items
        public = self.state(
            round=np.zeros(1, np.int64),
            look=np.full(1, self.first_round == "look", np.int64),
            everything=np.arange(items),
            greedy=start_greedy(problem.matroid.state(), items, tolerance=TIE),
            plays=np.zeros(items, np.int64),
            waiting=np.zeros(items, np.int64),
            news=start_news(items),
            mean=np.full(items, unknown_index(0)),
            width=np.zeros(items),
            score=np.zeros(items),
            option=self.option(),
        )
        return public, Totals(np.zeros(items))

    def released(self, problem: MatroidBases, public: ExactMeans) -> Reading:
        """The items' exact means; a reward that is listed as news is not in them yet."""
        size = public.plays - public.news.listed
        return of_sums("item", (public.mean - 0.5) * size, size, 0.0, matroid=problem.matroid.state())

    def guarantee(self, problem: MatroidBases) -> Guarantee:
        """None."""
        return no_guarantee(problem, "decisions follow exact means of rewards")
