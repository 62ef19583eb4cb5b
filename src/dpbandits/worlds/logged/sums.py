"""What groups of rows of a log were paid, in one pass over it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpbandits.extras import extra
from dpbandits.worlds.logged.table import ACTION, PROPENSITY, REWARD, Log

if TYPE_CHECKING:
    import polars as pl

SHARE = "dpbandits:share"  # of the range of rewards
_WEIGHT = "dpbandits:weight"
# Sums are of whole numbers of such parts: in whatever order rows are read, they are the same.
_UNIT, _UNIT_OF_WEIGHTS = 2.0**32, 2.0**16
_LEAST_PROPENSITY = 1e-6  # its row counts a million times as it is, and the sums fit 64 bits


def sums_by(
    log: Log, by: "Sequence[str | pl.Expr]", reward_range: tuple[float, float]
) -> "pl.DataFrame":
    """For each group its `rows`, their `weight`, `least` and `most` reward, and by shares of the range
    the `total`, that of `squares`, and the `mean`.

    With propensities each row weighs 1/propensity, otherwise 1.
    """
    with extra("tables"):
        import polars as pl

    low, high = reward_range
    is_weighted = PROPENSITY in log.frame.collect_schema()
    unit = _UNIT_OF_WEIGHTS if is_weighted else _UNIT
    weight = _inverse_propensity() if is_weighted else pl.lit(1.0)
    share = ((pl.col(REWARD) - low) / (high - low)).alias(SHARE)
    rows = log.frame.with_columns(weight.alias(_WEIGHT), share)
    weights, totals = pl.col(_WEIGHT) * unit, pl.col(_WEIGHT) * pl.col(SHARE) * unit
    squares = totals * pl.col(SHARE)
    sums = rows.group_by(*by).agg(
        pl.len().alias("rows"),
        (weights.round().cast(pl.Int64).sum() / unit).alias("weight"),
        (totals.round().cast(pl.Int64).sum() / unit).alias("total"),
        (squares.round().cast(pl.Int64).sum() / unit).alias("squares"),
        pl.col(REWARD).min().alias("least"),
        pl.col(REWARD).max().alias("most"),
    )
    return log.collect(sums.with_columns((pl.col("total") / pl.col("weight")).alias("mean")))


def effective_rows_by_action(log: Log) -> "pl.DataFrame":
    """The `rows` of each action, and how many of equal weight would tell as much: (Σ w)²/Σ w²."""
    with extra("tables"):
        import polars as pl

    weight = _inverse_propensity()
    effective = (weight.sum() ** 2 / (weight**2).sum()).alias("effective")
    return log.collect(log.frame.group_by(ACTION).agg(pl.len().alias("rows"), effective))


def _inverse_propensity() -> "pl.Expr":
    import polars as pl

    return 1.0 / pl.col(PROPENSITY).clip(_LEAST_PROPENSITY)
