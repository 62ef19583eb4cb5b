"""What the page says of each experiment, in words and shapes; templates only lay it out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import Problem
from dpbandits.service.entries import restored
from dpbandits.service.pictures import coloured, stacked
from dpbandits.service.rows import Table, label_of, tables_of
from dpbandits.service.views import View
from dpbandits.wording import counted, number

_SHOWN_ENTRIES = 12  # of a ledger, the newest
_SHOWN_LEADERS = 8  # where a set leads
_STATES = {
    "running": "Running",
    "suspended": "Suspended",
    "stopped": "Stopped",
    "abandoned": "Abandoned",
}
_NO_SHARES = {
    Trust.JOINT: (
        "How often each action was chosen is not shown: here a decision may tell the context of the "
        "person it was made for, so it is for her alone."
    ),
    Trust.LOCAL: (
        "How often each action was chosen is not known: people decide on their own devices, and send "
        "nothing but protected messages."
    ),
}
_NO_PAGE = "Nothing is published yet: a page of the ledger is due within minutes of the first decision."
_NO_ESTIMATES = "This policy releases nothing but its decisions, so there are no estimates to show."


@dataclass(frozen=True)
class Line:
    """An entry of a ledger, in a few words."""

    number: int
    at: str
    said: str
    hash: str


@dataclass(frozen=True)
class Card:
    """All that is shown of an experiment; meters have a width and words."""

    view: View
    state: str
    budget: str
    is_private: bool
    summary: str
    sentence: list[str]  # every other part is code
    facts: list[tuple[str, str]]
    progress: tuple[str, str] | None
    spent: tuple[str, str] | None
    tables: list[Table]
    leaders: tuple[list[str], str]
    layers: list[tuple[int, str]]
    notes: list[str]
    as_of: str
    entries: str
    ledger: list[Line]


def card_of(view: View, entries: Sequence[Mapping[str, Any]]) -> Card:
    """The card of an experiment, with the newest of these ledger entries."""
    return Card(
        view=view,
        state=_STATES.get(view.state, view.state),
        budget=view.guarantee.short() if view.guarantee.is_private else "not private",
        is_private=view.guarantee.is_private,
        summary=_summary(view),
        sentence=str(view.guarantee).split("`"),
        facts=_facts(view),
        progress=_progress(view),
        spent=_spent(view),
        tables=tables_of(view),
        leaders=_leaders(view),
        layers=_layers(view),
        notes=_notes(view),
        as_of=_moment(view.as_of),
        entries="1 entry" if view.ledger_entries == 1 else f"{view.ledger_entries:,} entries",
        ledger=[_line(entry) for entry in reversed(entries[-_SHOWN_ENTRIES:])],
    )


def _summary(view: View) -> str:
    policy, problem = Policy.from_dict(view.policy), Problem.from_dict(view.problem)
    size = problem.testing.size_in_words(problem)
    noise = f", {view.noise} noise" if view.guarantee.is_private and view.noise else ""
    return f"{policy.name()} on {size}{noise}"


def _facts(view: View) -> list[tuple[str, str]]:
    if view.guarantee.trust is Trust.LOCAL:  # who decides on her own device leaves no round open
        return [("Messages", f"{view.decided:,}")]
    facts = [("Decisions", f"{view.decided:,}"), ("Closed rounds", f"{view.closed:,}")]
    if view.state == "running":
        facts.append(("Open at once", f"up to {view.window:,}"))
        if view.deadline is not None:
            facts.append(("Open for", _duration(view.deadline)))
    k = view.guarantee.rounds_per_person
    people = "not told apart" if k is None else f"{counted(k, 'round')} each"
    return [*facts, ("People", people)]


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), unit)
    return counted(int(seconds), "second") if seconds == int(seconds) else f"{number(seconds)} seconds"


def _progress(view: View) -> tuple[str, str] | None:
    """How much of the horizon is over, and in words."""
    if view.horizon is None:
        return None
    part = min(view.decided / view.horizon, 1.0)
    return f"{100.0 * part:.1f}%", f"{view.decided:,} of {view.horizon:,} rounds"


def _spent(view: View) -> tuple[str, str] | None:
    """How much of the budget was spent, and in words; None where that is not known."""
    if view.released is None or not view.guarantee.is_private:
        return None
    spent, promised = view.released.spent, view.guarantee.budget
    if spent is None:
        return "0%", f"nothing of {promised}"
    if type(spent) is not type(promised):
        return None
    words = f"all of {promised}" if str(spent) == str(promised) else f"{spent} of {promised}"
    return f"{100.0 * min(spent.size / promised.size, 1.0):.1f}%", words


def _leaders(view: View) -> tuple[list[str], str]:
    """Who leads, and how sure that is."""
    read = view.released
    if read is None or not read.leading or read.what not in ("arm", "item", "action"):
        return [], ""
    names = [label_of(view, place) for place in read.leading[:_SHOWN_LEADERS]]
    if len(read.leading) > len(names):
        names.append(f"{len(read.leading) - len(names):,} more")
    return names, "" if read.sure is None else f"at least {min(99, int(100.0 * read.sure))} % sure"


def _layers(view: View) -> list[tuple[int, str]]:
    shared = [moment for moment in view.history if moment.shares and sum(moment.shares)]
    if view.shares is None or len(shared) < 2:
        return []
    return stacked(view.history, coloured(view.shares))


def _notes(view: View) -> list[str]:
    if view.as_of == 0:
        return [_NO_PAGE]
    notes = []
    if view.released is None:
        notes.append(_NO_ESTIMATES)
    if view.shares is None:
        notes.append(_NO_SHARES.get(view.guarantee.trust, "Decisions are not counted by action here."))
    return notes


def _moment(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%-d %b %Y, %H:%M} UTC"


def _line(entry: Mapping[str, Any]) -> Line:
    return Line(entry["number"], _moment(entry["at"]), _said(entry), entry["hash"])


def _said(entry: Mapping[str, Any]) -> str:
    """An entry's body in a few words."""
    body = entry["body"]
    match entry["kind"]:
        case "opened":
            budget = Budget.from_dict(restored(body["guarantee"]["budget"]))
            return f"Opened: {budget}, dpbandits {body['version']}"
        case "page":
            return f"{body['decided']:,} decided, {body['closed']:,} closed"
        case "resumed":
            return f"Resumed as epoch {body['epoch']}"
        case "changed":
            acts = {"add": "Added", "retire": "Retired", "revive": "Revived"}
            return f"{acts[body['act']]} {body['label']} after {counted(body['decided'], 'decision')}"
        case "stopped":
            return f"Stopped after {counted(body['decided'], 'decision')}"
        case _:
            return f"Abandoned: {body['reason']}"
