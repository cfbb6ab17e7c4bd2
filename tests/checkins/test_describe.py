"""What a city looks like in numbers, worked by hand and against slow loops."""

import json
from dataclasses import replace
from datetime import date
from itertools import pairwise
from statistics import mean, median, quantiles

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.describe import (
    DISTANCE_EDGES_KM,
    DISTANCE_LABELS,
    Bucket,
    describe_city,
    gini,
)
from castpoi.geo.distance import haversine_km
from tests.cities import CAFE, STATION, THEATRE, THEIR_PARTS, TWO_PEOPLE, small_city


@pytest.fixture
def city() -> City:
    return small_city(TWO_PEOPLE, THEIR_PARTS)


def filled(buckets: tuple[Bucket, ...]) -> dict[str, int]:
    return {bucket.label: bucket.count for bucket in buckets if bucket.count}


def test_counts_days_and_parts_are_those_of_the_tables(city: City) -> None:
    description = describe_city(city)
    assert (description.checkins, description.users, description.places) == (6, 2, 5)
    assert description.categories == 5
    assert (description.first_day, description.last_day) == (date(2024, 5, 6), date(2024, 5, 8))
    assert description.days == 3
    parts = (description.train, description.validation, description.test, description.left_out)
    assert parts == (3, 1, 2, 0)
    assert description.test_targets == 2


def test_one_of_two_targets_is_a_revisit(city: City) -> None:
    description = describe_city(city)
    assert description.revisit_share == 0.5
    assert description.new_share == 0.5


def test_a_left_out_checkin_is_counted_but_is_no_target() -> None:
    city = small_city(TWO_PEOPLE, [*THEIR_PARTS[:-1], "left out"])
    description = describe_city(city)
    assert (description.checkins, description.left_out, description.test_targets) == (6, 1, 1)
    assert description.revisit_share == 0.0
    assert sum(filled(description.gaps).values()) == 4


def test_hours_and_weekdays_are_local(city: City) -> None:
    description = describe_city(city)
    assert filled(description.hours) == {"08": 2, "10": 2, "22": 2}
    assert description.hours[8].share == pytest.approx(1 / 3)
    assert filled(description.weekdays) == {"Mon": 5, "Wed": 1}


def test_instants_before_1970_have_their_own_day_and_hour() -> None:
    description = describe_city(small_city([(1, CAFE, "1969-12-31 03:30")], ["train"]))
    assert description.first_day == date(1969, 12, 30)
    assert filled(description.hours) == {"23": 1}
    assert filled(description.weekdays) == {"Tue": 1}


def test_categories_come_most_visited_first_and_then_by_name(city: City) -> None:
    top = describe_city(city).top_categories
    assert [(category.label, category.count) for category in top] == [
        ("Food", 2),
        ("Outdoors", 2),
        ("Arts", 1),
        ("Work", 1),
        ("Travel", 0),
    ]


def test_private_places_are_counted(city: City) -> None:
    assert describe_city(city).private_places == 0
    home = pl.Series(record.CATEGORY, ["Food", "home (private)", "Condo", None, "Residence"])
    assert describe_city(replace(city, places=city.places.with_columns(home))).private_places == 3


def test_a_city_of_one_checkin_has_no_moves() -> None:
    description = describe_city(small_city([(1, STATION, "2024-05-06 12:00")], ["train"]))
    assert description.days == 1
    assert description.median_distance_km is None
    assert description.median_gap_hours is None
    assert description.revisit_share is None
    assert description.top_1_percent_share == 1.0


def test_an_empty_city_has_no_numbers_but_zeros() -> None:
    description = describe_city(small_city([], []))
    assert (description.checkins, description.users, description.days) == (0, 0, 0)
    assert description.first_day is None
    assert description.checkins_per_user is None
    assert description.gini is None
    assert description.top_10_percent_share is None
    assert all(hour.share == 0 for hour in description.hours)


def test_the_numbers_are_plain_json(city: City) -> None:
    content = describe_city(city).as_json()
    read = json.loads(json.dumps(content, allow_nan=False))
    assert read["first_day"] == "2024-05-06"
    assert read["hours"][8] == {"label": "08", "count": 2, "share": pytest.approx(1 / 3)}
    empty = describe_city(small_city([], [])).as_json()
    assert json.loads(json.dumps(empty, allow_nan=False))["first_day"] is None


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30).filter(any))
def test_gini_agrees_with_the_mean_difference_of_all_pairs(counts: list[int]) -> None:
    differences = sum(abs(a - b) for a in counts for b in counts)
    expected = differences / (2 * len(counts) ** 2 * mean(counts))
    assert gini(np.array(counts)) == pytest.approx(expected)


places_of_users = st.lists(
    st.lists(st.integers(CAFE, THEATRE), min_size=1, max_size=6), min_size=2, max_size=5
)


@given(places_of_users)
def test_moves_and_quartiles_agree_with_a_slow_loop(paths: list[list[int]]) -> None:
    visits = [
        (user, place, f"2024-05-{6 + user:02d} {hour:02d}:00")
        for user, path in enumerate(paths)
        for hour, place in enumerate(path)
    ]
    city = small_city(visits, ["train"] * len(visits))
    lat = city.places[record.LAT].to_list()
    moves = [
        float(haversine_km(lat[a], -74.0, lat[b], -74.0))
        for path in paths
        for a, b in pairwise(path)
    ]
    description = describe_city(city)
    expected = [0] * len(DISTANCE_LABELS)
    for distance_km in moves:
        expected[sum(distance_km >= edge for edge in DISTANCE_EDGES_KM)] += 1
    assert [bucket.count for bucket in description.distances] == expected
    assert description.median_distance_km == (pytest.approx(median(moves)) if moves else None)
    spread = description.checkins_per_user
    assert spread is not None
    assert [spread.lower_quartile, spread.median, spread.upper_quartile] == pytest.approx(
        quantiles([len(path) for path in paths], method="inclusive")
    )
