"""What callers were told, against what the witness saw and what a restart finds.

| count | of |
|---|---|
| answered_differently | requests and tickets with two different answers, or whose answer was forgotten |
| tickets_shared | tickets that two requests were given |
| noise_redrawn | answered decisions at which the learner's state was not the same every time |
| sums_wrong | actions whose rewards are not exactly those acknowledged, each counted once |
| people_over | experiments that learned more from a person than was declared |
| retired_played | decisions for an arm that was out of play before they were asked for |
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from callers import Journal


@dataclass(frozen=True)
class Counts:
    """All of them must be 0."""

    answered_differently: int
    tickets_shared: int
    noise_redrawn: int
    sums_wrong: int
    people_over: int = 0
    retired_played: int = 0

    @property
    def are_zero(self) -> bool:
        return not any(astuple(self))


@dataclass(frozen=True)
class Verdict:
    """The counts, and of how much."""

    counts: Counts
    decisions: int
    acknowledged: int
    replayed: int
    unknown: int


def judge(journal: Journal, witness: Path, found: Mapping[str, Any]) -> Verdict:
    """Compare what callers were told with what the witness saw and a restart finds."""
    witnessed, replayed = read_witness(witness)
    counts = Counts(
        answered_differently=_answered_differently(journal),
        tickets_shared=_tickets_shared(journal),
        noise_redrawn=_redrawn(journal, witnessed),
        sums_wrong=sum(_sums_wrong(journal, name, one) for name, one in found.items()),
        people_over=sum(one["most_of_one_person"] > 2 for one in found.values()),
        retired_played=journal.retired_played,
    )
    return Verdict(
        counts, len(journal.answers), len(journal.acknowledged), replayed, len(journal.unknown)
    )


def read_witness(path: Path) -> tuple[dict[tuple[str, int], set[str]], int]:
    """The states in which each decision was answered or made again, and how many were made again.

    One that was made and never answered is nobody's: after a crash another takes its number.
    """
    told: dict[tuple[str, int], set[str]] = defaultdict(set)
    last: dict[tuple[str, str, int], str] = {}
    replayed = 0
    for line in path.read_text().splitlines():
        run, kind, experiment, number, digest = line.split(" ")
        place = experiment, int(number)
        if kind == "answered":
            digest = last.get((run, *place), "")
        else:
            last[run, *place] = digest
        if kind != "live" and digest:
            told[place].add(digest)
        replayed += kind == "replayed"
    return told, replayed


def _answered_differently(journal: Journal) -> int:
    by_ticket = defaultdict(set)
    for told in journal.answers.values():
        for ticket, action in told:
            by_ticket[ticket].add(action)
    twice = sum(len(told) > 1 for told in journal.answers.values())
    return twice + sum(len(actions) > 1 for actions in by_ticket.values()) + len(journal.forgotten)


def _tickets_shared(journal: Journal) -> int:
    holders = defaultdict(set)
    for place, told in journal.answers.items():
        for ticket, _ in told:
            holders[ticket].add(place)
    return sum(len(requests) > 1 for requests in holders.values())


def _redrawn(journal: Journal, witnessed: Mapping[tuple[str, int], set[str]]) -> int:
    """Answers that the witness did not see count as well: it must not be blind."""
    answered = {
        (experiment, round_of(ticket))
        for (experiment, _), told in journal.answers.items()
        for ticket, _ in told
    }
    return sum(len(witnessed.get(place, ())) != 1 for place in answered)


def round_of(ticket: str) -> int:
    """The number in a ticket, which is public."""
    return int.from_bytes(base64.urlsafe_b64decode(ticket)[3:9], "big")


def _sums_wrong(journal: Journal, experiment: str, found: Mapping[str, Any]) -> int:
    held = [*found["closed_rewards"], *found["open_rewards"]]
    kept = {number for number, _, _ in held}
    told = []
    for (name, _), answers in journal.answers.items():
        for ticket, action in answers if name == experiment else ():
            if ticket in journal.acknowledged:
                told.append((action, journal.acknowledged[ticket]))
            elif ticket in journal.unknown and round_of(ticket) in kept:
                told.append((action, journal.unknown[ticket]))  # or not: nobody was told
    sums, kept_sums = _sums(told), _sums((action, value) for _, action, value in held)
    wrong = sum(sums[action] != kept_sums[action] for action in sums.keys() | kept_sums.keys())
    if found["raw_sums"] is not None:  # what the learner itself holds, of closed rounds
        closed = _sums((action, value) for _, action, value in found["closed_rewards"])
        for action, total in found["raw_sums"].items():
            wrong += total != closed[action][1] - 0.5 * closed[action][0]
    return wrong


def _sums(rewards: Iterable[tuple[str, float]]) -> dict[str, tuple[int, float]]:
    """How many there are of each action, and their sum, which is exact."""
    sums: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for action, value in rewards:
        sums[action] = sums[action][0] + 1, sums[action][1] + value
    return sums
