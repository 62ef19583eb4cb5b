"""A log as typed after `--data`, as a world."""

import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from dpbandits import offline
from dpbandits.cli.command import given
from dpbandits.errors import InvalidInput, LooseBound, ShortenedFeatures
from dpbandits.extras import check_installed
from dpbandits.features import Category, Column, FeatureMap, Hashed, Number
from dpbandits.notation import number as read_number
from dpbandits.notation import whole
from dpbandits.offline.estimates import LEAST_EFFECTIVE
from dpbandits.wording import counted, number
from dpbandits.worlds import LoggedArms, LoggedContexts
from dpbandits.worlds.logged.sums import effective_rows_by_action
from dpbandits.worlds.logged.table import ACTION, read_log

OPTIONS = ("action", "reward", "reward_range", "propensity", "position", "features", "prior_rows")
ABOUT = (
    "An empirical world: each reward is drawn at the rate that its action had in the log (in its "
    "context, where there are features). So every policy can be played on it, and what it lost is "
    "known exactly. It takes rounds to be independent, and the rates of the log to be the true ones: "
    "intervals are of the chance between runs, and leave out that of the log itself; "
    "with few rows an action, the best of many looks better than it is, and more seems to be there to "
    "learn.",
    "What is shown here is made of the log itself, without noise. It says what privacy would have cost, "
    "and is for those who may see the log: it is no private release of it.",
)
_SURPRISING = 0.01
_MUCH = 1 / 3  # of the spread of rates that is chance
_MOST_NUMBERS = 2**24  # rows times actions that are held in memory for an estimate


class Typed(NamedTuple):
    """The options that say how a log is to be read, as they were typed."""

    action: str | None
    reward: str | None
    reward_range: str | None
    propensity: str | None
    position: str | None
    features: str | None
    prior_rows: float | None


def about(world: LoggedArms | LoggedContexts) -> tuple[str, ...]:
    """What to know of a comparison on a log."""
    if isinstance(world, LoggedContexts):
        return (*_drawn(world), *_few_rows(world), *ABOUT)
    chance = world.chance_of_spread()
    if chance is None or chance < _SURPRISING:
        return ABOUT
    return (
        f"The rates of {world.title} do not show that its actions differ: if all paid alike, rates this "
        f"far apart would be seen in {100 * chance:.2g} % of logs (χ² test). What there seems to be to "
        "learn may be chance; --prior-rows 100 draws rates to their mean, by so many rows.",
        *ABOUT,
    )


def _drawn(world: LoggedContexts) -> list[str]:
    """How much rates in contexts were drawn to those in all, and how to have them otherwise."""
    if not world.prior_rows:
        return ["Rates in contexts are taken as they are, however few rows they have (--prior-rows 0)."]
    if world.prior_rows == world.rows:
        return [
            f"In {world.title} an action's rate differs between contexts no more than chance would make "
            "it, so it is hardly more than its rate in all contexts; --prior-rows 0 takes rates as they "
            "are."
        ]
    rows = number(float(f"{world.prior_rows:.2g}"))
    return [
        f"An action's rate in a context is drawn to its rate in all contexts by {rows} rows: with "
        f"{rows} rows of its own it is half way between. Unless --prior-rows says how many, it is as "
        "many as the log itself calls for, by how much rates differ between contexts beyond chance "
        "(Bühlmann and Straub, 1970)."
    ]


def _few_rows(world: LoggedContexts) -> list[str]:
    """A sentence where much of what can be learned in the contexts of a log is chance."""
    chance, rows = world.spread_by_chance(), world.rows_per_cell()
    if chance is None or rows is None or chance < _MUCH:
        return []
    contexts, actions = counted(len(world.shares), "context"), counted(len(world.actions), "action")
    return [
        f"{contexts} × {actions}: about {rows:,.0f} rows of each action in the median context. Chance "
        f"alone would make {100 * chance:.0f} % of the spread of rates within contexts, so the best "
        "action of each is often a matter of chance, the 100 % line is too high and every share kept is "
        "too low: name fewer columns, round their values in the log, or give more --prior-rows."
    ]


def refuse_without_data(ctx: typer.Context) -> None:
    """What names the columns of a log goes with one."""
    for option in given(ctx, *OPTIONS):
        raise InvalidInput(f"{option} goes with --data; leave it out, or give --data log.parquet")


def logged_world(path: Path, typed: Typed) -> tuple[LoggedArms | LoggedContexts, list[str]]:
    """The log in a file, as a world, of arms unless columns of features are named; and warnings."""
    check_installed("tables")
    if typed.action is None or typed.reward is None:
        raise InvalidInput("--data needs the names of two columns: --action item --reward click")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ShortenedFeatures)
            warnings.simplefilter("always", LooseBound)
            world = _read(path, typed)
        return world, [_as_typed(str(warning.message), typed) for warning in caught]
    except InvalidInput as error:  # as it is said on the command line
        raise InvalidInput(_as_typed(str(error), typed)) from None


