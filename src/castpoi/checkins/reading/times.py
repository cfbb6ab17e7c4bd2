"""Reading the time of a check-in from text, numbers or dates.

A time is *aware* if it has an offset from UTC, otherwise *naive*: a wall clock of unknown zone.
Both become microseconds; the caller decides what a naive clock means.
"""

from collections.abc import Sequence
from typing import Final

import polars as pl

AWARE_FORMATS: Final = (
    "%Y-%m-%dT%H:%M:%SZ",
    "%a %b %d %H:%M:%S +0000 %Y",  # Foursquare TSMC2014
    "%a %b %d %H:%M:%S %z %Y",
    "%+",  # ISO 8601 with an offset, T or space, fraction or none
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S%.f%#z",  # PostgreSQL writes +00
    "%Y-%m-%d %H:%M%#z",
    "%Y-%m-%dT%H:%M%#z",
)
NAIVE_FORMATS: Final = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
)
EPOCH: Final = "epoch"
ALL_FORMATS: Final = (*AWARE_FORMATS, EPOCH, *NAIVE_FORMATS)

# An epoch is in the unit in which it is between 1980 and 2100.
_EPOCH_UNITS_US: Final = (1, 1_000, 1_000_000)
EARLIEST_US: Final = 315_532_800_000_000  # 1980-01-01; no check-in is earlier
LATEST_US: Final = 4_102_444_800_000_000  # 2100-01-01; a later time is a placeholder


def formats_in(sample: pl.Series) -> list[str]:
    """The formats in a sample of texts; each text has the first format that can read it."""
    left = sample.drop_nulls()
    needed = []
    for name in ALL_FORMATS:
        if left.is_empty():
            break
        read = left.to_frame("text").select(_read("text", name)).to_series()
        if read.is_not_null().any():
            needed.append(name)
            left = left.filter(read.is_null())
    return needed


def clock_of(column: str, formats: Sequence[str]) -> tuple[pl.Expr, pl.Expr]:
    """(wall or UTC clock as naive microseconds, whether it is naive) of a text column."""
    aware = [_read(column, name) for name in formats if name not in NAIVE_FORMATS]
    naive = [_read(column, name) for name in formats if name in NAIVE_FORMATS]
    nothing = pl.lit(None, dtype=pl.Datetime("us"))
    clock = pl.coalesce([*aware, *naive, nothing])
    if not naive:
        return clock, pl.lit(False)
    if not aware:
        return clock, pl.lit(True)
    return clock, pl.coalesce(aware).is_null()


def clock_of_dates(column: str, dtype: pl.Datetime) -> tuple[pl.Expr, pl.Expr]:
    """The same for a column of type datetime (parquet)."""
    if dtype.time_zone is None:
        return pl.col(column).cast(pl.Datetime("us")), pl.lit(True)
    utc = pl.col(column).dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return utc.cast(pl.Datetime("us")), pl.lit(False)


def _read(column: str, name: str) -> pl.Expr:
    if name == EPOCH:
        return _read_epoch(column)
    read = pl.col(column).str.to_datetime(name, time_unit="us", strict=False)
    if name == "%+" or "%z" in name or "%#z" in name:
        read = read.dt.replace_time_zone(None)  # polars has converted it to UTC
    return read


def epoch_us(number: float) -> int | None:
    """One epoch in microseconds since 1970, like a column of them; None if it fits no unit."""
    fitting = (
        round(number * unit_us)
        for unit_us in _EPOCH_UNITS_US
        if EARLIEST_US <= number * unit_us < LATEST_US
    )
    return next(fitting, None)


def _read_epoch(column: str) -> pl.Expr:
    number = pl.col(column).cast(pl.Float64, strict=False)
    in_us = [number * unit_us for unit_us in _EPOCH_UNITS_US]
    fitting = [pl.when((us >= EARLIEST_US) & (us < LATEST_US)).then(us) for us in in_us]
    return pl.coalesce(fitting).round().cast(pl.Int64).cast(pl.Datetime("us"))
