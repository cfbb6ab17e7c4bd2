from typing import Any

import numpy as np
import pytest

from castpoi.checkins.reading.times import LATEST_US
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, CastPoiError, NoCandidateLeft
from castpoi.recommend.request import Request, Visit, Visits
from castpoi.recommend.resolve import history_of, resolve_requests
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.messages import refused
from tests.serving.small_run import DAY, small_book

AT_THE_CAFE = (40.70, -74.0)
NOON_US = 1_333_468_800_000_000  # 2012-04-03T16:00:00Z


def history(*visits: Visit) -> Histories:
    return history_of(Visits.of(visits), small_book())


def allowed(visits: list[Visit], **filters: Any) -> list[int]:
    request = Request.of(history=visits, **filters)
    (resolved,) = resolve_requests([request], small_book(), now_us=LATEST_US)
    if isinstance(resolved, CastPoiError):
        raise resolved
    return np.flatnonzero(resolved.is_allowed).tolist()


def test_visits_are_sorted_by_time_and_then_by_place() -> None:
    found = history(
        Visit("park", "2012-04-03T16:00:00Z"),
        Visit("office", "2012-04-03T16:00:00Z"),
        Visit("cafe", "2012-04-03T15:00:00Z"),
        Visit("moon", "2012-04-03T15:00:00Z"),  # an unknown place is left out
    )
    assert found.place.tolist() == [CAFE, OFFICE, PARK]
    assert found.at_us.tolist() == [NOON_US - 3_600_000_000, NOON_US, NOON_US]
    assert found.offset_minutes.tolist() == [-240] * 3
    assert found.bounds.tolist() == [0, 3]
    assert history().bounds.tolist() == [0, 0]


def test_a_time_without_offset_is_the_local_time_of_the_place() -> None:
    found = history(Visit("cafe", "2012-04-03 12:00"), Visit("cafe", "2012-01-03T12:00:00"))
    # New York is five hours behind UTC in winter and four in summer
    assert found.at_us.tolist()[1] == NOON_US
    assert found.offset_minutes.tolist() == [-300, -240]


def test_a_local_time_whose_instant_is_out_of_range_is_rejected() -> None:
    visits = [Visit("cafe", "2099-12-31T18:59:59"), Visit("moon", "2099-12-31T18:59:59")]
    assert history(*visits).at_us.tolist() == [LATEST_US - 1_000_000]
    with refused(BadInput):  # 2100 has begun in UTC
        history(*visits, Visit("cafe", "2099-12-31T19:00:00"))


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
        ({"box": (40.7036, -75, 40.736, -73)}, [OFFICE, PARK, STATION]),
        ({"polygon": [(40.702, -74.1), (40.76, -74.1), (40.72, -73.9)]}, [PARK, STATION]),
        ({"exclude": ["cafe", "theatre"]}, [OFFICE, PARK, STATION]),
    ],
)
def test_each_filter_keeps_its_places(filters: dict[str, Any], left: list[int]) -> None:
    assert allowed(DAY, **filters) == left


@pytest.mark.parametrize(
    "filters",
    [
        {"candidates": ["moon"]},
        {"candidates": ["cafe"], "categories": ["Arts"]},
        {"near": (41.5, -74.0), "within_km": 0.5},
        {"within_km": 1, "categories": ["Food"]},
        {"categories": ["Food"], "exclude_visited": True},
        {"categories": ["Food"], "new_only": True},
        {"box": (0, 0, 1, 1)},
        {"polygon": [(0, 0), (0, 1), (1, 0)]},
        {"candidates": ["cafe"], "exclude": ["cafe"]},
    ],
    ids=repr,
)
def test_the_error_names_the_filter_that_leaves_no_place(filters: dict[str, Any]) -> None:
    with refused(NoCandidateLeft):
        allowed(DAY, **filters)


def test_a_radius_needs_a_point() -> None:
    with refused(BadInput):
        allowed([], within_km=3)


def test_a_place_visited_long_ago_is_new_again_but_not_unvisited() -> None:
    once = Visit("theatre", "2012-01-01T20:00:00-05:00")
    often = [
        Visit("cafe", f"2012-02-{1 + n // 24:02d}T{n % 24:02d}:00:00-05:00") for n in range(512)
    ]
    assert THEATRE in allowed([once, *often], new_only=True)
    assert THEATRE not in allowed([once, *often], exclude_visited=True)
    assert THEATRE not in allowed([once, *often[1:]], new_only=True)


def test_an_empty_history_near_a_point_gets_the_nearest_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("castpoi.recommend.resolve.NEARBY", 2)
    assert allowed([], near=AT_THE_CAFE, k=1) == [CAFE, OFFICE]
    assert allowed([], near=AT_THE_CAFE, k=3) == [CAFE, OFFICE, PARK]
    assert allowed([], near=AT_THE_CAFE, k=1, categories=["Arts", "Travel", "Food"]) == [
        CAFE,
        STATION,
    ]
    assert len(allowed([], near=AT_THE_CAFE, k=1, within_km=2)) == 3
