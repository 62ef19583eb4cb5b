"""The sampling audit: what can be shown against a guarantee by looking at many real runs.

Replay prices releases exactly, but it trusts the generators and runs plain Python. Sampling looks at
what is executed: two scripted streams that differ in one person are played many times, an adversary
tells them apart as well as it can, and how well it does proves a lower bound for ε or μ. A bound above
the claim refutes it, but for the stated error rate. A bound below it proves nothing, so the share of the
claim that is shown is how sharp the test was.

1. Every design (`designs.py`) is tried on a few simulated runs, and the best is kept.
2. On fresh runs scores are fitted; on others an event is chosen; on others again it is counted.
3. That is done for the choices alone, and for all that is public: choices and the numbers of `public`
   after every round (in the local model's own form, messages). Each has half the error rate.

In the joint and the local model her own round is not looked at, but for the message she sends.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.audit.adversary import (
    Array,
    Claim,
    Score,
    action_scores,
    best_event,
    number_scores,
)
from dpbandits.audit.designs import designs_for
from dpbandits.audit.playing import FORMS, Resume, Seen, player
from dpbandits.audit.scripts import Design
from dpbandits.engine import has_pauses
from dpbandits.errors import AuditError
from dpbandits.policies import LocalPolicy, Policy
from dpbandits.privacy.guarantees import Trust

ERROR = 1e-3
CHOICES, PUBLIC = VIEWS = ("choices", "all that is public")
# Runs of each stream: to try a design on, to fit scores on, and to be held in memory at once.
_PILOT, _FITTED, _CHUNK = 1000, 20_000, 5000
_PAUSING = 20
# Snapshots of `public` are taken after so many rounds at most, and of so many designs.
_LOOKS, _DESIGNS = 22, 4


class Shown(NamedTuple):
    """What one view of the runs proved."""

    bound: float
    runs: int  # of both streams, those counted
    design: str


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What a sampling audit showed, against the claim."""

    policy: str
    form: str
    claim: Claim
    error: float
    runs: int  # all that were played after the designs were chosen
    seed: int
    seconds: float
    views: dict[str, Shown]

    @property
    def bound(self) -> float:
        """The larger of what the views showed."""
        return max(shown.bound for shown in self.views.values())

    @property
    def share(self) -> float:
        """What was shown, as a share of the claim."""
        return self.bound / self.claim.size

    @property
    def kept(self) -> bool:
        """Whether nothing was shown against the claim."""
        return self.bound <= self.claim.size

    def to_dict(self) -> dict[str, Any]:
        """All of it, for machines."""
        return {
            "policy": self.policy,
            "form": self.form,
            "claim": self.claim._asdict(),
            "shown": self.bound,
            "share": self.share,
            "kept": self.kept,
            "runs": self.runs,
            "seed": self.seed,
            "error": self.error,
            "views": {view: shown._asdict() for view, shown in self.views.items()},
        }

    def __str__(self) -> str:
        unit, size = self.claim.unit, self.claim.size
        # Where little is shown, little was tested.
        sharp = "nothing against the claim" if self.share >= 0.5 else "inconclusive"
        verdict = sharp if self.kept else "NOT PRIVATE"
        return (
            f"{verdict}: {unit} ≥ {self.bound:.4g} shown of {size:.4g} ({self.share:.0%}), "
            f"{self.runs:,} runs {self.form}, error rate {self.error:g}"
        )


