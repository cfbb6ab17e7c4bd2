"""Local time: what the clock on the wall said where the check-in happened.

Every place has an IANA zone; the offset of each check-in follows from zone and instant, so it is
right on both sides of a daylight-saving change.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from castpoi.core.errors import BadInput

_QUARTER_US: Final = 900_000_000
_QUARTERS_SINCE_US: Final = 94_694_400_000_000  # 1973-01-01, the year after Liberia's last oddity
Minutes = NDArray[np.int16]


def check_zone(zone: str, *, where: str) -> None:
    """Refuse a name that is no IANA zone."""
    try:
        pl.Series([0]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    except PolarsError as problem:
        raise BadInput(
            f"{where}: '{zone}' is not an IANA time zone such as America/New_York"
        ) from problem


def numbered_zones(zones: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    """(number of each zone among those there are, these by number)."""
    known = zones.unique().sort()
    return zones.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64), known.to_list()


def offsets_minutes(
    at_us: NDArray[np.int64], zone_of_row: NDArray[np.int64], zones: list[str]
) -> Minutes:
    """Local time minus UTC in minutes of every instant, in the zone of its row.

    Zones change their clock on a quarter of an hour of UTC, so one look-up a quarter serves all
    check-ins in it. Looked up one by one are instants before 1973 and those in the few quarters
    in whose midst a clock changed: Newfoundland's, at 00:01 until 2011.
    """
    if not len(at_us):
        return np.empty(0, dtype=np.int16)
    first, last = int(at_us.min()), int(at_us.max())
    quarters = last // _QUARTER_US - first // _QUARTER_US + 1
    if first < _QUARTERS_SINCE_US or quarters * len(zones) > len(at_us):
        return _offsets_one_by_one(at_us, zone_of_row, zones)
    starts = (first // _QUARTER_US + np.arange(quarters + 1)) * _QUARTER_US
    table = np.stack([_offsets_in(zone, starts) for zone in zones])  # [zones, quarters + 1]
    quarter = at_us // _QUARTER_US - first // _QUARTER_US
    offsets = table[0][quarter] if len(zones) == 1 else table[zone_of_row, quarter]
    changes = np.stack([_changes_within(*row, starts) for row in zip(zones, table, strict=True)])
    if changes.any():
        rows = np.flatnonzero(changes[zone_of_row, quarter])
        offsets[rows] = _offsets_one_by_one(at_us[rows], zone_of_row[rows], zones)
    return offsets


def _changes_within(zone: str, offsets: Minutes, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the clock of a zone changed in the midst of each quarter, not at its end."""
    within = np.zeros(len(starts), dtype=np.bool_)
    changed = np.flatnonzero(offsets[1:] != offsets[:-1])
    within[changed] = _offsets_in(zone, starts[changed] + _QUARTER_US - 1) != offsets[changed]
    return within


def _offsets_one_by_one(
    at_us: NDArray[np.int64], zone_of_row: NDArray[np.int64], zones: list[str]
) -> Minutes:
    offsets = np.empty(len(at_us), dtype=np.int16)
    for zone, rows in _rows_by_zone(zone_of_row, zones):
        offsets[rows] = _offsets_in(zone, at_us[rows])
    return offsets


def _offsets_in(zone: str, at_us: NDArray[np.int64]) -> Minutes:
    local = pl.Series(at_us).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    whole = local.dt.base_utc_offset() + local.dt.dst_offset()
    return whole.dt.total_minutes().to_numpy().astype(np.int16)


def to_utc_us(
    wall_us: NDArray[np.int64], zone_of_row: NDArray[np.int64], zones: list[str]
) -> NDArray[np.int64]:
    """The instant at which a wall clock in a zone showed a time.

    An hour that came twice means its first time; an hour that never was is read as the clock
    that nobody had yet set forward.
    """
    instants = np.empty(len(wall_us), dtype=np.int64)
    for zone, rows in _rows_by_zone(zone_of_row, zones):
        wall = pl.Series(wall_us[rows]).cast(pl.Datetime("us"))
        at = _set_in(wall, zone)
        if at.has_nulls():
            # the offset of the day before is that of the clock not yet set forward; a whole day
            # once never was (Pacific/Apia, 30 December 2011), hence 25 hours
            day_before = _set_in(wall.dt.offset_by("-25h"), zone)
            at = at.fill_null(day_before.dt.offset_by("25h"))
        instants[rows] = at.to_physical().to_numpy()
    return instants


def _set_in(wall: pl.Series, zone: str) -> pl.Series:
    zoned = wall.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return zoned.dt.convert_time_zone("UTC")


def _rows_by_zone(
    zone_of_row: NDArray[np.int64], zones: list[str]
) -> Iterator[tuple[str, slice | NDArray[np.int64]]]:
    if len(zones) == 1:
        yield zones[0], slice(None)
        return
    order = np.argsort(zone_of_row, kind="stable")
    bounds = np.searchsorted(zone_of_row[order], np.arange(len(zones) + 1))
    for number, zone in enumerate(zones):
        rows = order[bounds[number] : bounds[number + 1]]
        if len(rows):
            yield zone, rows
