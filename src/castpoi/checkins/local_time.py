"""Local time: what the clock on the wall said where the check-in happened.

Every place has an IANA zone; the offset of each check-in follows from zone and instant, so it is
right on both sides of a daylight-saving change.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from castpoi.errors import BadInput


def check_zone(zone: str, *, where: str) -> None:
    """Refuse a name that is no IANA zone."""
    try:
        pl.Series([0]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    except PolarsError as problem:
        raise BadInput(
            f"{where}: '{zone}' is not an IANA time zone such as America/New_York"
        ) from problem


def offsets_minutes(
    at_us: NDArray[np.int64], zone_of_row: NDArray[np.int64], zones: list[str]
) -> NDArray[np.int16]:
    """Local time minus UTC in minutes of every instant, in the zone of its row."""
    offsets = np.empty(len(at_us), dtype=np.int16)
    for zone, rows in _rows_by_zone(zone_of_row, zones):
        local = pl.Series(at_us[rows]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
        whole = local.dt.base_utc_offset() + local.dt.dst_offset()
        offsets[rows] = whole.dt.total_minutes().to_numpy()
    return offsets


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
            at = at.fill_null(_set_in(wall.dt.offset_by("1h"), zone))
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
