from typing import Any

import numpy as np
import pytest

from castpoi.checkins.reading.times import LATEST_US
from castpoi.core.errors import BadInput, NoCandidateLeft
from castpoi.recommend.question import Question, put
from castpoi.recommend.request import Request, Visit
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.messages import refused
from tests.serving.small_run import DAY, small_book

AT_THE_CAFE = (40.70, -74.0)


def asked(history: list[Visit], **filters: Any) -> Question:
    return put(Request.of(history=history, **filters), small_book(), None, now_us=LATEST_US)


def allowed(history: list[Visit], **filters: Any) -> list[int]:
    return np.flatnonzero(asked(history, **filters).is_allowed).tolist()


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, [CAFE, OFFICE, PARK, STATION, THEATRE]),
        ({"categories": ["food", "Work"]}, [CAFE, OFFICE]),
        ({"candidates": ["theatre", "moon", "cafe"]}, [CAFE, THEATRE]),
        ({"near": AT_THE_CAFE, "within_km": 2}, [CAFE, OFFICE, PARK]),
        ({"within_km": 3}, [PARK, STATION]),  # of the station, the last visit
        ({"exclude_visited": True}, [THEATRE]),
        ({"new_only": True}, [THEATRE]),
        ({"near": AT_THE_CAFE}, [CAFE, OFFICE, PARK, STATION, THEATRE]),
        ({"near": AT_THE_CAFE, "within_km": 2, "categories": ["Outdoors"]}, [PARK]),
    ],
)
def test_each_filter_allows_what_it_says(filters: dict[str, Any], left: list[int]) -> None:
    assert allowed(DAY, **filters) == left


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"candidates": ["moon"]}, "of 5 none is among the candidates given; give ids"),
        (
            {"candidates": ["cafe"], "categories": ["Arts"]},
            "of 1 none has the category 'Arts'; give other categories",
        ),
        (
            {"near": (41.5, -74.0), "within_km": 0.5},
            r"of 5 none lies within 0.5 km of near \(within_km\); widen within_km",
        ),
        (
            {"within_km": 1, "categories": ["Food"]},
            r"of 1 none lies within 1 km of the last visit \(within_km\)",
        ),
        (
            {"categories": ["Food"], "exclude_visited": True},
            r"of 1 none is unvisited \(exclude_visited\); widen the other filters",
        ),
        (
            {"categories": ["Food"], "new_only": True},
            r"of 1 none is new, that is not among the last 512 visits \(new_only\)",
        ),
    ],
)
def test_the_filter_that_leaves_nothing_is_named(filters: dict[str, Any], words: str) -> None:
    with pytest.raises(NoCandidateLeft, match=f"no place is left to recommend: {words}"):
        asked(DAY, **filters)


def test_a_radius_around_nothing_is_refused() -> None:
    with refused(BadInput):
        asked([], within_km=3)


def test_a_place_visited_long_ago_is_new_again_but_not_unvisited() -> None:
    once = Visit("theatre", "2012-01-01T20:00:00-05:00")
    often = [
        Visit("cafe", f"2012-02-{1 + n // 24:02d}T{n % 24:02d}:00:00-05:00") for n in range(512)
    ]
    assert THEATRE in allowed([once, *often], new_only=True)
    assert THEATRE not in allowed([once, *often], exclude_visited=True)
    assert THEATRE not in allowed([once, *often[1:]], new_only=True)


def test_an_empty_history_is_sent_to_the_nearest_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castpoi.recommend.filters.NEARBY", 2)
    assert allowed([], near=AT_THE_CAFE, k=1) == [CAFE, OFFICE]
    assert allowed([], near=AT_THE_CAFE, k=3) == [CAFE, OFFICE, PARK]
    assert allowed([], near=AT_THE_CAFE, k=1, categories=["Arts", "Travel", "Food"]) == [
        CAFE,
        STATION,
    ]
    assert len(allowed([], near=AT_THE_CAFE, k=1, within_km=2)) == 3
