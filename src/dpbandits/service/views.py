"""What is public of an experiment, field by field, each with the reason why it may be.

All that leaves the service without a key is made of a `View`: the page, the list of experiments, and the
public metrics. A field that is not here is not shown.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from dpbandits.policies.released import Released
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.service.entries import restored
from dpbandits.service.running import Running

Values = tuple[float, ...] | None
MOMENTS = 240  # of a history, at most: a picture shows no more


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A page of the ledger, as a picture needs it; NaN where nothing was known of an action."""

    at: Annotated[int, "The time of a ledger page: pages are due by decisions and by the clock."]
    decided: Annotated[int, "How many decisions there were: who takes part when is not protected."]
    shares: Annotated[
        tuple[int, ...] | None, "Decisions by label, where all decisions are the protected output."
    ]
    mean: Annotated[Values, "Released values, on the page too."]
    low: Annotated[Values, "Made of released values and declared noise."]
    high: Annotated[Values, "Made of released values and declared noise."]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: None for NaN."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


@dataclass(frozen=True, kw_only=True)
class View:
    """What everybody may know of an experiment."""

    name: Annotated[str, "Declared before the first round."]
    policy: Annotated[dict[str, Any], "The recipe: it holds no data and no seed."]
    problem: Annotated[dict[str, Any], "Declared before the first round."]
    noise: Annotated[str, "How noise is drawn, which follows from the recipes."]
    labels: Annotated[tuple[str, ...], "Declared by the operator, as are those added later."]
    guarantee: Annotated[Guarantee, "Follows from the recipes alone."]
    state: Annotated[str, "An act of the operator; or suspended, by a database that was rolled back."]
    decided: Annotated[int, "Counts decisions: who takes part when is not protected."]
    closed: Annotated[int, "Follows from decisions and the clock, never from what was answered."]
    window: Annotated[int, "How many rounds may be open: declared before the first round."]
    deadline: Annotated[float | None, "How many seconds a round is open: declared beforehand."]
    horizon: Annotated[int | None, "Declared before the first round."]
    generation: Annotated[int, "Counts folds, which are due by decisions and by the clock."]
    population: Annotated[str | None, "Declared before the first round."]
    together: Annotated[str, "Follows from the recipes of all experiments on the population."]
    retired: Annotated[tuple[str, ...], "Actions come and go by acts of the operator."]
    released: Annotated[Released | None, "Post-processing of releases that the guarantee pays for."]
    as_of: Annotated[int, "The time of the last ledger page."]
    shares: Annotated[
        tuple[int, ...] | None, "Decisions by label, where all decisions are the protected output."
    ]
    history: Annotated[tuple[Moment, ...], "Pages of the ledger, which is public."]
    ledger_head: Annotated[str, "The hash of the ledger's newest entry."]
    ledger_entries: Annotated[int, "How long the ledger is, which is public."]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; the guarantee is told once."""
        told = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        if told["released"] is not None:
            del told["released"]["guarantee"]
        return told


def history(entries: Sequence[Mapping[str, Any]]) -> tuple[Moment, ...]:
    """The pages of a ledger, the first and the last among them; of many only some."""
    pages = [entry for entry in entries if entry["kind"] == "page"]
    last, most = len(pages) - 1, MOMENTS - 1
    if last > most:
        pages = [pages[place * last // most] for place in range(MOMENTS)]
    return tuple(_moment(page) for page in pages)


def _moment(entry: Mapping[str, Any]) -> Moment:
    body: Mapping[str, Any] = entry["body"]
    shares, released = body["shares"], body["released"]
    values = {name: _flat(released, name) for name in ("mean", "low", "high")}
    shown = None if shares is None else tuple(shares)
    return Moment(at=entry["at"], decided=body["decided"], shares=shown, **values)


def _flat(released: Mapping[str, Any] | None, name: str) -> Values:
    """One value after the other, also those in rows."""
    if released is None:
        return None
    rows = [row if isinstance(row, list) else [row] for row in restored(released[name])]
    return tuple(math.nan if value is None else value for row in rows for value in row)


def _plain(value: Any) -> Any:
    if isinstance(value, Released | Guarantee | Moment):
        return value.to_dict()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def view(one: Running, together: str, pages: Sequence[Mapping[str, Any]] = ()) -> View:
    """What is public of an experiment: counts as of the last commit, values as of the last page."""
    terms, page, desk, facts = one.terms, one.ledger.page, one.public_desk, one.facts
    guarantee = terms.guarantee if desk is None else desk.guarantee
    shares = None if page is None or page["shares"] is None else tuple(page["shares"])
    return View(
        name=terms.name,
        policy=terms.policy.to_dict(),
        problem=terms.problem.to_dict(),
        noise="" if facts is None else facts.noise,
        labels=terms.labels if facts is None else facts.labels,
        guarantee=guarantee,
        state=one.state,
        decided=one.counts[0],
        closed=one.counts[1],
        window=terms.in_flight,
        deadline=terms.patience,
        horizon=terms.problem.horizon,
        generation=one.generation,
        population=terms.population,
        together=together,
        retired=() if facts is None else facts.retired,
        released=None if page is None else _released(page["released"], guarantee),
        as_of=one.ledger.page_at,
        shares=shares,
        history=history(pages),
        ledger_head=one.ledger.head,
        ledger_entries=one.ledger.number,
    )


def _released(record: Mapping[str, Any] | None, guarantee: Guarantee) -> Released | None:
    """A record of a page as values again."""
    if record is None:
        return None
    told = restored(dict(record))
    arrays: dict[str, Any] = {name: np.array(told[name], np.float64) for name in ("mean", "low", "high")}
    plays, active = told["plays"], told["active"]
    return Released(
        what=told["what"],
        **arrays,
        plays=None if plays is None else np.array(plays, np.int64),
        active=None if active is None else np.array(active, np.bool_),
        leading=tuple(told["leading"]),
        sure=told["sure"],
        recommendation=told["recommendation"],
        stopped=told["stopped"],
        rounds=told["rounds"],
        decided=told["decided"],
        public_rows=told["public_rows"],
        guarantee=guarantee,
        spent=None if told["spent"] is None else Budget.from_dict(told["spent"]),
    )
