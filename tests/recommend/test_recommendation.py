from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from castpoi.checkins.reading.times import LATEST_US
from castpoi.recommend.recommendation import ago_words, distance_words, sentence_of
from castpoi.recommend.request import Request, Visit
from castpoi.recommend.resolve import ResolvedRequest, resolve_requests
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.serving.small_run import small_book

Visits = list[tuple[str, str]]
"""Places, and the days and times of visits in April 2012."""


def resolved(visits: Visits, **others: Any) -> ResolvedRequest:
    history = [Visit(place, f"2012-04-{at}-04:00") for place, at in visits]
    request = Request.of(history=history, **others)
    (found,) = resolve_requests([request], small_book(), now_us=LATEST_US)
    assert isinstance(found, ResolvedRequest)
    return found


@pytest.mark.parametrize(
    ("place", "visits", "at", "sentence"),
    [
        (
            *(THEATRE, [("theatre", f"{day:02}T20:00") for day in range(1, 15)], "16T20:00"),
            "You were here 14 times, last 2 days ago",
        ),
        (THEATRE, [("theatre", "01T20:00")], "22T20:00", "You were here once, 3 weeks ago"),
        (
            *(OFFICE, [("cafe", f"0{day}T19:00") for day in (1, 2, 3)] + [("cafe", "04T09:00")]),
            *(None, "New to you; within 450 m of three of your recent evening visits"),
        ),
        (
            *(OFFICE, [("cafe", "01T19:00"), ("cafe", "02T09:00")], None),
            "New to you; within 450 m of two of your recent visits",
        ),
        (
            *(OFFICE, [("cafe", "01T03:00"), ("theatre", "02T20:00")], None),
            "New to you; within 450 m of one of your recent night visits",
        ),
        (
            *(STATION, [("theatre", "01T20:00"), ("cafe", "02T20:00")], None),
            "New to you; 4.0 km from your last visit",
        ),
        (
            *(CAFE, [("cafe", "01T12:00"), ("office", "01T13:00")], "01T15:00"),
            "You were here once, 3 hours ago; within 450 m of one of your recent afternoon visits",
        ),
        (  # only the last twenty visits are recent
            *(OFFICE, [("cafe", "01T08:00"), *(("theatre", f"02T{n}:00") for n in range(10, 24))]),
            *(None, "New to you; within 450 m of one of your recent morning visits"),
        ),
        (
            OFFICE,
            [("cafe", "01T08:00"), *(("theatre", f"02T1{n % 2}:{n}") for n in range(10, 30))],
            *(None, "New to you; 12 km from your last visit"),
        ),
        (CAFE, [], None, "Popular: 3 check-ins by everybody"),
        (STATION, [], None, "Popular: 1 check-in by everybody"),
        (THEATRE, [], None, "No check-ins here yet"),
    ],
)
def test_the_sentence_of_a_place(place: int, visits: Visits, at: str | None, sentence: str) -> None:
    request = resolved(visits, at=at and f"2012-04-{at}-04:00")
    assert sentence_of(place, request, small_book()) == sentence


def test_a_far_place_is_called_far() -> None:
    book = small_book()
    far = replace(book, lat=book.lat + 2.0 * (np.arange(len(book)) == PARK))
    sentence = sentence_of(PARK, resolved([("cafe", "01T08:00")]), far)
    assert sentence == "New to you; far away, 224 km from your last visit"


def test_a_given_position_adds_the_distance_from_it() -> None:
    request = resolved([("cafe", "01T08:00")], near=(40.7036, -74.0))
    sentence = sentence_of(CAFE, request, small_book())
    assert sentence == "You were here once, a moment ago; 450 m from you"


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
