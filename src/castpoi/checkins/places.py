"""One point per place from the coordinates of rows, and the rows whose coordinates are wrong.

A place that was recorded at several near points is at the most frequent one (on a tie, the
southernmost, then westernmost), so the order of the rows does not matter.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading.rules import BROKEN, CODE, OK
from castpoi.geo.distance import haversine_km
from castpoi.geo.zones import is_land, zones_of

_FAR_FROM_ALL_KM: Final = 2000.0
_NEAR_WHEN_SWAPPED_KM: Final = 500.0

_POINT: Final = [record.PLACE, record.LAT, record.LON]


def points_of(rows: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Every (place, lat, lon) with its number of rows, the most frequent point of a place first."""
    counted = [
        table.lazy()
        .filter(pl.col(BROKEN) == OK)
        .group_by(_POINT)
        .agg(pl.len().cast(pl.Int64).alias("rows"))
        .collect()
        for table in rows
    ]
    return _summed(counted, _POINT).sort(record.PLACE, -pl.col("rows"), record.LAT, record.LON)


def _summed(counted: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
    """Numbers of rows that were counted in several tables."""
    if len(counted) == 1:
        return counted[0]
    return pl.concat(counted).group_by(by).agg(pl.col("rows").sum())


def one_point_each(points: pl.DataFrame, *, without: pl.DataFrame) -> pl.DataFrame:
    """The most frequent point of every place that is not misplaced: columns place, lat, lon."""
    right = points.join(without, on=_POINT, how="anti", maintain_order="left")
    return right.unique(record.PLACE, keep="first", maintain_order=True).select(_POINT)


def misplaced(points: pl.DataFrame, limit_km: float) -> pl.DataFrame:
    """Points that are wrong, with the rule that their rows break: place, lat, lon, mark."""
    swapped = _swapped(points)
    far = _far_from_own_place(points.filter(~swapped), limit_km)
    marked = {"swapped coordinates": points.filter(swapped), "far-apart coordinates": far}
    return pl.concat(
        found.select(*_POINT, pl.lit(CODE[key], dtype=pl.UInt8).alias("mark"))
        for key, found in marked.items()
    )


def mark_rows(rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Mark the rows at misplaced points as breaking the rule of the point."""
    if marks.is_empty():
        return rows
    marked = rows.join(marks, on=_POINT, how="left", maintain_order="left")
    mark = pl.when(pl.col(BROKEN) == OK).then(pl.col("mark").fill_null(OK)).otherwise(BROKEN)
    return marked.with_columns(mark.alias(BROKEN)).drop("mark")


def _swapped(points: pl.DataFrame) -> pl.Series:
    """Points far from the rest of the city that are in it when lat and lon are exchanged."""
    if points.is_empty():
        return pl.Series([], dtype=pl.Boolean)
    lat, lon = points[record.LAT].to_numpy(), points[record.LON].to_numpy()
    if _whole_city_is_swapped(lat, lon):
        return pl.Series(np.ones(len(lat), dtype=bool))
    weights = points["rows"].to_numpy()
    centre = _weighted_median(lat, weights), _weighted_median(lon, weights)
    far = haversine_km(lat, lon, *centre) > _FAR_FROM_ALL_KM
    near = haversine_km(np.clip(lon, -90, 90), lat, *centre) < _NEAR_WHEN_SWAPPED_KM
    return pl.Series(far & near & (np.abs(lon) <= 90))


def _whole_city_is_swapped(lat: np.ndarray, lon: np.ndarray) -> bool:
    """Most points at sea or on Antarctica as written, and on land when exchanged."""
    sample = np.linspace(0, len(lat) - 1, num=min(len(lat), 200)).astype(int)
    lat, lon = lat[sample], lon[sample]
    if (np.abs(lon) > 90).any():
        return False
    as_written = np.mean([is_land(zone) for zone in zones_of(lat, lon)])
    exchanged = np.mean([is_land(zone) for zone in zones_of(lon, lat)])
    return bool(as_written < 0.2 and exchanged > 0.8)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _far_from_own_place(points: pl.DataFrame, limit_km: float) -> pl.DataFrame:
    """Points more than `limit_km` from the usual point of their place."""
    several = points.filter(pl.col(record.PLACE).is_duplicated())
    usual = several.group_by(record.PLACE, maintain_order=True).agg(
        pl.col(record.LAT).first().alias("usual_lat"), pl.col(record.LON).first().alias("usual_lon")
    )
    beside = several.join(usual, on=record.PLACE, how="left", maintain_order="left")
    ends = beside.select(record.LAT, record.LON, "usual_lat", "usual_lon")
    km = haversine_km(*(column.to_numpy() for column in ends))
    return beside.filter(pl.Series(km > limit_km, dtype=pl.Boolean))


def count_texts(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """The number of rows of every place with each text of a coded column: place, `column`, rows."""
    if column not in rows.columns:
        schema = {record.PLACE: pl.UInt32, column: pl.UInt32, "rows": pl.Int64}
        return pl.DataFrame(schema=schema)
    return (
        rows.lazy()
        .filter(pl.col(column).is_not_null())
        .group_by(record.PLACE, pl.col(column).cast(pl.UInt32))
        .agg(pl.len().cast(pl.Int64).alias("rows"))
        .collect()
    )


def usual_text(counted: Sequence[pl.DataFrame], column: str, texts: pl.Series) -> pl.DataFrame:
    """The most frequent non-blank text of a coded column for every place: place, `column`."""
    summed = _summed(counted, [record.PLACE, column])
    return (
        summed.with_columns(texts.gather(summed[column]).alias(column))
        .filter(pl.col(column).str.strip_chars() != "")
        .sort(record.PLACE, -pl.col("rows"), column)
        .unique(record.PLACE, keep="first", maintain_order=True)
        .select(record.PLACE, column)
    )
