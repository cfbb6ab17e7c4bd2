"""The page of a city: complete, safe, private and without network."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.cleaning import StepCount
from castpoi.checkins.describe import describe_city
from castpoi.geo.distance import haversine_km
from castpoi.reports.city_page import (
    MAX_DOTS,
    MAX_PLACES,
    busiest_places,
    city_page,
    place_map,
)
from castpoi.reports.style import LAND, SEA
from tests.cities import CAFE, THEIR_PARTS, TWO_PEOPLE, small_city
from tests.reports.pages import Balance, problems_of


def text_of(page: str) -> str:
    reader = Balance()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return " ".join(" ".join(reader.text).split())


def page_of(city: City, name: str = "smallville") -> str:
    return city_page(city, describe_city(city), name=name)


def city_at(lat: NDArray[np.float64], lon: NDArray[np.float64], visits: NDArray[np.int64]) -> City:
    """A city of one user with this number of visits at each place."""
    size, total = len(lat), int(visits.sum())
    places = pl.DataFrame(
        {
            record.PLACE: range(size),
            record.PLACE_ID: [f"{place:07d}" for place in range(size)],
            record.LAT: lat,
            record.LON: lon,
            record.ZONE: ["Etc/UTC"] * size,
            record.CATEGORY: [None] * size,
            record.NAME: [f"Place {place}" for place in range(size)],
        },
        schema=record.PLACE_SCHEMA,
    )
    checkins = pl.DataFrame(
        {
            record.CHECKIN: range(total),
            record.USER: [0] * total,
            record.PLACE: np.repeat(np.arange(size), visits),
            record.AT_UTC: pl.Series(range(total)).cast(record.INSTANT),
            record.OFFSET: [0] * total,
        },
        schema_overrides=dict(record.CHECKIN_SCHEMA),
    )
    empty = small_city([], [])
    return replace(empty, checkins=checkins, places=places)


def dots(city: City) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions of the ordinary dots on the map of a city, and of the busiest. [dots, 2] each"""
    (axes,) = place_map(city).figure.axes
    by_colour: dict[bool, list[Any]] = {False: [], True: []}
    for each in axes.collections:
        assert isinstance(each, PathCollection)
        by_colour[each.get_alpha() is None].append(np.asarray(each.get_offsets()))
    return np.concatenate(by_colour[False]), np.concatenate(by_colour[True])


@pytest.fixture(scope="module")
def city() -> City:
    return small_city(TWO_PEOPLE, THEIR_PARTS)


@pytest.fixture(scope="module")
def page(city: City) -> str:
    return page_of(city)


def test_the_page_has_the_numbers_and_findings_of_the_city(city: City, page: str) -> None:
    text = text_of(page)
    for words in (
        "smallville",
        "6 check-ins",
        "from 6 May 2024 to 8 May 2024",
        "50% of the test visits return",
        "Monday is the busiest day of the week",
        "Busiest from 08:00",
        "Half of all moves are within 400 m",
        "Half of all gaps are within 1.2 h",
        "Food is the most visited category",
        "2 test visits to predict",
        "America/New_York (100.0%)",
        "Café Food 2",
        city.fingerprint,
    ):
        assert words in text


def test_names_with_markup_are_escaped(city: City) -> None:
    hostile = '<script>alert(1)</script></title></svg><img src=x>">&'
    places = city.places.with_columns(
        pl.lit(hostile).alias(record.NAME), pl.lit(hostile).alias(record.CATEGORY)
    )
    steps = [asdict(StepCount(hostile, 6, 6, 2, 3))]
    manifest = {**city.manifest, "steps": steps}
    page = page_of(replace(city, places=places, manifest=manifest), name=hostile)
    assert text_of(page).count(hostile) >= 5
    assert "<script" not in page
    assert "<img" not in page


def test_no_user_is_named(city: City) -> None:
    secret = ["maja-7f3a", "oskar-91bc"]
    users = city.users.with_columns(pl.Series(record.USER_ID, secret))
    page = page_of(replace(city, users=users))
    assert not any(user_id in page for user_id in secret)


def test_the_page_loads_nothing_and_suits_phones_and_dark_rooms(page: str) -> None:
    lower = page.lower()
    for door in ("http://", "https://", "src=", "@import", "<script", "<link", "data:"):
        assert door not in lower
    assert lower.count("url(") == lower.count("url(#")
    assert lower.count('href="') == lower.count('href="#')
    assert "default-src 'none'" in page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "prefers-color-scheme: dark" in page


def test_cities_with_hardly_any_check_ins_have_a_page() -> None:
    text = text_of(page_of(small_city([(1, CAFE, "2024-05-06 12:00")], ["train"])))
    assert "No user has two check-ins" in text
    assert "The city has no test split." in text
    assert "1 check-in of 1 user" in text
    assert "This city has no check-ins." in text_of(page_of(small_city([], [])))


