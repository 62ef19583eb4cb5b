"""Policies that learn from one person at most once in a batch, which makes her rounds cost less."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from dpbandits import checks
from dpbandits.policies.policy import OpenBatches
from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.privacy.budgets import NonPrivate, PureDP
from dpbandits.sums.batches import participation


@dataclass(frozen=True, kw_only=True)
class OncePerBatch(TrustedPolicy):
    """A policy that releases sums of batches (or leaves, or epochs), each round in one of them.

    k rounds of one person in different batches move k releases by at most one sensitivity each. Where
    every batch has noise of its own they cost √k times as much as one under Gaussian budgets, since μ²
    adds up: for Gaussian noise, and for Laplace noise at the ε that is μ-GDP. Other noise has
    multipliers of its own (`sums/`). Under ε-DP they cost k times as much in any batches, so none are
    kept apart.
    """

    abstract: ClassVar[bool] = True
    # Whether all rounds go into one sum: always in the joint model, where actions are not public.
    one_slot: ClassVar[bool] = False

    def multiplier(self, problem: Any) -> float:
        """That of different batches; k under ε-DP."""
        k = problem.rounds_per_person or 1
        return self.multiplier_apart(problem, k) if self.keeps_apart() else float(k)

    def multiplier_apart(self, problem: Any, rounds: int) -> float:
        """The cost of this many rounds in different batches, as a multiple of the cost of one."""
        return participation(self.blocks_used(), rounds)

    def blocks_used(self) -> int | tuple[int, ...]:
        """The batches whose noise is drawn together: 1 where each has its own."""
        return 1

    def draws_of_one(self, problem: Any) -> float:
        """Those of one batch; where noise is drawn together, also of all later ones in its block."""
        blocks = self.blocks_used()
        longest = blocks if isinstance(blocks, int) else max(blocks)
        return float(self.numbers_of_one(problem) * (1 if isinstance(self.privacy, PureDP) else longest))

    def numbers_of_one(self, problem: Any) -> int:
        """How many numbers are released of the batches that one round is in."""
        return 1

    def keeps_apart(self) -> bool:
        """Where it pays: not under ε-DP."""
        return not isinstance(self.privacy, PureDP | NonPrivate)

    def open_batches(self, public: Any, action: Any) -> OpenBatches | None:
        """By slot, how many batches came before the open one."""
        if not self.keeps_apart():
            return None
        return tuple((slot, self.batch_number(public, slot)) for slot in self.slots(public, action))

    def slots(self, public: Any, action: Any) -> tuple[int, ...]:
        """That of the action, or the only one."""
        return (0,) if self.one_slot else (int(action),)

    def batch_number(self, public: Any, slot: int) -> int:
        """How many batches of a slot were released."""
        return int(public.batches.released[slot])


@dataclass(frozen=True, kw_only=True)
class OncePerBlock(OncePerBatch):
    """A policy whose noise is drawn together for a block of batches."""

    abstract: ClassVar[bool] = True

    block: Annotated[
        int, "Releases whose noise is drawn together: more of them means less noise each."
    ] = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_BLOCK, block=self.block)

    def suited_to_returning(self) -> Self:
        """Blocks cost a person who is in many of their batches nearly as much as no rule at all."""
        return replace(self, block=1)

    def blocks_used(self) -> int:
        """As given."""
        return self.block
