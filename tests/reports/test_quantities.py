"""Quantities in the words of a person."""

from datetime import date

import pytest

from castpoi.reports.quantities import counted, day_words, distance_words, gap_words, share_words


@pytest.mark.parametrize(
    ("distance_km", "words"),
    [(0, "0 m"), (0.84, "840 m"), (0.9996, "1.0 km"), (1.26, "1.3 km"), (1234.5, "1,234 km")],
)
def test_a_distance_is_told_in_the_unit_that_suits_it(distance_km: float, words: str) -> None:
    assert distance_words(distance_km) == words


@pytest.mark.parametrize(
    ("gap_hours", "words"),
    [(0.005, "18 s"), (0.4, "24 min"), (3.87, "3.9 h"), (47.9, "47.9 h"), (100.8, "4.2 days")],
)
def test_a_gap_is_told_in_the_unit_that_suits_it(gap_hours: float, words: str) -> None:
    assert gap_words(gap_hours) == words


def test_a_day_has_no_leading_zero_and_a_share_one_decimal() -> None:
    assert day_words(date(2012, 4, 3)) == "3 April 2012"
    assert share_words(0.6421) == "64.2%"


def test_what_is_unknown_is_a_dash() -> None:
    assert {distance_words(None), gap_words(None), share_words(None), day_words(None)} == {"–"}


def test_one_thing_is_not_several() -> None:
    assert counted(1, "place") == "1 place"
    assert counted(0, "place") == "0 places"
    assert counted(2000, "check-in") == "2,000 check-ins"
