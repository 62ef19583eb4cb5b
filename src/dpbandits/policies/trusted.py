"""Policies whose learner is trusted with raw data; `local.py` has those that trust nobody."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpbandits.engine.streams import Seed, learner_seed
from dpbandits.errors import InvalidInput
from dpbandits.policies.learner import Learner
from dpbandits.policies.policy import NoiseKind, Policy
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import History, Problem


@dataclass(frozen=True, kw_only=True)
class TrustedPolicy(Policy):
    """A policy that is started as a `Learner`, which holds people's data until it is released."""

    abstract: ClassVar[bool] = True

    def start(
        self,
        problem: Problem,
        *,
        in_flight: int = 1,
        patience: float | None = None,
        seed: Seed = None,
        compiled: bool | None = None,
        noise: NoiseKind | None = None,
        expected_people: int = 1_000_000,
        history: History | None = None,
        public_history: History | None = None,
    ) -> Learner:
        """A learner on this problem; without a seed, on the operating system's randomness.

        Up to `in_flight` rounds are open at once; a round is closed when that many others have been
        decided since, with its reward or without. With `patience` a round is closed at the first
        decision that comes that many seconds after its own, and `in_flight` is a cap.

        A seed is for tests and simulation: whoever knows it can undo the noise.

        Compiled or not, it makes the same decisions. With `compiled=True`, the default of policies whose
        rounds are linear algebra, each is quicker, but the first on a machine waits some seconds for the
        compiler, unless `dpbandits warm` was run there. With `compiled=False` nothing is compiled.

        `noise` is "exact", on a grid and from whole numbers (`mechanisms/exact.py`), or "float", as in
        simulations. By default it is exact without a seed, where this policy's noise can be.

        `expected_people`, where the problem tells people apart, is how many their register is made for:
        with more of them some newcomers are taken for somebody else, and not learned from.

        `history` is an earlier log, learned from as the first rounds and under the same guarantee: each
        row is one person's round, and counts as such. The sentence then says that its rows are taken as
        they are (`rounds.py`). `public_history` is a log that is declared public: it is learned
        from without noise, and nobody in it is protected.
        """
        compiled = self.compiles if compiled is None else compiled
        options: dict[str, Any] = {"in_flight": in_flight, "patience": patience, "compiled": compiled}
        exact = self._draws_exactly(problem, noise, seed)
        if self.guarantee(problem).trust is Trust.LOCAL:
            raise InvalidInput(f"{type(self).__name__} promises that nobody is trusted: not a learner")
        options["expected_people"] = expected_people
        options |= {"history": history, "public_history": public_history}
        return Learner.begin(self, problem, seed=learner_seed(seed), exact=exact, **options)


@dataclass(frozen=True, kw_only=True)
class WithoutBudget(TrustedPolicy):
    """A policy that no budget can be asked of."""

    abstract: ClassVar[bool] = True
    accepts: ClassVar = (NonPrivate,)

    privacy: Budget = field(default_factory=NonPrivate)
