"""The map of the places: to scale, whole, and small enough to open."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.geo.distance import haversine_km
from castpoi.reports.place_map import MOST_DOTS, PlaceMap, place_map
from tests.cities import CAFE, THEATRE, small_city


def city_at(lat: NDArray[np.float64], lon: NDArray[np.float64], visits: NDArray[np.int64]) -> City:
    """A city of one user with so many visits at each place."""
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
    return City(
        checkins=checkins,
        users=empty.users,
        places=places,
        split=empty.split,
        manifest={"fingerprint": "none"},
    )


def drawn(city: City) -> PlaceMap:
    result = place_map(city)
    assert result is not None
    return result


def dots(markup: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(markup).iter("circle"))


def at(mark: ElementTree.Element, attribute: str) -> float:
    return float(mark.attrib[attribute].removesuffix("%")) / 100


def test_every_place_has_a_dot_with_its_name_and_checkins() -> None:
    city = small_city([(1, CAFE, "2024-05-06 12:00"), (1, CAFE, "2024-05-06 13:00")], ["train"] * 2)
    result = drawn(city)
    tooltips = {dot.findtext("title") for dot in dots(result.markup)}
    assert {"Café · 2 check-ins", "Theatre · 0 check-ins"} <= tooltips
    assert len(tooltips) == 5
    assert (result.stars, result.star_share, result.beyond, result.is_gridded) == (1, 1.0, 0, False)


def test_private_homes_are_counted_and_not_drawn() -> None:
    city = city_at(np.array([40.7, 40.8, 40.9]), np.array([-74.0] * 3), np.array([3, 9, 1]))
    category = pl.Series(record.CATEGORY, ["Bar", "Home (private)", None])
    result = drawn(replace(city, places=city.places.with_columns(category)))
    tooltips = {dot.findtext("title") for dot in dots(result.markup)}
    assert tooltips == {"Place 0 · 3 check-ins", "Place 2 · 1 check-in"}
    assert (result.private, result.beyond, result.stars) == (1, 0, 1)


@pytest.mark.parametrize("lat", [0.0, 40.7, -62.0])
def test_the_scale_bar_measures_true_both_ways(lat: float) -> None:
    lats, lons = np.array([lat, lat, lat + 0.1]), np.array([10.0, 10.2, 10.0])
    result = drawn(city_at(lats, lons, np.array([3, 2, 1])))
    tree = ElementTree.fromstring(result.markup)
    [bar] = [line for line in tree.iter("line") if line.get("class") == "scale"]
    aspect = float(tree.attrib["style"].removeprefix("aspect-ratio:"))
    words = [text.text or "" for text in tree.iter("text")][-1]
    per_km = (at(bar, "x2") - at(bar, "x1")) / float(words.removesuffix(" km"))
    by_name = {(dot.findtext("title") or "")[:7]: dot for dot in dots(result.markup)}
    eastward = at(by_name["Place 1"], "cx") - at(by_name["Place 0"], "cx")
    northward = (at(by_name["Place 0"], "cy") - at(by_name["Place 2"], "cy")) / aspect
    expected_km = haversine_km(lats[0], lons[0], lats[1:], lons[1:])
    assert eastward / per_km == pytest.approx(expected_km[0], rel=0.01)
    assert northward / per_km == pytest.approx(expected_km[1], rel=0.01)


def test_north_is_up_and_east_is_right() -> None:
    city = small_city([(1, CAFE, "2024-05-06 12:00")], ["train"])
    by_name = {(dot.findtext("title") or "").split(" ")[0]: dot for dot in dots(drawn(city).markup)}
    assert at(by_name["Theatre"], "cy") < at(by_name["Café"], "cy")


def test_a_city_astride_the_date_line_stays_whole() -> None:
    city = city_at(np.array([-17.0, -17.1]), np.array([179.95, -179.95]), np.array([1, 1]))
    result = drawn(city)
    assert result.beyond == 0
    west, east = sorted(at(dot, "cx") for dot in dots(result.markup))
    assert 0 < west < east < 1
    assert re.findall(r"18\d\.\d+°", result.markup) == ["180.00°"]


def test_a_few_strays_do_not_shrink_the_city() -> None:
    rng = np.random.default_rng(5)
    lat = np.append(40 + rng.uniform(0, 0.2, 500), 10.0)
    lon = np.append(-74 + rng.uniform(0, 0.2, 500), 100.0)
    result = drawn(city_at(lat, lon, np.ones(501, dtype=np.int64)))
    assert result.beyond == 1
    across = [at(dot, "cx") for dot in dots(result.markup)]
    assert max(across) - min(across) > 0.5


def test_many_places_share_dots_and_no_checkin_is_lost() -> None:
    rng = np.random.default_rng(7)
    lat, lon = 40 + rng.uniform(0, 1, 20_000), -74 + rng.uniform(0, 1, 20_000)
    visits = rng.integers(0, 4, 20_000)
    result = drawn(city_at(lat, lon, visits))
    tooltips = [dot.findtext("title") or "" for dot in dots(result.markup)]
    assert result.is_gridded
    assert 1000 < len(tooltips) <= MOST_DOTS
    assert len(result.markup.encode()) < 1_500_000
    counted = sum(int(words.split(" · ")[1].split(" ")[0].replace(",", "")) for words in tooltips)
    assert counted == visits.sum()


def test_a_single_place_is_drawn_in_the_middle() -> None:
    [dot] = dots(drawn(city_at(np.array([40.0]), np.array([-74.0]), np.array([1]))).markup)
    assert at(dot, "cx") == pytest.approx(0.5)
    assert at(dot, "cy") == pytest.approx(0.5)
    assert dot.findtext("title") == "Place 0 · 1 check-in"


def test_a_city_without_places_has_no_map() -> None:
    nowhere = np.array([], dtype=np.float64)
    assert place_map(city_at(nowhere, nowhere, np.array([], dtype=np.int64))) is None


def test_a_very_long_name_is_shortened() -> None:
    city = small_city([(1, THEATRE, "2024-05-06 12:00")], ["train"])
    long = city.places.with_columns(pl.lit("x" * 500).alias(record.NAME))
    markup = drawn(replace(city, places=long)).markup
    assert "x" * 79 + "…" in markup
    assert "x" * 80 not in markup
