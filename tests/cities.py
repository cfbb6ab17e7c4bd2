"""Small cities and histories for tests, built by hand and without files."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.checkins.city import City, fingerprint_of
from castpoi.checkins.trajectory import Histories

CAFE, OFFICE, PARK, STATION, THEATRE = range(5)
"""Places of the small city, near to far along a street: 0, 0.4, 1.5, 4 and 12 km from the cafe."""

TWO_PEOPLE = [
    (1, CAFE, "2024-05-06 12:00"),
    (1, OFFICE, "2024-05-06 12:05"),
    (1, CAFE, "2024-05-06 14:05"),
    (1, THEATRE, "2024-05-08 14:05"),
    (2, PARK, "2024-05-07 02:00"),
    (2, PARK, "2024-05-07 02:30"),
]
"""Visits of three days; local time is four hours behind, so the second's night is still Monday."""
THEIR_PARTS = ["train", "train", "validation", "test", "train", "test"]

_LAT = [40.70, 40.7036, 40.7135, 40.7360, 40.8079]


def small_city(visits: Sequence[tuple[int, int, str]], parts: Sequence[str]) -> City:
    """A city from (user, place, 'YYYY-MM-DD HH:MM' in UTC) in canonical order, and their parts."""
    users = sorted({user for user, _, _ in visits})
    count = len(visits)
    instants = [datetime.fromisoformat(at + "+00:00") for _, _, at in visits]
    checkins = pl.DataFrame(
        {
            record.CHECKIN: range(count),
            record.USER: [users.index(user) for user, _, _ in visits],
            record.PLACE: [place for _, place, _ in visits],
            record.AT_UTC: instants,
            record.OFFSET: [-240] * count,
        },
        schema=record.CHECKIN_SCHEMA,
    )
    user_table = pl.DataFrame(
        {record.USER: range(len(users)), record.USER_ID: [f"user {user}" for user in users]},
        schema=record.USER_SCHEMA,
    )
    places = pl.DataFrame(
        {
            record.PLACE: range(5),
            record.PLACE_ID: ["cafe", "office", "park", "station", "theatre"],
            record.LAT: _LAT,
            record.LON: [-74.0] * 5,
            record.ZONE: ["America/New_York"] * 5,
            record.CATEGORY: ["Food", "Work", "Outdoors", "Travel", "Arts"],
            record.NAME: ["Café", "Office", "Park", "Station", "Theatre"],
        },
        schema=record.PLACE_SCHEMA,
    )
    split = pl.DataFrame(
        {record.CHECKIN: range(count), record.PART: list(parts)}, schema=record.SPLIT_SCHEMA
    )
    manifest = {
        "kind": "city",
        "fingerprint": fingerprint_of(checkins, user_table, places, split),
    }
    return City(checkins=checkins, users=user_table, places=places, split=split, manifest=manifest)


def histories_of(*visits: list[int]) -> Histories:
    """Histories of these places, visited a microsecond apart."""
    place = np.array([place for each in visits for place in each], dtype=np.int64)
    bounds = np.cumsum([0, *map(len, visits)])
    return Histories(
        place=place, at_us=np.arange(len(place)), offset_minutes=place * 0, bounds=bounds
    )
