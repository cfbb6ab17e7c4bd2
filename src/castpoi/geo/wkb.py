"""Points in well-known binary (WKB), as GeoParquet and PostGIS store them.

A little-endian point is 21 bytes: 01, the type 1 as four bytes, then longitude and latitude.
"""

import json
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.core.arrays import Floats

GEOMETRY: Final = "geometry"
_HEADER: Final = b"\x01\x01\x00\x00\x00"
_POINT: Final = np.dtype([("header", f"S{len(_HEADER)}"), ("lon", "<f8"), ("lat", "<f8")])
_COLUMN: Final = {"encoding": "WKB", "geometry_types": ["Point"]}
_GEO: Final = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: _COLUMN}}
GEO_KEY: Final = {"geo": json.dumps(_GEO)}
"""File metadata that make a parquet file with a column `geometry` GeoParquet (WGS 84)."""


def points(lat: Floats, lon: Floats) -> pl.Series:
    """A column of points."""
    table: NDArray[np.void] = np.empty(len(lat), dtype=_POINT)
    table["header"], table["lon"], table["lat"] = _HEADER, lon, lat
    width = _POINT.itemsize
    content = table.tobytes()
    cells = (content[at : at + width] for at in range(0, len(content), width))
    return pl.Series(GEOMETRY, list(cells), dtype=pl.Binary)


def lat_of(column: pl.Expr) -> pl.Expr:
    """The latitude of each point; null for other geometries."""
    return _coordinate(column, at=13)


def lon_of(column: pl.Expr) -> pl.Expr:
    """The longitude of each point; null for other geometries."""
    return _coordinate(column, at=5)


def _coordinate(column: pl.Expr, *, at: int) -> pl.Expr:
    number = column.bin.slice(at, 8).bin.reinterpret(dtype=pl.Float64, endianness="little")
    return pl.when(column.bin.starts_with(_HEADER)).then(number)
