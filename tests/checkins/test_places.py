"""One point a place, whatever the order of the rows; points that cannot be right are found."""

import random

import polars as pl
import pytest

from castpoi.checkins import places, record
from castpoi.checkins.reading.rules import BROKEN, CODE, OK

Row = tuple[int, float, float]
"""Place, latitude, longitude."""

PARIS = (48.85, 2.35)
LONDON = (51.51, -0.13)


def rows(points: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(
        points,
        schema={record.PLACE: pl.UInt32, record.LAT: pl.Float64, record.LON: pl.Float64},
        orient="row",
    ).with_columns(pl.lit(OK, dtype=pl.UInt8).alias(BROKEN))


def one_point_each(points: pl.DataFrame) -> pl.DataFrame:
    return places.one_point_each(points, without=places.misplaced(points, 25))


def marks(points: list[Row], limit_km: float = 25) -> dict[Row, str]:
    found = places.misplaced(places.points_of([rows(points)]), limit_km)
    words = {code: key for key, code in CODE.items()}
    return {(place, lat, lon): words[mark] for place, lat, lon, mark in found.iter_rows()}


def test_a_place_is_at_its_most_frequent_point() -> None:
    points = [(1, 40.70, -74.0), (1, 40.71, -74.0), (1, 40.71, -74.0), (0, 41.0, -74.0)]
    found = one_point_each(places.points_of([rows(points)]))
    assert found.rows() == [(0, 41.0, -74.0), (1, 40.71, -74.0)]


def test_a_tie_goes_to_the_south_then_to_the_west_in_any_order_of_rows() -> None:
    points = [(1, 40.71, -74.0), (1, 40.70, -73.9), (1, 40.70, -74.0), (1, 40.72, -74.1)]
    for seed in range(5):
        shuffled = random.Random(seed).sample(points, len(points))
        found = one_point_each(places.points_of([rows(shuffled)]))
        assert found.rows() == [(1, 40.70, -74.0)]


def test_points_near_the_usual_one_are_not_misplaced() -> None:
    near = [(1, 40.70, -74.0), (1, 40.70, -74.0), (1, 40.90, -74.0)]  # 22 km
    assert marks(near) == {}
    assert marks(near, limit_km=20) == {(1, 40.90, -74.0): "far-apart coordinates"}


def test_the_rarer_of_two_far_apart_points_is_misplaced() -> None:
    points = [(1, *PARIS), (1, *PARIS), (1, *LONDON), (2, *LONDON)]
    assert marks(points) == {(1, *LONDON): "far-apart coordinates"}


def test_one_swapped_point_is_found_by_the_rest_of_the_city() -> None:
    points = [(place, 40.70 + place / 100, -74.0) for place in range(9)] + [(9, -74.0, 40.7)]
    assert marks(points) == {(9, -74.0, 40.7): "swapped coordinates"}


@pytest.mark.parametrize("city", [(40.7, -74.0), PARIS, (-23.55, -46.63), (52.5, 13.4)])
def test_a_whole_city_at_sea_that_is_on_land_when_exchanged_is_swapped(
    city: tuple[float, float],
) -> None:
    lat, lon = city
    there = [(place, lat + place / 100, lon) for place in range(9)]
    assert marks(there) == {}
    swapped = [(place, lon, lat) for place, lat, lon in there]
    assert set(marks(swapped).values()) == {"swapped coordinates"}
    assert len(marks(swapped)) == 9


def test_rows_at_a_misplaced_point_are_marked_and_others_keep_their_own_mark() -> None:
    table = rows([(1, *PARIS), (1, *LONDON), (1, *PARIS), (1, *LONDON), (1, *PARIS)])
    table = table.with_columns(
        pl.Series([OK, OK, OK, CODE["no user"], CODE["no time"]], dtype=pl.UInt8).alias(BROKEN)
    )
    points = places.points_of([table])
    found = places.misplaced(points, 25)
    far = CODE["far-apart coordinates"]
    marked = places.mark_rows(table, found)[BROKEN].to_list()
    assert marked == [OK, far, OK, CODE["no user"], CODE["no time"]]
    assert places.one_point_each(points, without=found).rows() == [(1, *PARIS)]


def test_the_usual_text_of_a_place_is_the_most_frequent_then_the_first_by_letter() -> None:
    table = pl.DataFrame(
        {record.PLACE: [0, 0, 0, 1, 1, 2, 3], record.CATEGORY: [1, 0, 1, 2, 0, None, 3]},
        schema={record.PLACE: pl.UInt32, record.CATEGORY: pl.UInt32},
    )
    texts = pl.Series(["Zoo", "Bar", "Cafe", "  "])
    found = places.usual_text([places.count_texts(table, record.CATEGORY)], record.CATEGORY, texts)
    assert found.rows() == [(0, "Bar"), (1, "Cafe")]
    assert places.usual_text(
        [places.count_texts(table, record.NAME)], record.NAME, texts
    ).is_empty()