def sample(
    policy: Policy,
    *,
    runs: int = 100_000,
    form: str = "simulated",
    error: float = ERROR,
    seed: int = 0,
    designs: list[Design] | None = None,
    views: tuple[str, ...] = VIEWS,
    resume: Resume | None = None,
    advance: Callable[[int], None] = lambda runs: None,
) -> Sampled:
    """Audit a policy by `runs` runs of one form, half of them of each stream.

    A policy that pauses for plain Python is played a twentieth as often.
    `advance` is called with the number of runs as they are played. Designs are chosen on simulated runs
    of other seeds.
    """
    checks.known("form", form, FORMS)
    checks.integer(least=100, runs=runs)
    checks.open_unit(error=error)
    if form == "local" and not isinstance(policy, LocalPolicy):
        raise AuditError(f"{type(policy).__name__} has no people of its own: it is not a local policy")
    tried = list(designs_for(policy)) if designs is None else designs
    claim = _claim(tried[0])
    if has_pauses(tried[0].policy.begin(tried[0].problem)[0]):
        runs //= _PAUSING
    began, shown = time.perf_counter(), {}
    for view in views:
        best = _best_design(tried, view, claim, error, seed)
        pairs = _Pairs(best, view, form, np.random.SeedSequence([seed, 2]), resume, advance)
        shown[view] = _show(pairs, runs // (2 * len(views)), claim, error / len(views))
    return Sampled(
        policy=type(policy).name(),
        form=form,
        claim=claim,
        error=error,
        runs=runs,
        seed=seed,
        seconds=time.perf_counter() - began,
        views=shown,
    )


def _claim(design: Design) -> Claim:
    guarantee = design.policy.guarantee(design.problem)
    if not guarantee.is_private:
        raise AuditError(f"nothing to audit without a privacy guarantee: {guarantee.why_none}")
    return Claim.of(guarantee.budget)


def _best_design(tried: list[Design], view: str, claim: Claim, error: float, seed: int) -> Design:
    """The one that shows most on few simulated runs."""
    if view == PUBLIC:  # where what others pay hardly matters, and numbers take time
        tried = [design for design in tried if design.rounds <= _LOOKS] or tried
        tried = [tried[index] for index in np.linspace(0, len(tried) - 1, _DESIGNS).astype(int)]
    if len(tried) == 1:
        return tried[0]
    found = []
    for index, design in enumerate(tried):
        pairs = _Pairs(design, view, "simulated", np.random.SeedSequence([seed, 1, index]))
        found.append(best_event(*pairs.score(pairs.fit(_PILOT), _PILOT), claim, error)[0])
    return tried[int(np.argmax(found))]


def _show(pairs: "_Pairs", runs: int, claim: Claim, error: float) -> Shown:
    """Fit, choose and count on `runs` runs of each stream.

    Learners are slow to make: the scores for them are fitted to simulated runs.
    """
    slow = pairs.form in ("plain", "compiled")
    fitting = replace(pairs, form="simulated") if slow else pairs
    fitted = min(runs // 4, _FITTED)
    scores = fitting.fit(_FITTED if slow else fitted)
    chosen = (runs - (0 if slow else fitted)) // 2
    _, event = best_event(*pairs.score(scores, chosen), claim, error)
    shown = event.shown(*pairs.score(scores, chosen), claim, error)
    return Shown(shown, 2 * chosen, pairs.design.name)


@dataclass
class _Pairs:
    """Runs of both streams as rows of what one view sees, always of fresh seeds."""

    design: Design
    view: str
    form: str
    seed: np.random.SeedSequence
    resume: Resume | None = None
    advance: Callable[[int], None] = lambda runs: None

    def __post_init__(self) -> None:
        design = self.design
        trust = design.policy.guarantee(design.problem).trust
        self._players = [player(design, which, self.form, self.resume) for which in (0, 1)]
        self._exempt = trust in (Trust.JOINT, Trust.LOCAL)
        # A message of hers is what the local model protects.
        first = design.changed + (self._exempt and self.form != "local")
        self._looks = list(range(first, design.rounds))[:_LOOKS] if self.view == PUBLIC else []

    def rows(self, runs: int) -> tuple[Array, Array]:
        """What is seen of some runs of each stream."""
        one, other = (
            self._row(play(runs, seed, self._looks))
            for play, seed in zip(self._players, self.seed.spawn(2), strict=True)
        )
        self.advance(2 * runs)
        return one, other

    def fit(self, runs: int) -> list[Score]:
        """Scores fitted to fresh runs."""
        parts = [self.rows(size) for size in _chunks(runs)]
        one, other = (np.concatenate(part) for part in zip(*parts, strict=True))
        if self.view == PUBLIC:
            return number_scores(one, other, self.design.actions)
        return action_scores(one, other)

    def score(self, scores: list[Score], runs: int) -> tuple[Array, Array]:
        """The scores of fresh runs, (scores, runs) of each stream."""
        found: list[list[Array]] = [[], []]
        for size in _chunks(runs):
            for kept, rows in zip(found, self.rows(size), strict=True):
                kept.append(np.stack([score(rows) for score in scores]))
        one, other = (np.concatenate(part, axis=1) for part in found)
        return one, other

    def _row(self, seen: Seen) -> Array:
        """Choices, then numbers, after each round looked at; or choices alone."""
        chosen = seen.chosen.astype(np.float64)
        if self._exempt:
            chosen[:, self.design.changed] = 0.0
        if not self._looks:
            return chosen.reshape(len(chosen), -1)
        together = np.concatenate([chosen[:, self._looks], seen.numbers], axis=2)
        return together.reshape(len(together), -1)


def _chunks(runs: int) -> Iterator[int]:
    while runs > 0:
        yield min(runs, _CHUNK)
        runs -= _CHUNK
