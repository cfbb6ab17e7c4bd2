"""The manifest of a city: what is in it, and how it came to be."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.cleaning import StepCount
from castpoi.checkins.fingerprint import fingerprint_of
from castpoi.checkins.preparation import Preparation
from castpoi.checkins.reading.read import RawCheckins
from castpoi.checkins.reading.source import Source
from castpoi.checkins.rhythm import Rhythm
from castpoi.core.provenance import now_utc
from castpoi.geo.zones import boundaries_version


def counts_of(city: City, rhythm: Rhythm) -> dict[str, Any]:
    """The part of the manifest that speaks of the city itself."""
    parts = dict(city.split[record.PART].value_counts().iter_rows())
    targets = city.targets(record.TEST)
    revisits = city.trajectories.is_revisit(targets, window=REVISIT_WINDOW)
    return {
        "fingerprint": fingerprint_of(city.checkins, city.users, city.places, city.split),
        "checkins": city.checkins.height,
        "users": city.users.height,
        "places": city.places.height,
        "train": parts.get(record.TRAIN, 0),
        "validation": parts.get(record.VALIDATION, 0),
        "test": parts.get(record.TEST, 0),
        "left_out": parts.get(record.LEFT_OUT, 0),
        "revisit_share": round(float(revisits.mean()), 6),
        "rhythm": {**asdict(rhythm), "is_human": rhythm.is_human, "finding": rhythm.sentence},
    }


def provenance_of(
    raw: RawCheckins,
    steps: list[StepCount],
    dropped: Mapping[str, int],
    preparation: Preparation,
    origins: list[dict[str, Any]],
) -> dict[str, Any]:
    """The part of the manifest that tells how the city came to be."""
    options = asdict(preparation)
    return {
        "prepared_at_utc": now_utc(),
        "versions": {
            "castpoi": __version__,
            "polars": pl.__version__,
            "zone_boundaries": boundaries_version(),
        },
        "sources": origins,
        "zone_rule": _zone_rule(raw, preparation),
        "naive_times": raw.naive_times,
        "split": options.pop("split"),
        "recipe": options.pop("recipe"),
        "options": options,
        "dropped_rows": dict(dropped),
        "remarks": list(raw.remarks),
        "steps": [asdict(step) for step in steps],
    }


def _zone_rule(raw: RawCheckins, preparation: Preparation) -> str:
    if preparation.local_time == "offset":
        return "offset column of the source"
    if preparation.zone:
        return f"one zone for all: {preparation.zone}"
    given = record.ZONE in raw.rows.columns
    return "zone column, else coordinates" if given else "coordinates of the place"


def origin_of(source: Source) -> dict[str, Any]:
    """Name, size and SHA-256 of a source."""
    with source.path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {
        "file": source.path.name,
        "layout": source.layout.name,
        "bytes": source.path.stat().st_size,
        "sha256": digest,
    }
