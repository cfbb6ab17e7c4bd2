"""Tables whose columns have types: parquet, JSON lines, JSON and GeoJSON.

Nested columns become plain ones: the fields of `names` are `names.primary` and so on, those of
GeoJSON's `properties` have their own names, and points have `lat` and `lon`.
"""

from collections.abc import Callable, Iterator
from glob import escape
from pathlib import Path
from typing import Final

import polars as pl

from castpoi.checkins import record
from castpoi.geo.wkb import lat_of, lon_of

_BINARY_POINTS: Final = ("geometry", "geom", "wkb_geometry")
"""The names that GeoParquet files, PostGIS and GDAL give a column of points."""
_COORDINATES: Final = (pl.List(pl.Float64), pl.List(pl.Int64))
_FEATURES: Final = "features"
_PROPERTIES: Final = "properties"


def scan_parquet(path: Path) -> pl.LazyFrame:
    """The rows of a parquet or GeoParquet file."""
    return flat(pl.scan_parquet(path, glob=False))


def scan_json_lines(path: Path) -> pl.LazyFrame:
    """The rows of a file with one JSON object per line, also of GeoJSON features."""
    name = escape(str(path))  # polars reads brackets as a pattern
    schema = pl.scan_ndjson(name, infer_schema_length=None).collect_schema()
    return flat(pl.scan_ndjson(name, schema=schema))


def scan_json(path: Path) -> pl.LazyFrame:
    """The rows of a JSON array, or of a GeoJSON feature collection."""
    table = pl.read_json(path, infer_schema_length=None)
    if _FEATURES in table.columns:
        table = table.select(_FEATURES).explode(_FEATURES).unnest(_FEATURES)
    return flat(table.lazy())


SCANS: Final[dict[str, Callable[[Path], pl.LazyFrame]]] = {
    ".parquet": scan_parquet,
    ".geoparquet": scan_parquet,
    ".jsonl": scan_json_lines,
    ".ndjson": scan_json_lines,
    ".geojsonl": scan_json_lines,
    ".jsonl.gz": scan_json_lines,
    ".ndjson.gz": scan_json_lines,
    ".json": scan_json,
    ".geojson": scan_json,
}
"""Suffix -> function that reads such a file."""


def scan_by_suffix(path: Path) -> Callable[[Path], pl.LazyFrame] | None:
    """The function that reads a file whose columns have types; None for others."""
    name = path.name.lower()
    return next((scan for suffix, scan in SCANS.items() if name.endswith(suffix)), None)


def flat(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows with plain columns; of two columns with one name the first one is kept."""
    schema = rows.collect_schema()
    if not any(dtype.is_nested() or dtype == pl.Binary for dtype in schema.dtypes()):
        return rows
    found: dict[str, pl.Expr] = {}
    for column, dtype in schema.items():
        for name, values in _plain(column, dtype, pl.col(column)):
            found.setdefault(name, values)
    return rows.select(values.alias(name) for name, values in found.items())


def _plain(name: str, dtype: pl.DataType, values: pl.Expr) -> Iterator[tuple[str, pl.Expr]]:
    """(name, values) of the plain columns of a column."""
    if isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            inner = field.name if name == _PROPERTIES else f"{name}.{field.name}"
            yield from _plain(inner, field.dtype, values.struct.field(field.name))  # type: ignore[arg-type]
    elif dtype in _COORDINATES and name.endswith("coordinates"):  # GeoJSON: lon, lat
        yield record.LAT, values.list.get(1, null_on_oob=True)
        yield record.LON, values.list.get(0, null_on_oob=True)
    elif isinstance(dtype, pl.List) and "categor" in name:  # the main category is the first
        yield name, values.list.first()
    elif dtype == pl.Binary and name in _BINARY_POINTS:
        yield record.LAT, lat_of(values)
        yield record.LON, lon_of(values)
    else:
        yield name, values