def test_private_homes_are_neither_drawn_nor_listed() -> None:
    city = city_at(np.array([40.7, 40.8, 40.9]), np.array([-74.0] * 3), np.array([3, 9, 1]))
    category = pl.Series(record.CATEGORY, ["Bar", "Home (private)", None])
    city = replace(city, places=city.places.with_columns(category))
    assert [place.name for place in busiest_places(city)] == ["Place 0", "Place 2"]
    assert sorted(dots(city)[0][:, 1]) == [40.7, 40.9]
    assert "Not drawn: 1 place (private homes)." in place_map(city).caption


def test_the_busiest_places_are_listed_and_orange() -> None:
    lat = 40.0 + np.arange(30) / 100
    city = city_at(lat, np.full(30, -74.0), np.arange(1, 31))
    listed = busiest_places(city)
    assert len(listed) == MAX_PLACES
    assert (listed[0].name, listed[0].checkins) == ("Place 29", 30)
    assert dots(city)[1].tolist() == [[pytest.approx(0.0), pytest.approx(40.29)]]


@pytest.mark.parametrize("lat", [0.0, 40.7, -62.0])
def test_the_map_and_its_bar_are_to_scale_both_ways(lat: float) -> None:
    lats, lons = np.array([lat, lat, lat + 0.1]), np.array([10.0, 10.2, 10.0])
    (axes,) = place_map(city_at(lats, lons, np.array([3, 2, 1]))).figure.axes
    corners = axes.transData.transform([[-0.1, lat], [0.1, lat], [-0.1, lat + 0.1]])
    east, north = corners[1, 0] - corners[0, 0], corners[2, 1] - corners[0, 1]
    expected_km = haversine_km(lats[0], lons[0], lats[1:], lons[1:])
    assert east / north == pytest.approx(expected_km[0] / expected_km[1], rel=0.01)
    (bar,), (words,) = axes.lines, axes.texts
    ends = axes.transAxes.transform(np.column_stack([bar.get_xdata(), bar.get_ydata()]))
    bar_km = float(words.get_text().removesuffix(" km"))
    assert (ends[1, 0] - ends[0, 0]) / bar_km == pytest.approx(east / expected_km[0], rel=0.01)


def test_a_city_across_the_date_line_stays_whole() -> None:
    city = city_at(np.array([-17.0, -17.1]), np.array([179.95, -179.95]), np.array([1, 1]))
    assert np.ptp(dots(city)[0][:, 0]) == pytest.approx(0.1)
    assert "180.00°" in place_map(city).inline()


def test_a_few_places_far_outside_do_not_shrink_the_city() -> None:
    rng = np.random.default_rng(5)
    lat = np.append(40 + rng.uniform(0, 0.2, 500), 10.0)
    lon = np.append(-74 + rng.uniform(0, 0.2, 500), 100.0)
    chart = place_map(city_at(lat, lon, np.ones(501, dtype=np.int64)))
    assert np.ptp(chart.figure.axes[0].get_ylim()) < 0.3
    assert "Not drawn: 1 place (far outside)." in chart.caption


def test_neighbours_of_many_places_share_a_dot() -> None:
    rng = np.random.default_rng(7)
    lat, lon = 40 + rng.uniform(0, 1, 20_000), -74 + rng.uniform(0, 1, 20_000)
    city = city_at(lat, lon, rng.integers(0, 4, 20_000))
    ordinary, _ = dots(city)
    assert 1000 < len(ordinary) < 2 * MAX_DOTS
    assert len(place_map(city).inline().encode()) < 1_500_000


def test_the_map_shows_where_the_city_meets_the_sea() -> None:
    lat, lon = np.array([40.70, 40.80]), np.array([-74.02, -73.95])
    shores = place_map(city_at(lat, lon, np.array([2, 1])))
    (axes,) = shores.figure.axes
    land = [patch for patch in axes.patches if patch.get_facecolor() == to_rgba(LAND)]
    assert len(land) > 1  # New Jersey, Manhattan and their neighbours
    assert axes.get_facecolor() == to_rgba(SEA)
    assert "var(--sea)" in shores.inline()
    (axes,) = place_map(city_at(lat + 8, lon + 76, np.array([2, 1]))).figure.axes  # near Paris
    (patch,) = axes.patches
    ring = np.asarray(patch.get_path().vertices)
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    assert ring.min(axis=0) == pytest.approx([west, south])
    assert ring.max(axis=0) == pytest.approx([east, north])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_on_the_page_overlaps_is_cut_or_excludes_anybody(
    page: str, tmp_path: Path, theme: str
) -> None:
    file = tmp_path / "city.html"
    file.write_text(page, encoding="utf-8")
    assert problems_of(file, theme) == []


def test_a_place_without_a_name_has_its_category_and_its_id() -> None:
    lat, lon = np.array([40.7, 40.71]), np.array([-74.0, -74.01])
    city = city_at(lat, lon, np.array([3, 2]))
    places = city.places.with_columns(name=pl.lit(None, pl.String), category=pl.lit("Bar"))
    busy = busiest_places(replace(city, places=places))
    assert [(each.name, each.category) for each in busy] == [
        *(("Bar", "no. …000000"), ("Bar", "no. …000001")),
    ]
