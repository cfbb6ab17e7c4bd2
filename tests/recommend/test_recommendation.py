from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from castpoi.checkins.reading.times import LATEST_US
from castpoi.recommend.recommendation import ago_words, distance_words, sentence_of
from castpoi.recommend.request import Request, Visit
from castpoi.recommend.resolve import ResolvedRequest, resolve_request
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.serving.small_run import small_book


def sentence_for(
    place: int, *visits: Visit, at: str | None = None, near: tuple[float, float] | None = None
) -> str:
    return sentence_of(place, resolved(*visits, at=at, near=near), small_book())


def resolved(*visits: Visit, **others: Any) -> ResolvedRequest:
    request = Request.of(history=visits, **others)
    return resolve_request(request, small_book(), now_us=LATEST_US)


def visit(place: str, day: int, clock: str) -> Visit:
    return Visit(place, f"2012-04-{day:02d}T{clock}-04:00")


def test_many_visits_are_counted_and_the_last_is_dated() -> None:
    visits = [visit("theatre", day, "20:00") for day in range(1, 15)]
    assert sentence_for(THEATRE, *visits, at="2012-04-16T20:00-04:00") == (
        "You were here 14 times, last 2 days ago"
    )


def test_one_visit_is_once() -> None:
    sentence = sentence_for(THEATRE, visit("theatre", 1, "20:00"), at="2012-04-22T20:00-04:00")
    assert sentence == "You were here once, 3 weeks ago"


def test_a_new_place_near_evening_visits() -> None:
    evenings = [visit("cafe", day, "19:00") for day in (1, 2, 3)]
    morning = visit("cafe", 4, "09:00")
    assert sentence_for(OFFICE, *evenings, morning) == (
        "New to you; within 450 m of three of your recent evening visits"
    )


def test_visits_at_different_times_have_no_part_of_the_day() -> None:
    mixed = [visit("cafe", 1, "19:00"), visit("cafe", 2, "09:00")]
    assert sentence_for(OFFICE, *mixed) == "New to you; within 450 m of two of your recent visits"


def test_one_nearby_visit() -> None:
    sentence = sentence_for(OFFICE, visit("cafe", 1, "03:00"), visit("theatre", 2, "20:00"))
    assert sentence == "New to you; within 450 m of one of your recent night visits"


def test_a_new_place_without_nearby_visits_has_its_distance_from_the_last_visit() -> None:
    sentence = sentence_for(STATION, visit("theatre", 1, "20:00"), visit("cafe", 2, "20:00"))
    assert sentence == "New to you; 4.0 km from your last visit"


def test_a_known_place_near_other_visits_has_both_clauses() -> None:
    visits = [visit("cafe", 1, "12:00"), visit("office", 1, "13:00")]
    assert sentence_for(CAFE, *visits, at="2012-04-01T15:00-04:00") == (
        "You were here once, 3 hours ago; within 450 m of one of your recent afternoon visits"
    )


def test_only_recent_visits_are_called_recent() -> None:
    old, later = (
        visit("cafe", 1, "08:00"),
        [visit("theatre", 2, f"1{n}:0{m}") for n in range(2) for m in range(10)],
    )
    assert sentence_for(OFFICE, old, *later) == "New to you; 12 km from your last visit"


def test_a_far_place_is_called_far() -> None:
    book = small_book()
    far = np.array(book.lat)
    far[PARK] += 2.0
    moved = replace(book, lat=far)
    assert sentence_of(PARK, resolved(visit("cafe", 1, "08:00")), moved) == (
        "New to you; far away, 224 km from your last visit"
    )


def test_a_given_position_adds_the_distance_from_it() -> None:
    sentence = sentence_for(CAFE, visit("cafe", 1, "08:00"), near=(40.7036, -74.0))
    assert sentence == "You were here once, a moment ago; 450 m from you"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (CAFE, "Popular: 3 check-ins by everybody"),
        (STATION, "Popular: 1 check-in by everybody"),
        (THEATRE, "No check-ins here yet"),
    ],
)
def test_without_a_history_the_sentence_has_the_popularity(place: int, words: str) -> None:
    assert sentence_for(place) == words


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0.5, "a moment ago"),
        (1, "1 minute ago"),
        (59, "59 minutes ago"),
        (60, "1 hour ago"),
        (24 * 60, "1 day ago"),
        (13 * 24 * 60, "13 days ago"),
        (14 * 24 * 60, "2 weeks ago"),
        (60 * 24 * 60, "2 months ago"),
        (729 * 24 * 60, "24 months ago"),
        (730 * 24 * 60, "2 years ago"),
    ],
)
def test_time_ago_in_words(minutes: float, words: str) -> None:
    assert ago_words(minutes) == words


@pytest.mark.parametrize(
    ("km", "words"),
    [
        (0.0, "50 m"),
        (0.3, "300 m"),
        (0.301, "350 m"),
        (0.96, "1.0 km"),
        (2.34, "2.3 km"),
        (1234.0, "1,234 km"),
    ],
)
def test_distances_in_words(km: float, words: str) -> None:
    assert distance_words(km) == words
