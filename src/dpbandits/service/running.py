"""An experiment in the writer's hands: its desk, its place in the log, and its ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from dpbandits.engine import has_pauses, leaves
from dpbandits.errors import InvalidInput
from dpbandits.policies.saving import fingerprint
from dpbandits.problems import KernelContexts
from dpbandits.service.desk import Desk
from dpbandits.service.ledger import Signer, make_entry, page_body
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.refusals import Refusal
from dpbandits.service.sealing import Seal
from dpbandits.service.store import Snapshot
from dpbandits.service.terms import Terms

MOST_STATE = 2**28  # bytes of an experiment's state, all of which is written at each fold
AnyDesk = Desk | LocalDesk


@dataclass
class LedgerEnd:
    """Where the ledger of an experiment stands."""

    number: int = 0  # of the next entry
    head: str = ""  # the hash of the last
    at: int = 0  # its time
    page: Mapping[str, Any] | None = None  # the body of the last page
    page_at: int = 0

    def after(self, entry: Mapping[str, Any]) -> "LedgerEnd":
        """With one more entry."""
        is_page = entry["kind"] == "page"
        return LedgerEnd(
            number=entry["number"] + 1,
            head=entry["hash"],
            at=entry["at"],
            page=entry["body"] if is_page else self.page,
            page_at=entry["at"] if is_page else self.page_at,
        )


@dataclass(frozen=True)
class Facts:
    """What its ledger has said of it so far, beside pages."""

    noise: str
    labels: tuple[str, ...]
    retired: tuple[str, ...]

    @classmethod
    def told_by(cls, entries: Sequence[Mapping[str, Any]]) -> "Facts":
        """The first entry and all changes."""
        opened = entries[0]["body"]
        labels, retired = list(opened["labels"]), list[str]()
        for body in (entry["body"] for entry in entries[1:]):
            match body["act"]:
                case "add":
                    labels.append(body["label"])
                case "retire":
                    retired.append(body["label"])
                case "revive":
                    retired.remove(body["label"])
        return cls(opened["noise"], tuple(labels), tuple(retired))


@dataclass
class Running:
    """One that takes decisions; or is suspended or has ended, and then need not have a desk."""

    id: int
    terms: Terms
    state: str = "running"
    epoch: int = 0
    head: int = 0
    ledger: LedgerEnd = field(default_factory=LedgerEnd)
    counts: tuple[int, int] = (0, 0)  # decided and closed, as of the last commit
    facts: "Facts | None" = None
    _desk: AnyDesk | None = None
    _seal: Seal | None = None

    @property
    def desk(self) -> AnyDesk:
        """Of one that runs."""
        assert self._desk is not None
        return self._desk

    @property
    def public_desk(self) -> AnyDesk | None:
        """To read labels and the like of, where it is at work."""
        return self._desk

    @property
    def seal(self) -> Seal:
        """The key of its present generation."""
        assert self._seal is not None
        return self._seal

    def take(self, desk: AnyDesk, seal: Seal) -> None:
        """Go on with these."""
        self._desk, self._seal = desk, seal
        self.facts = Facts(desk.noise, tuple(desk.labels), desk.retired)
        self.count()

    def count(self) -> None:
        """Let everybody see what is committed now."""
        self.counts = self.desk.decided, self.desk.closed

    @property
    def generation(self) -> int:
        """How often it was folded; for one that has ended, by its last page."""
        if self._seal is not None:
            return self._seal.generation
        return 0 if self.ledger.page is None else int(self.ledger.page["generation"])

    @property
    def is_running(self) -> bool:
        """Whether it decides."""
        return self.state == "running"

    @property
    def is_suspended(self) -> bool:
        """Whether a ticket has shown that the database was rolled back."""
        return self.state == "suspended"

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left but what is public."""
        return not (self.is_running or self.is_suspended)

    def refuse_unless_running(self) -> None:
        """Say why it does not decide."""
        if self.is_suspended:
            raise Refusal("ticket-from-the-future")
        if not self.is_running:
            raise Refusal("stopped")

    def entry(self, signer: Signer, kind: str, body: Mapping[str, Any], now: float) -> dict[str, Any]:
        """The next entry of its ledger, whose times never run back."""
        at = max(int(now), self.ledger.at)
        return make_entry(
            signer,
            experiment=self.terms.name,
            number=self.ledger.number,
            at=at,
            kind=kind,
            body=body,
            previous=self.ledger.head,
        )

    def sealed(self, seal: Seal, data: bytes) -> Snapshot:
        """A snapshot of it as it is stored, under this key."""
        fingerprint = msgspec.json.encode(fingerprint_of(self.desk)).decode()
        closed = seal.close("snapshot", seal.generation, data)
        return Snapshot(seal.generation, self.head, fingerprint, closed)

    def page(self) -> dict[str, Any]:
        """The body of a page of its ledger: what is public now."""
        desk = self.desk
        return page_body(
            decided=desk.decided,
            closed=desk.closed,
            epoch=self.epoch,
            generation=self.seal.generation,
            released=desk.released(),
            shares=desk.shares[: len(desk.labels) or None] if self.terms.shows_actions else None,
        )


def begin_desk(terms: Terms) -> AnyDesk:
    """Before the first round; refused where its state is too large to be written again and again."""
    problem = terms.problem
    if isinstance(problem, KernelContexts):  # of which features are computed, not only room made
        _refuse_if_large(8 * problem.pairs * min(problem.pairs, problem.max_rank))
    try:
        desk = LocalDesk.begin(terms) if terms.is_local else Desk.begin(terms)
    except MemoryError:
        raise InvalidInput("there is not enough memory for its state") from None
    people = desk.people
    arrays = [np.asarray(value) for state in desk.state for _, value in leaves(state)]
    _refuse_if_large(sum(one.nbytes for one in arrays) + (0 if people is None else people.nbytes))
    return desk


def _refuse_if_large(size: int) -> None:
    if size > MOST_STATE:
        raise InvalidInput(
            f"its state would take {size / 2**20:,.0f} MiB, and all of it is written at each fold: at "
            f"most {MOST_STATE / 2**20:,.0f} MiB can be served"
        )


def restore_desk(terms: Terms, data: bytes) -> AnyDesk:
    """From a snapshot."""
    return LocalDesk.restore(terms, data) if terms.is_local else Desk.restore(terms, data)


def fingerprint_of(desk: AnyDesk) -> dict[str, str]:
    """What must be alike to play its log back: that of linear algebra only where a pause uses it."""
    found = fingerprint()
    if not has_pauses(desk.state[0]):
        del found["blas"]
    return found
