from datetime import UTC, datetime
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.request import Request, Visit
from tests.messages import refused

NOON = datetime(2012, 4, 3, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    "visit", [Visit("cafe", NOON), ("cafe", NOON), ["cafe", NOON], {"place": "cafe", "at": NOON}]
)
def test_a_visit_may_be_written_in_several_ways(visit: Any) -> None:
    assert Request.of(history=[visit]).history == (Visit("cafe", NOON),)


@pytest.mark.parametrize(
    ("visit", "words"),
    [
        ({"place": "cafe"}, 'a visit of the history has place; it must have "place" and "at"'),
        ({}, "a visit of the history has nothing; it must have"),
        ("cafe", "a visit of the history is a str; it must be a Visit, a pair"),
        (("cafe", NOON, 3), "a visit of the history is a tuple"),
    ],
)
def test_half_a_visit_is_refused(visit: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Request.of(history=[visit])


@pytest.mark.parametrize("who", [{}, {"history": (), "user": "user 0"}])
def test_a_request_is_about_a_history_or_a_user(who: dict[str, Any]) -> None:
    with refused(BadInput):
        Request(**who)


@pytest.mark.parametrize("k", [0, -3, 2.5, True])
def test_no_fewer_than_one_place_can_be_asked_for(k: Any) -> None:
    with pytest.raises(BadInput, match=f"k={k} is not valid; it must be a whole number of at"):
        Request(history=(), k=k)


@pytest.mark.parametrize("within_km", [0, -1.0, float("nan"), float("inf")])
def test_a_radius_is_a_positive_number(within_km: float) -> None:
    with refused(BadInput):
        Request(history=(), within_km=within_km)


@pytest.mark.parametrize(
    ("near", "what"),
    [((91.25, 0.0), "latitude"), ((40.7, -181.25), "longitude"), ((float("nan"), 0.0), "latitude")],
)
def test_a_point_outside_the_earth_is_refused_without_repeating_it(
    near: tuple[float, float], what: str
) -> None:
    with pytest.raises(BadInput, match=f"near: the {what} is not a number from") as refused:
        Request(history=(), near=near)
    assert ".25" not in str(refused.value)


def test_a_point_has_two_parts() -> None:
    with refused(BadInput):
        Request.of(history=[], near=[40.7, -74.0, 12.0])


def test_a_single_text_is_no_list_of_categories() -> None:
    with refused(BadInput):
        Request.of(history=[], categories="Food")


def test_the_moment_of_asking_says_its_offset() -> None:
    with refused(BadInput):
        Request(history=(), at="2012-04-03T16:00")