def _as_typed(said: str, typed: Typed) -> str:
    """What is said of Python's options, of those of the command line."""
    said = said.replace("reward_range=(low, high)", "--reward-range low,high")
    said = said.replace("prior_rows", "--prior-rows").replace("(other=True)", "('…|*')")
    said = re.sub(r"say at='?(.+?)'?$", rf"say --position {typed.position}=\1", said)
    declared = r"Number\('(.+)', …, missing=…\), Category or Hashed"
    return re.sub(declared, r"--features '\1=low..high?value' or '\1=a|b'", said)


def _read(path: Path, typed: Typed) -> LoggedArms | LoggedContexts:
    if typed.features is None:
        return LoggedArms.read(path, **_columns(typed), prior_rows=typed.prior_rows or 0.0)
    context, features = _features(typed.features)
    given: dict[str, Any] = {"features": features, "prior_rows": typed.prior_rows}
    return LoggedContexts.read(path, context=context, **given, **_columns(typed))


def from_propensities(path: Path, typed: Typed, world: LoggedArms | LoggedContexts) -> list[str]:
    """What the log earned, and what uniform play would have earned on it, where that can be said."""
    if typed.propensity is None:
        return []
    said = _heavy_rows(path, typed)
    if (world.rows or 0) * len(world.actions) > _MOST_NUMBERS:
        large = "The log is too large for an off-policy estimate of uniform play, with its interval."
        return [*said, large]
    rows = offline.read(path, **_columns(typed))
    said.append(f"The log itself earned {rows.rewards.mean():.4g} a row.")
    uniform = np.full((len(rows), len(rows.labels)), 1.0 / len(rows.labels))
    try:
        return [
            *said,
            f"Uniform play on its people, by its propensities: {offline.snips(rows, uniform)}.",
        ]
    except InvalidInput as refused:
        return [*said, f"What uniform play would have earned on its people is not known: {refused}."]


def _heavy_rows(path: Path, typed: Typed) -> list[str]:
    """A sentence where rates of actions are those of a few rows that were very unlikely."""
    found = effective_rows_by_action(read_log(path, **_columns(typed))).sort("effective", ACTION)
    rests = (found["effective"] < LEAST_EFFECTIVE) & (2.0 * found["effective"] < found["rows"])
    heavy = found.filter(rests)
    if not heavy.height:
        return []
    action, rows, effective = heavy.row(0)
    return [
        f"The rates of {heavy.height} of {counted(found.height, 'action')} rest on a few rows of small "
        f"propensity, which count most: the {counted(rows, 'row')} of {action!r} tell as much as "
        f"{effective:.1f} rows that count alike, where an off-policy estimate needs "
        f"{LEAST_EFFECTIVE:g}. The best rate may be that of a single row, and what is kept is a share "
        "of it. Without --propensity rows count alike, which is right if actions were chosen without "
        "regard to people."
    ]


def _columns(typed: Typed) -> dict[str, Any]:
    """The columns of a log and the range of its rewards, as options of what reads it."""
    place, sign, at = (typed.position or "").partition("=")
    found: dict[str, Any] = {"position": place or None, "at": at if sign else None}
    found |= {"action": typed.action, "reward": typed.reward, "propensity": typed.propensity}
    return found | {"reward_range": _range(typed.reward_range)}


def _features(text: str) -> tuple[list[str], FeatureMap | None]:
    """Columns, and what was declared of them; as they are where nothing was declared of any."""
    parts = [part.strip() for part in text.split(",")]
    columns = [part.partition("=")[0].strip() for part in parts]
    if not any("=" in part for part in parts):
        return columns, None
    return columns, FeatureMap([_declared(part) for part in parts])


def _declared(part: str) -> Column:
    """``age=18..90?40`` (40 if missing), ``device=phone|desktop|*`` (* for others), ``city=#64``."""
    name, _, values = (word.strip() for word in part.partition("="))
    low, between, high = values.partition("..")
    if between:
        high, asked, missing = high.partition("?")
        ends = _end(name, low), _end(name, high)
        return Number(name, *ends, missing=_end(name, missing) if asked else None)
    if values.startswith("#"):
        return Hashed(name, whole(values[1:], f"buckets of {name}"))
    if values:
        listed = [value.strip() for value in values.split("|")]
        others = listed[-1] == "*" and len(listed) > 1
        return Category(name, listed[:-1] if others else listed, other=others)
    raise InvalidInput(
        f"what can {name} be? write {name}=0..100 for numbers, {name}=a|b for names, {name}=#16 for "
        "names by 16 buckets"
    )


def _end(name: str, text: str) -> float:
    """One end of a declared range."""
    try:
        return read_number(text, name)
    except InvalidInput:
        raise InvalidInput(
            f"expected numbers in the range of {name}, such as {name}=0..100, got {text!r}; of a date "
            "make a number or a name first, such as its day of the week"
        ) from None


def _range(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, 1.0
    ends = [read_number(part, "reward-range") for part in text.split(",")]
    if len(ends) != 2:
        raise InvalidInput(f"expected --reward-range as low,high, such as 1,5; got {text!r}")
    return ends[0], ends[1]
