"""Quantities in words."""

from datetime import date

import pytest

from castpoi.core.quantities import counted, day_words, distance_words, duration_words, share_words


@pytest.mark.parametrize(
    ("distance_km", "words"),
    [(0, "0 m"), (0.84, "840 m"), (0.9996, "1.0 km"), (1.26, "1.3 km"), (1234.5, "1,234 km")],
)
def test_a_distance_has_the_unit_that_suits_it(distance_km: float, words: str) -> None:
    assert distance_words(distance_km) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (18, "18 s"), (59.7, "1 min"), (1440, "24 min"), (3599, "1.0 h"),
     (13_932, "3.9 h"), (172_440, "47.9 h"), (362_880, "4.2 days")],
)  # fmt: skip
def test_a_duration_has_the_unit_that_suits_it(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def test_a_day_has_no_leading_zero_and_a_share_one_decimal() -> None:
    assert day_words(date(2012, 4, 3)) == "3 April 2012"
    assert share_words(0.6421) == "64.2%"


def test_a_missing_value_is_a_dash() -> None:
    assert {distance_words(None), duration_words(None), share_words(None), day_words(None)} == {"–"}


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [(1, "place", "1 place"), (0, "place", "0 places"), (2000, "check-in", "2,000 check-ins")],
)
def test_a_count_has_a_noun_in_the_right_number(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words
