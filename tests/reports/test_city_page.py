"""The page of a city: whole, safe, discreet and alone."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.describe import describe_city
from castpoi.reports.city_page import city_page
from tests.cities import CAFE, THEIR_PARTS, TWO_PEOPLE, small_city


class Balance(HTMLParser):
    """Checks that every tag is closed in turn, and gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def text_of(page: str) -> str:
    reader = Balance()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return " ".join(reader.text)


def page_of(city: City, name: str = "smallville") -> str:
    return city_page(city, describe_city(city), name=name)


@pytest.fixture
def city() -> City:
    return small_city(TWO_PEOPLE, THEIR_PARTS)


def test_the_page_tells_the_numbers_and_findings_of_the_city(city: City) -> None:
    text = text_of(page_of(city))
    for words in (
        "smallville",
        "6 check-ins",
        "from 6 May 2024 to 8 May 2024",
        "50% go back",
        "Monday is the busiest day of the week",
        "The day peaks at 08:00",
        "Half of all moves are within 400 m",
        "Half of all gaps are within 1.2 h",
        "Food leads",
        "2 visits to foretell",
        "America/New_York (100.0%).",
        city.fingerprint,
    ):
        assert words in text


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "</title></svg><img src=x>", '">&']
)
def test_a_hostile_name_is_text_and_nothing_else(city: City, hostile: str) -> None:
    places = city.places.with_columns(
        pl.lit(hostile).alias(record.NAME), pl.lit(hostile).alias(record.CATEGORY)
    )
    steps = [{"step": hostile, "checkins_after": 6}]
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


def test_the_page_asks_the_network_for_nothing(city: City) -> None:
    page = page_of(city).lower()
    for door in ("http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link"):
        assert door not in page
    assert "default-src 'none'" in page


def test_the_page_suits_phones_and_dark_rooms(city: City) -> None:
    page = page_of(city)
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "prefers-color-scheme: dark" in page


def test_the_same_city_gives_the_same_page(city: City) -> None:
    assert page_of(city) == page_of(small_city(TWO_PEOPLE, THEIR_PARTS))


def test_steps_show_their_counts_and_a_dash_for_what_they_lack(city: City) -> None:
    steps = [
        {"step": "read", "checkins_before": 1234, "checkins_after": 1200, "users_after": 9},
        {"checkins_after": "many"},
        "no step at all",
    ]
    page = page_of(replace(city, manifest={**city.manifest, "steps": steps}))
    rows = page.split("<tbody>")[1].split("</tbody>")[0]
    assert rows == (
        "<tr><td>read</td><td>1,234</td><td>1,200</td><td>9</td><td>–</td></tr>"
        "<tr><td>–</td><td>–</td><td>–</td><td>–</td><td>–</td></tr>"
    )


@pytest.mark.parametrize("steps", [None, [], "none", {"read": 1}])
def test_a_manifest_without_steps_is_no_hindrance(city: City, steps: Any) -> None:
    page = page_of(replace(city, manifest={**city.manifest, "steps": steps}))
    assert "The manifest names no steps." in text_of(page)


def test_a_city_without_categories_shows_none(city: City) -> None:
    places = city.places.with_columns(pl.lit(None, pl.String).alias(record.CATEGORY))
    assert "leads" not in text_of(page_of(replace(city, places=places)))


def test_many_zones_are_summed_up(city: City) -> None:
    zones = [f"Zone/{letter}" for letter in "ABCDE"]
    text = text_of(page_of(replace(city, places=city.places.with_columns(zone=pl.Series(zones)))))
    assert "Zone/A (33.3%), Zone/C (33.3%), Zone/B (16.7%)" in text


def test_a_city_of_one_checkin_has_a_page_without_moves() -> None:
    text = text_of(page_of(small_city([(1, CAFE, "2024-05-06 12:00")], ["train"])))
    assert "No user checks in twice" in text
    assert "This split has no test part." in text
    assert "1 check-in " in text


def test_an_empty_city_has_a_page_that_says_so() -> None:
    assert "This city has no check-ins." in text_of(page_of(small_city([], [])))
