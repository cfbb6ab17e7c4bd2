"""Answers as GeoJSON (RFC 7946), for maps and geographic tools; longitude comes first there."""

from collections.abc import Mapping
from typing import Any, Final

MEDIA_TYPE: Final = "application/geo+json"


def feature(row: Mapping[str, Any]) -> dict[str, Any]:
    """A place with `lat` and `lon` as a point; the other fields are its properties."""
    properties = {name: value for name, value in row.items() if name not in ("lat", "lon")}
    point = {"type": "Point", "coordinates": [row["lon"], row["lat"]]}
    return {"type": "Feature", "geometry": point, "properties": properties}


def feature_collection(answer: Mapping[str, Any], rows: str) -> dict[str, Any]:
    """An answer whose list `rows` has places; its other fields stay beside the features."""
    others = {name: value for name, value in answer.items() if name != rows}
    features = [feature(row) for row in answer[rows]]
    return {"type": "FeatureCollection", "features": features, **others}
