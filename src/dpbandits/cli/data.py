"""A log as typed after `--data`, as a world."""

from pathlib import Path
from typing import NamedTuple

import typer

from dpbandits.cli.command import given
from dpbandits.errors import InvalidInput
from dpbandits.extras import check_installed
from dpbandits.notation import number
from dpbandits.worlds import LoggedArms, LoggedContexts

OPTIONS = ("action", "reward", "reward_range", "propensity", "position", "features", "prior_rows")
ABOUT = (
    "An empirical world: each reward is drawn at the rate that its action had in the log (in its "
    "context, where there are features). So every policy can be played on it, and what it lost is known "
    "exactly. It takes rounds to be independent, and the rates of the log to be the true ones; with few rows an "
    "action, the best of many looks better than it is, and more seems to be there to learn.",
    "What is shown here is made of the log itself, without noise. It says what privacy would have cost, "
    "and is for those who may see the log: it is no private release of it.",
)
_SURPRISING = 0.01


class Typed(NamedTuple):
    """The options that say how a log is to be read, as they were typed."""

    action: str | None
    reward: str | None
    reward_range: str | None
    propensity: str | None
    position: str | None
    features: str | None
    prior_rows: float


def about(world: LoggedArms | LoggedContexts) -> tuple[str, ...]:
    """What to know of a comparison on a log."""
    chance = world.chance_of_spread() if isinstance(world, LoggedArms) else None
    if chance is None or chance < _SURPRISING:
        return ABOUT
    return (
        f"The rates of {world.title} do not show that its actions differ: if all paid alike, rates this "
        f"far apart would be seen in {100 * chance:.2g} % of logs (χ² test). What there seems to be to "
        "learn may be chance; --prior-rows draws rates to their mean.",
        *ABOUT,
    )


def refuse_without_data(ctx: typer.Context) -> None:
    """What names the columns of a log goes with one."""
    for option in given(ctx, *OPTIONS):
        raise InvalidInput(f"{option} goes with --data; leave it out, or give --data log.parquet")


def logged_world(path: Path, typed: Typed) -> LoggedArms | LoggedContexts:
    """The log in a file, as a world; of arms, unless columns of features are named."""
    check_installed("tables")
    if typed.action is None or typed.reward is None:
        raise InvalidInput("--data needs the names of two columns: --action item --reward click")
    place, sign, at = (typed.position or "").partition("=")
    columns = {"action": typed.action, "reward": typed.reward, "propensity": typed.propensity}
    where = {"position": place or None, "at": at if sign else None}
    scaled = {"reward_range": _range(typed.reward_range)}
    if typed.features is None:
        prior = typed.prior_rows
        return LoggedArms.read(path, **columns, **where, **scaled, prior_rows=prior)  # type: ignore[arg-type]
    if typed.prior_rows:
        raise InvalidInput("--prior-rows is for arms; leave out --features")
    named = [name.strip() for name in typed.features.split(",")]
    return LoggedContexts.read(path, context=named, **columns, **where, **scaled)  # type: ignore[arg-type]


def _range(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, 1.0
    ends = [number(part, "reward-range") for part in text.split(",")]
    if len(ends) != 2:
        raise InvalidInput(f"expected --reward-range as low,high, such as 1,5; got {text!r}")
    return ends[0], ends[1]
