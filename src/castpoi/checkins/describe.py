"""The numbers that describe a city: revisits, distances, gaps, hours.

All check-ins of the city count, left-out ones too; only the revisit share is that of test targets.
Hours, weekdays and days are local.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.record import DAY_US, HOUR_US
from castpoi.checkins.trajectory import weekday_of
from castpoi.core.arrays import Floats, Numbers
from castpoi.geo.distance import bucket_of, haversine_km

DISTANCE_EDGES_KM: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Two buckets per factor of ten, because distances of people span many of them."""
DISTANCE_LABELS: Final = (
    *("< 100 m", "100–300 m", "0.3–1 km", "1–3 km", "3–10 km", "10–30 km"),
    *("30–100 km", "100–300 km", "300–1,000 km", "≥ 1,000 km"),
)
GAP_EDGES_HOURS: Final = (1 / 6, 1.0, 6.0, 24.0, 24.0 * 7, 24.0 * 30)
GAP_LABELS: Final = ("< 10 min", "10–60 min", "1–6 h", "6–24 h", "1–7 d", "7–30 d", "≥ 30 d")
USER_EDGES: Final = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
USER_LABELS: Final = (
    *("< 2", "2–4", "5–9", "10–19", "20–49", "50–99"),
    *("100–199", "200–499", "500–999", "≥ 1,000"),
)
HOUR_LABELS: Final = tuple(f"{hour:02d}" for hour in range(24))
WEEKDAY_LABELS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NOT_GIVEN: Final = "(not given)"
TOP_CATEGORIES: Final = 10

_CURVE_POINTS: Final = 60


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """One bar of a histogram."""

    label: str
    count: int
    share: float  # share of the whole, 0 to 1; 0 if the whole is empty


@dataclass(frozen=True)
class Quartiles:
    """The distribution of the number of check-ins over users or over places."""

    min: int
    lower_quartile: float
    median: float
    upper_quartile: float
    mean: float
    max: int


