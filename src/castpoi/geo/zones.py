"""Time zones: the IANA zone of a point, and local time in a zone.

`tzfpy` contains the boundaries, so no network is needed (decision 3). The offset of a check-in
follows from its zone and its instant, so it is right on both sides of a daylight-saving change.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
import tzfpy
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from castpoi.core.arrays import Numbers
from castpoi.core.errors import BadInput

_QUARTER_US: Final = 900_000_000
_QUARTERS_SINCE_US: Final = 94_694_400_000_000  # 1973-01-01; Liberia changed its clock in 1972
Minutes = NDArray[np.int16]


def zones_of(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> list[str]:
    """The IANA zone of each point; points at sea have a nautical `Etc/GMT` zone."""
    return [tzfpy.get_tz(x, y) for y, x in zip(lat.tolist(), lon.tolist(), strict=True)]


def boundaries_version() -> str:
    """Version of the zone boundaries, for manifests."""
    return str(tzfpy.data_version())


def is_land(zone: str) -> bool:
    """Whether people live in the zone: it is neither the open sea nor Antarctica."""
    return not zone.startswith(("Etc/", "Antarctica/"))


def check_zone(zone: str, *, where: str) -> None:
    """Raise BadInput if a name is not an IANA zone."""
    try:
        pl.Series([0]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    except PolarsError as problem:
        raise BadInput(
            f"{where}: '{zone}' is not an IANA time zone; write it like America/New_York"
        ) from problem


def numbered_zones(zones: pl.Series) -> tuple[Numbers, list[str]]:
    """(number of each zone in the sorted list of different zones, that list)."""
    known = zones.unique().sort()
    return zones.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64), known.to_list()


def offsets_minutes(at_us: Numbers, zone_of_row: Numbers, zones: list[str]) -> Minutes:
    """Local time minus UTC in minutes at every instant, in the zone of its row.

    Clocks change at a quarter of an hour of UTC, so one look-up per zone and quarter is enough.
    Two kinds of instants are looked up one by one: those before 1973, and those in the few
    quarters within which a clock changed (Newfoundland's changed at 00:01 until 2011).
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


def _changes_within(zone: str, offsets: Minutes, starts: Numbers) -> NDArray[np.bool_]:
    """Whether the clock of a zone changed within each quarter, not at its end."""
    within = np.r_[offsets[1:] != offsets[:-1], False]
    within[within] = _offsets_in(zone, starts[within] + _QUARTER_US - 1) != offsets[within]
    return within


def _offsets_one_by_one(at_us: Numbers, zone_of_row: Numbers, zones: list[str]) -> Minutes:
    offsets = np.empty(len(at_us), dtype=np.int16)
    for zone, rows in _rows_by_zone(zone_of_row, zones):
        offsets[rows] = _offsets_in(zone, at_us[rows])
    return offsets


def _offsets_in(zone: str, at_us: Numbers) -> Minutes:
    local = pl.Series(at_us).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    whole = local.dt.base_utc_offset() + local.dt.dst_offset()
    return whole.dt.total_minutes().to_numpy().astype(np.int16)


def to_utc_us(wall_us: Numbers, zone_of_row: Numbers, zones: list[str]) -> Numbers:
    """The instant at which a wall clock in a zone showed a time.

    A local time that occurred twice means its first occurrence. A local time that was skipped is
    read as if the clock had not been set forward.
    """
    instants = np.empty(len(wall_us), dtype=np.int64)
    for zone, rows in _rows_by_zone(zone_of_row, zones):
        wall = pl.Series(wall_us[rows]).cast(pl.Datetime("us"))
        at = _utc_of(wall, zone)
        if at.has_nulls():
            # The offset of the day before is the one before the change. One zone skipped a whole
            # day (Pacific/Apia, 30 December 2011), hence 25 hours.
            day_before = _utc_of(wall.dt.offset_by("-25h"), zone)
            at = at.fill_null(day_before.dt.offset_by("25h"))
        instants[rows] = at.to_physical().to_numpy()
    return instants


def _utc_of(wall: pl.Series, zone: str) -> pl.Series:
    """Instants of wall times; null where the zone skipped the time."""
    zoned = wall.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return zoned.dt.convert_time_zone("UTC")


def _rows_by_zone(zone_of_row: Numbers, zones: list[str]) -> Iterator[tuple[str, slice | Numbers]]:
    """(zone, its rows) of every zone that has rows."""
    if len(zones) == 1:
        yield zones[0], slice(None)
        return
    order = np.argsort(zone_of_row, kind="stable")
    bounds = np.searchsorted(zone_of_row[order], np.arange(len(zones) + 1))
    for number, zone in enumerate(zones):
        rows = order[bounds[number] : bounds[number + 1]]
        if len(rows):
            yield zone, rows
