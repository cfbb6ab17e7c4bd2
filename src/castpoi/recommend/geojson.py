"""Answers as GeoJSON (RFC 7946), for maps and geographic tools; longitude comes first there."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

MEDIA_TYPE: Final = "application/geo+json"


def feature(row: Mapping[str, Any]) -> dict[str, Any]:
    """A place with `lat` and `lon` as a point; the other fields are its properties."""
    properties = {name: value for name, value in row.items() if name not in ("lat", "lon")}
    point = {"type": "Point", "coordinates": [row["lon"], row["lat"]]}
    return {"type": "Feature", "geometry": point, "properties": properties}


def feature_collection(answer: Mapping[str, Any], rows: str) -> dict[str, Any]:
    """An answer, whose field `rows` has places, as a FeatureCollection with its other fields."""
    others = {name: value for name, value in answer.items() if name != rows}
    features = [feature(row) for row in answer[rows]]
    return {"type": "FeatureCollection", "features": features, **others}


def write_features(tables: Iterable[pl.DataFrame], path: Path) -> None:
    """Write the rows of tables, one after another, as one FeatureCollection."""
    with path.open("w", encoding="utf-8") as file:
        separator = '{"type": "FeatureCollection", "features": [\n'
        for table in tables:
            for row in table.iter_rows(named=True):
                file.write(separator + json.dumps(feature(row), ensure_ascii=False))
                separator = ",\n"
        file.write("\n]}\n" if separator == ",\n" else separator + "]}\n")