@dataclass(frozen=True, kw_only=True)
class CityDescription:
    """The numbers of one city; None if there is nothing to count."""

    checkins: int
    users: int
    places: int
    categories: int
    private_places: int  # places of the private categories: homes (checkins/record.py)
    first_day: date | None
    last_day: date | None
    days: int  # days from the first to the last, both included
    train: int
    validation: int
    test: int
    left_out: int
    test_targets: int
    revisit_share: float | None
    """Share of test targets whose place is among the user's 512 visits before it."""
    new_share: float | None
    checkins_per_user: Quartiles | None
    checkins_per_place: Quartiles | None
    users_by_checkins: tuple[Bucket, ...]
    median_distance_km: float | None  # between consecutive visits of one user
    same_place_share: float | None  # share of consecutive visits at the same place
    distances: tuple[Bucket, ...]
    median_gap_hours: float | None
    gaps: tuple[Bucket, ...]
    hours: tuple[Bucket, ...]
    weekdays: tuple[Bucket, ...]
    top_categories: tuple[Bucket, ...]
    zones: tuple[Bucket, ...]
    gini: float | None
    """Inequality of popularity: 0 if all places have equal check-ins, near 1 if one has all."""
    top_1_percent_share: float | None
    top_10_percent_share: float | None
    popularity: tuple[tuple[int, int], ...]
    """(rank, check-ins) of places from the busiest on, at ranks on a logarithmic scale."""

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain JSON values."""
        content = asdict(self)
        return content | {
            day: value.isoformat() for day, value in content.items() if isinstance(value, date)
        }


def describe_city(city: City) -> CityDescription:
    """Compute the numbers of a city."""
    per_user = np.bincount(city.checkins[record.USER], minlength=city.users.height)
    per_place = checkins_per_place(city)
    parts = city.checkins_by_part
    revisits = city.revisit_share
    return CityDescription(
        checkins=city.checkins.height,
        users=city.users.height,
        places=city.places.height,
        categories=city.places[record.CATEGORY].drop_nulls().n_unique(),
        private_places=int(city.is_private.sum()),
        train=parts[record.TRAIN],
        validation=parts[record.VALIDATION],
        test=parts[record.TEST],
        left_out=parts[record.LEFT_OUT],
        test_targets=parts[record.TEST],
        revisit_share=revisits,
        new_share=None if revisits is None else 1 - revisits,
        checkins_per_user=_quartiles(per_user),
        checkins_per_place=_quartiles(per_place),
        users_by_checkins=_histogram(per_user, USER_EDGES, USER_LABELS),
        top_categories=_checkins_by(city, record.CATEGORY, per_place)[:TOP_CATEGORIES],
        zones=_checkins_by(city, record.ZONE, per_place),
        gini=gini(per_place),
        top_1_percent_share=top_share(per_place, 0.01),
        top_10_percent_share=top_share(per_place, 0.10),
        popularity=_popularity_curve(per_place),
        **_moves(city),
        **_rhythm(city),
    )


def checkins_per_place(city: City) -> Numbers:
    """Number of check-ins at each place, in the order of the places. [P]"""
    return np.bincount(city.checkins[record.PLACE], minlength=city.places.height)


def gini(counts: Numbers) -> float | None:
    """The Gini coefficient of the counts; None if they are all 0."""
    total = int(counts.sum())
    if not total:
        return None
    size = len(counts)
    weighted = int((np.arange(1, size + 1) * np.sort(counts)).sum())
    return 2 * weighted / (size * total) - (size + 1) / size


def top_share(counts: Numbers, fraction: float) -> float | None:
    """Share of all check-ins at the busiest fraction of places; at least one place."""
    total = int(counts.sum())
    if not total:
        return None
    return int(np.sort(counts)[-busiest(len(counts), fraction) :].sum()) / total


def busiest(places: int, fraction: float) -> int:
    """Number of places in the busiest fraction of them: rounded up, at least one."""
    return max(1, math.ceil(places * fraction))


def moves_of(
    city: City, user: NDArray[Any], place: NDArray[Any], at_us: Numbers
) -> tuple[Floats, Floats]:
    """Kilometres and hours from each check-in to the next one of the same user."""
    rows = np.flatnonzero(user[1:] == user[:-1])
    here, there, lat, lon = place[rows], place[rows + 1], city.lat, city.lon
    hours = (at_us[rows + 1] - at_us[rows]) / HOUR_US
    return haversine_km(lat[here], lon[here], lat[there], lon[there]), hours


def _moves(city: City) -> dict[str, Any]:
    user, place = (city.checkins[name].to_numpy() for name in (record.USER, record.PLACE))
    distance_km, gap_hours = moves_of(city, user, place, city.at_us)
    is_same_place = (place[1:] == place[:-1])[user[1:] == user[:-1]]
    has_moves = len(distance_km) > 0
    return {
        "median_distance_km": float(np.median(distance_km)) if has_moves else None,
        "same_place_share": float(is_same_place.mean()) if has_moves else None,
        "distances": _histogram(distance_km, DISTANCE_EDGES_KM, DISTANCE_LABELS),
        "median_gap_hours": float(np.median(gap_hours)) if has_moves else None,
        "gaps": _histogram(gap_hours, GAP_EDGES_HOURS, GAP_LABELS),
    }


def _rhythm(city: City) -> dict[str, Any]:
    local_us = city.local_us
    days = local_us // DAY_US
    first, last = (int(days.min()), int(days.max())) if len(days) else (0, -1)
    epoch = date(1970, 1, 1)
    return {
        "hours": _buckets(HOUR_LABELS, np.bincount(local_us // HOUR_US % 24, minlength=24)),
        "weekdays": _buckets(WEEKDAY_LABELS, np.bincount(weekday_of(local_us), minlength=7)),
        "first_day": epoch + timedelta(days=first) if len(days) else None,
        "last_day": epoch + timedelta(days=last) if len(days) else None,
        "days": last - first + 1,
    }


def _quartiles(counts: Numbers) -> Quartiles | None:
    if not len(counts):
        return None
    lower, median, upper = np.quantile(counts, (0.25, 0.5, 0.75)).tolist()
    least, most, mean = int(counts.min()), int(counts.max()), float(counts.mean())
    return Quartiles(least, lower, median, upper, mean, most)


def _histogram(
    values: NDArray[Any], edges: tuple[float, ...], labels: Sequence[str]
) -> tuple[Bucket, ...]:
    return _buckets(labels, np.bincount(bucket_of(values, edges), minlength=len(labels)))


def _buckets(labels: Sequence[str], counts: Numbers) -> tuple[Bucket, ...]:
    whole = max(1, int(counts.sum()))
    return tuple(
        Bucket(label=label, count=count, share=count / whole)
        for label, count in zip(labels, counts.tolist(), strict=True)
    )


def _checkins_by(city: City, column: str, per_place: Numbers) -> tuple[Bucket, ...]:
    """Check-ins by a property of their place, by descending count and then by name."""
    counted = (
        city.places.select(pl.col(column).fill_null(NOT_GIVEN), pl.Series("count", per_place))
        .group_by(column)
        .agg(pl.col("count").sum())
        .sort(["count", column], descending=[True, False])
    )
    return _buckets(counted[column].to_list(), counted["count"].to_numpy())


def _popularity_curve(per_place: Numbers) -> tuple[tuple[int, int], ...]:
    if not len(per_place):
        return ()
    falling = np.sort(per_place)[::-1]
    ranks = np.unique(np.geomspace(1, len(falling), _CURVE_POINTS).round().astype(np.int64))
    return tuple(zip(ranks.tolist(), falling[ranks - 1].tolist(), strict=True))
