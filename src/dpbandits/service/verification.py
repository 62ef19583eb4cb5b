"""Checking a ledger: its chain, its signatures, its story, and the guarantee, derived anew."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import DPBanditsError, LedgerError, NotImplied
from dpbandits.extras import extra
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems import Arms, Problem
from dpbandits.service.entries import (
    BODIES,
    Abandoned,
    Body,
    Changed,
    Entry,
    Opened,
    Page,
    Population,
    Reading,
    Resumed,
    Stopped,
    digest,
    restored,
    written,
)
from dpbandits.service.populations import population_record
from dpbandits.service.terms import actions_of
from dpbandits.version import __version__
from dpbandits.wording import counted

with extra("serve"):
    import msgspec
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# What the same formula may differ by on another processor.
_ROUNDING = 1e-9
_NOISE = {
    "exact": "Noise is said to be exact: made of whole numbers, on a grid.",
    "float": "Noise is said to be of floating-point numbers, whose last digits the proofs leave out.",
}
_LIMIT = (
    "What a ledger cannot show: that noise was drawn, and that nothing was released beside it. That "
    "rests on the code and on its audit (`dpbandits audit`)."
)
_REWRITTEN = (
    "Neither a key nor an earlier hash was given, so a ledger rewritten as a whole would pass as well."
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a ledger says that holds together."""

    experiment: str
    entries: int
    decided: int
    closed: int
    state: str
    guarantee: str
    key: str
    head: str
    lines: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same, for machines."""
        return asdict(self) | {"lines": list(self.lines)}


def verify(entries: Sequence[Any], *, key: str | None = None, head: str | None = None) -> Verdict:
    """Check a whole ledger, from its first entry on; the first thing that is wrong is a `LedgerError`.

    `key` is the public key it must be signed under, and `head` a hash that must be among its entries.
    """
    chain = _chained(entries)
    with _at(0):
        story = _Story(chain[0].experiment, _body(chain[0]))
    if key is not None and key.strip().lower() != story.opened.key:
        raise LedgerError("the ledger is not signed under the key that was expected")
    if head is not None and head.strip().lower() not in {entry.hash for entry in chain}:
        raise LedgerError("the hash noted earlier is not in this ledger: it was rewritten or cut short")
    _check_signatures(chain, story.opened.key)
    for entry in chain[1:]:
        with _at(entry.number):
            story.go_on(_body(entry))
    lines = (*story.told(), _LIMIT, *([] if key or head else [_REWRITTEN]))
    return Verdict(
        experiment=chain[0].experiment,
        entries=len(chain),
        decided=story.decided,
        closed=story.closed,
        state=story.state,
        guarantee=str(story.guarantee),
        key=story.opened.key,
        head=chain[-1].hash,
        lines=lines,
    )


@contextmanager
def _at(number: int) -> Iterator[None]:
    """What is wrong within is wrong with this entry."""
    try:
        yield
    except (LedgerError, msgspec.ValidationError) as error:
        raise LedgerError(f"entry {number}: {error}") from None


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise LedgerError(otherwise)


def _chained(entries: Sequence[Any]) -> list[Entry]:
    """The entries, each following the one before."""
    _must(len(entries) > 0, "the ledger is empty")
    chain: list[Entry] = []
    for number, record in enumerate(entries):
        with _at(number):
            entry = msgspec.convert(record, Entry)
            _must(entry.number == number, f"it is numbered {entry.number}, so one is missing or moved")
            _must(entry.hash == digest(record), "it was changed after it was hashed")
            _must(
                entry.previous == (chain[-1].hash if chain else ""), "it does not follow the one before"
            )
            if chain:
                _must(entry.experiment == chain[0].experiment, "it is of another experiment")
                _must(entry.at >= chain[-1].at, "its time is earlier than that of the one before")
        chain.append(entry)
    return chain


def _check_signatures(chain: list[Entry], key: str) -> None:
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    except ValueError:
        raise LedgerError("entry 0: its key is not one of Ed25519") from None
    for entry in chain:
        try:
            public.verify(bytes.fromhex(entry.signature), bytes.fromhex(entry.hash))
        except (InvalidSignature, ValueError):
            raise LedgerError(f"entry {entry.number}: it is not signed with the ledger's key") from None


def _body(entry: Entry) -> Body:
    kind = BODIES.get(entry.kind)
    if kind is None:
        raise LedgerError(f"its kind is not known to dpbandits {__version__}")
    return msgspec.convert(entry.body, kind)


class _Story:
    """What the entries so far say, and whether another may follow."""

    def __init__(self, experiment: str, opened: Body) -> None:
        if not isinstance(opened, Opened):
            raise LedgerError("the first entry does not say what was opened")
        self.opened = opened
        self.problem, self.guarantee = _derived(opened)
        _check_terms(experiment, opened, self.guarantee)
        # Actions without labels are known by their numbers.
        self.labels = opened.labels or [str(number) for number in range(actions_of(self.problem) or 0)]
        self.retired: set[str] = set()
        self.decided = self.closed = self.epoch = self.generation = self.changes = 0
        self.shares: list[int] = []
        self.state = "running"

    def go_on(self, body: Body) -> None:
        """One entry more."""
        _must(self.state == "running", "it comes after the experiment's end")
        match body:
            case Opened():
                raise LedgerError("the experiment was opened before")
            case Page():
                self._page(body)
            case Resumed():
                _must(body.epoch > self.epoch, "its epoch is not a new one")
                self.epoch = body.epoch
            case Changed():
                self._change(body)
            case Stopped():
                self._count(body.decided, body.closed)
                self.state = "stopped"
            case Abandoned():
                self.state = "abandoned"

    def told(self) -> list[str]:
        """The story in a few sentences."""
        lines = [
            "The chain is unbroken, every entry is signed, and the guarantee follows from the recipes.",
            f"{counted(self.decided, 'decision')} and {counted(self.closed, 'closed round')} by the "
            f"last entry; the experiment is {self.state}.",
        ]
        if self.guarantee.is_private:
            lines.append(_NOISE[self.opened.noise])
        if self.changes:
            changes = counted(self.changes, "change")
            lines.append(f"Which actions are in play is public too: {changes}.")
        if self.opened.population is not None:
            lines.append(
                f"When it was opened: {self.opened.population.sentence} Experiments on the same people "
                "that were opened later add to that: see their ledgers, or the service's page."
            )
        if self.opened.follows is not None:
            lines.append(
                f"It succeeds {self.opened.follows}; for those who took part in both, both count."
            )
        return lines

    def _count(self, decided: int, closed: int) -> None:
        self._decide(decided)
        _must(closed >= self.closed, "fewer rounds are closed than before")
        _must(closed <= decided, "more rounds are closed than were decided")
        window = self.opened.terms.in_flight
        _must(decided - closed <= window, f"more than {counted(window, 'round')} are open")
        self.closed = closed

    def _decide(self, decided: int) -> None:
        _must(decided >= self.decided, "there are fewer decisions than before")
        last = self.guarantee.horizon if self.guarantee.is_private else None
        if last is not None:
            _must(decided <= last, f"decisions went on after round {last:,}, where the guarantee ends")
        self.decided = decided

    def _page(self, page: Page) -> None:
        self._count(page.decided, page.closed)
        _must(page.epoch >= self.epoch, "it is of an epoch that is over")
        _must(page.generation >= self.generation, "it is of a generation that is over")
        self.epoch, self.generation = page.epoch, page.generation
        if page.shares is not None:
            self._share_out(page.shares)
        if page.released is not None:
            self._read(page.released)

    def _share_out(self, shares: list[int]) -> None:
        _must(self.guarantee.trust is Trust.CENTRAL, "it counts decisions that are not public")
        _must(not self.labels or len(shares) == len(self.labels), "it has not one share for each label")
        before = [*self.shares, *([0] * (len(shares) - len(self.shares)))]
        grown = len(shares) == len(before) and all(a >= b for a, b in zip(shares, before, strict=True))
        _must(grown, "a share is smaller than before")
        one_each = self.problem.kept_items is None  # otherwise a decision is a set
        counted_once = sum(shares) if one_each else max(shares, default=0)
        _must(counted_once <= self.decided, "its shares add up to more than was decided")
        self.shares = shares

    def _read(self, reading: Reading) -> None:
        fits = reading.rounds <= self.closed and reading.decided <= self.decided
        _must(fits, "it tells of more rounds than there were")
        mean, low, high = (_numbers(one) for one in (reading.mean, reading.low, reading.high))
        also = [_numbers(one) for one in (reading.plays, reading.active) if one is not None]
        fits = all(one.shape == mean.shape for one in (low, high, *also))
        _must(fits, "its released values do not fit together")
        _must(not np.any(low > high), "an interval ends before it begins")
        if reading.spent is None or not self.guarantee.is_private:
            return
        try:
            Budget.from_dict(restored(reading.spent)).within(self.guarantee.budget)
        except NotImplied:
            raise LedgerError("more was spent than is promised") from None
        except DPBanditsError as error:
            raise LedgerError(f"what was spent cannot be read: {error}") from None

    def _change(self, change: Changed) -> None:
        self._decide(change.decided)
        known, away = change.label in self.labels, change.label in self.retired
        if change.act == "add":
            _must(not known, "it adds an action that there was")
            self.labels = [*self.labels, change.label]
            room = self.problem.slots if isinstance(self.problem, Arms) else 0
            _must(len(self.labels) <= room, "it adds more actions than were declared")
        else:
            _must(known, "it is about an action that there is not")
            _must(away == (change.act == "revive"), f"there is nothing to {change.act}")
            self.retired ^= {change.label}
            _must(len(self.retired) < len(self.labels), "it retires the last action")
        self.changes += 1


def _derived(opened: Opened) -> tuple[Problem, Guarantee]:
    """The problem, and what this version promises for the recipes: it must be what is written."""
    try:
        policy = Policy.from_dict(restored(opened.policy))
        problem = Problem.from_dict(restored(opened.problem))
        guarantee = policy.guarantee(problem)
        refused = policy.refuses_exact_noise(problem) if opened.noise == "exact" else ""
    except DPBanditsError as error:
        raise LedgerError(f"nothing follows from its recipes: {error}") from None
    same = opened.version == __version__
    hint = "" if same else f" (it was written by dpbandits {opened.version}; this is {__version__})"
    alike = _alike(restored(opened.guarantee), guarantee.to_dict())
    _must(alike, f"its guarantee is not the one that follows from its recipes{hint}")
    _must(not refused, f"its noise cannot be exact: {refused}{hint}")
    return problem, guarantee


def _check_terms(experiment: str, opened: Opened, guarantee: Guarantee) -> None:
    _must(not opened.seeded, "its noise comes from a seed, and whoever knows that can undo it")
    _must(len(set(opened.labels)) == len(opened.labels), "two actions have the same label")
    _must(opened.terms.in_flight >= 1, "no round may be open")
    _must(opened.follows != experiment, "it succeeds itself")
    name = None if opened.population is None else opened.population.name
    _must(opened.terms.population == name, "its population is not the one of its terms")
    if opened.population is not None:
        _check_population(experiment, opened.population, guarantee)


def _check_population(experiment: str, population: Population, guarantee: Guarantee) -> None:
    names = population.experiments
    _must(len(set(names)) == len(names) == len(population.budgets), "its population is malformed")
    try:
        held = [Budget.from_dict(restored(one)) for one in population.budgets]
    except DPBanditsError as error:
        raise LedgerError(f"a budget of its population cannot be read: {error}") from None
    budgets = dict(zip(names, held, strict=True))
    own = experiment in budgets and _alike(budgets[experiment].to_dict(), guarantee.budget.to_dict())
    _must(own, "its population does not count its own budget")
    told, derived = msgspec.to_builtins(population), population_record(population.name, budgets)
    _must(
        _alike(restored(told), restored(written(derived))),
        "the budgets of its population add up to something else",
    )


def _alike(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of numbers."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ROUNDING)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other) and bool(one == other)


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    """Decimals, in rows or not; NaN where there is nothing yet."""
    try:
        return np.array(restored(values), np.float64)
    except (TypeError, ValueError):
        raise LedgerError("its released values are not numbers") from None
