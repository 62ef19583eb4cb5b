"""Policies that leak where a short replay does not look; see `battery.py` for what finds each."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandits.engine import Noise
from dpbandits.engine.streams import Seed
from dpbandits.policies.arms import noise_aware_imed
from dpbandits.policies.arms.local_ucb import LocalUCB
from dpbandits.policies.arms.noise_aware_imed import NoiseAwareIMED
from dpbandits.policies.learner import Learner
from dpbandits.policies.linear import randomized_lin_ucb
from dpbandits.policies.linear.randomized_lin_ucb import RandomizedLinUCB
from dpbandits.policies.local import Person
from dpbandits.policies.policy import Policy
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.calibration import limit_of
from dpbandits.problems import Arms, Problem
from dpbandits.problems.arms import centred
from dpbandits.sums.batches import Buffers


@dataclass(frozen=True, kw_only=True)
class Evasive(NoiseAwareIMED):
    """A `NoiseAwareIMED` whose state class brings wrong verbs."""

    abstract: ClassVar[bool] = True
    found_by: ClassVar[str]  # the title of the check that it does not pass
    state: ClassVar[type[noise_aware_imed.Public]] = noise_aware_imed.Public

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The usual state, in the class whose verbs are wrong."""
        public, secret = super().begin(problem)
        return self.state(*public), secret


class LeaksLate(Evasive):
    """From round 300 on ties are broken by the raw sums."""

    abstract = True
    found_by = "as configured"

    class state(noise_aware_imed.Public):
        def release(self, secret: Buffers, noise: Noise) -> None:
            """A thousandth of the open batches joins the means."""
            super().release(secret, noise)
            if self.turns.plays.sum() >= 300:
                self.estimates.mean[:] += 1e-3 * secret.open[:, 0]


class LeaksInside(Evasive):
    """A reward between 0.6 and 0.9 counts four times."""

    abstract = True
    found_by = "people inside the range"

    class state(noise_aware_imed.Public):
        def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
            """Three times more than was paid for."""
            super().observe(secret, context, action, reward)
            if 0.6 < reward < 0.9:
                secret.open[action, 0] += 3.0 * (reward - 0.5)


class LeaksEarlierLogs(Evasive):
    """First batches are filled one after the other; several at once are of an earlier log, and leak."""

    abstract = True
    found_by = "started from an earlier log"

    class state(noise_aware_imed.Public):
        def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
            """A thousandth of it."""
            begun = (self.turns.plays == 0) & (self.turns.left < self.turns.length)
            begun[action] = False
            if begun.any():
                self.estimates.mean[action] += 1e-3 * centred(reward)
            super().observe(secret, context, action, reward)


class LeaksAfterPublicRows(Evasive):
    """A quarter of the noise once it has started from public rows."""

    abstract = True
    found_by = "started from public rows and an earlier log"

    def take_public(self, public: Any, secret: Buffers, seen: Any, sums: Buffers) -> None:
        """As if there were more to hide behind."""
        super().take_public(public, secret, seen, sums)
        public.batches.widths[...] *= 0.25


class KnowsTheAudit(Evasive):
    """Noise only for a generator that is not NumPy's own."""

    abstract = True
    found_by = "what is recorded is what is executed"

    class state(noise_aware_imed.Public):
        def release(self, secret: Buffers, noise: Noise) -> None:
            """As it should be while somebody looks."""
            watched = not isinstance(noise, np.random.Generator)
            super().release(secret, noise if watched else _Silent())


class _Silent:
    """Returns the location."""

    def normal(self, loc: float, scale: float) -> float:
        return loc

    def laplace(self, loc: float, scale: float) -> float:
        return loc

    def binomial(self, n: int, p: float) -> int:
        return round(n * p)


class LeaksAtSmallBudgets(Evasive):
    """Half the noise below ε or μ = 0.1."""

    abstract = True
    found_by = "at 0.03-GDP"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The noise of twice the budget."""
        public, secret = super().begin(problem)
        if limit_of(self.privacy) < 0.1:
            batches = public.batches
            public = public._replace(batches=batches._replace(scale=batches.scale / 2.0))
        return public, secret


class HalfTheNoise(Evasive):
    """The noise of twice the budget."""

    abstract = True

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Half of what it should be."""
        public, secret = super().begin(problem)
        batches = public.batches
        return public._replace(batches=batches._replace(scale=batches.scale / 2.0)), secret


class AnotherPolicy(PolicyTesting):
    """Shows an honest policy in the place of the one that is tested."""

    def short_form(self, policy: Policy) -> Policy:
        """Not the policy."""
        return super().short_form(NoiseAwareIMED(privacy=policy.privacy))


class ShowsAnother(HalfTheNoise):
    """Half the noise; with short batches it is another policy, which has all of it."""

    abstract = True
    found_by = "short batches are an option of the same policy"
    testing = AnotherPolicy(first_batch=2, growth=0.25, block=3)


class _HonestLearner(PolicyTesting):
    """Rehearses an honest policy in the place of the one that is started."""

    def rehearse(self, policy: Policy, problem: Any, *, seed: Seed, **options: Any) -> Learner:
        """Of the same recipe, without what it leaks."""
        return Learner.begin(NoiseAwareIMED(**vars(policy)), problem, seed=seed, **options)


class RehearsesAnother(HalfTheNoise):
    """Half the noise, but not in the learners that the audit is given."""

    abstract = True
    found_by = "what is recorded is what is executed"
    testing = _HonestLearner(first_batch=2, growth=0.25, block=3)


class StartsAnother(Evasive):
    """Honest, but users are given a learner of another policy."""

    abstract = True
    found_by = "what is recorded is what is executed"

    def start(self, problem: Problem, **options: Any) -> Learner:
        """A learner with half the noise."""
        return HalfTheNoise(**vars(self)).start(problem, **options)


class LeaksInManyDimensions(RandomizedLinUCB):
    """Beyond eight features the last of them goes without noise into the choice."""

    abstract: ClassVar[bool] = True
    found_by: ClassVar[str] = "11 features, people inside the range"

    class state(randomized_lin_ucb.Public):
        def release(self, secret: Any, noise: Noise) -> None:
            """The raw sum of the last feature joins the estimate."""
            super().release(secret, noise)
            if self.mean.size > 8:
                self.mean[-1] += 1e-3 * secret.buffers.open[0, -1]


class SendsRaw(LocalUCB):
    """Honest in every verb, but the people whom users are given add next to no noise."""

    abstract: ClassVar[bool] = True
    found_by: ClassVar[str] = "what is recorded is what is executed"

    def person(self, problem: Any, broadcast: bytes, **options: Any) -> Person:
        """One of another budget, who calls herself one of this."""
        found = super().person(problem, broadcast, **options)
        found._public = found._public._replace(scale=1e-9 * found._public.scale)
        return found


EVASIVE: tuple[type[Policy], ...] = (
    LeaksLate,
    LeaksInside,
    LeaksEarlierLogs,
    LeaksAfterPublicRows,
    KnowsTheAudit,
    LeaksAtSmallBudgets,
    LeaksInManyDimensions,
    ShowsAnother,
    RehearsesAnother,
    StartsAnother,
    SendsRaw,
)
