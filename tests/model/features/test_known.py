"""Known places: pairs of histories and places, of the last position and of every position."""

import math
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.model.features.known import KnownPairs, PairCounter, known_at_the_end
from castpoi.model.places import NO_PLACE
from tests.cities import histories_of
from tests.model.small import histories
from tests.training.histories import every_position, prefixes

SOME_HISTORIES = st.lists(st.lists(st.integers(0, 6), max_size=30), min_size=1, max_size=4)
NO_EMPTY_HISTORIES = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=30), min_size=1, max_size=4
)


def at_the_end(*places: list[int], window: int = 9) -> KnownPairs:
    laid = histories(*[[(place, i, 0) for i, place in enumerate(each)] for each in places])
    return known_at_the_end(laid.tail(window), window=window)


def test_home_is_the_most_visited_place() -> None:
    assert at_the_end([5, 5, 2, 1]).home.tolist() == [5]


def test_of_places_visited_equally_often_the_latest_is_home() -> None:
    assert at_the_end([4, 3, 3, 4, 0], [3, 4, 4, 3, 0]).home.tolist() == [4, 3]


def test_an_empty_history_has_no_home_and_no_pairs() -> None:
    known = at_the_end([], [6], [])
    assert known.home.tolist() == [NO_PLACE, 6, NO_PLACE]
    assert known.owner.tolist() == [1]
    assert at_the_end([], []).home.tolist() == [NO_PLACE] * 2


def test_visits_before_the_window_do_not_count() -> None:
    known = at_the_end([1, 1, 1, 2, 2, 3], window=3)
    assert known.home.tolist() == [2]
    assert known.place.tolist() == [2, 3]


@given(places=SOME_HISTORIES, window=st.integers(1, 12))
@settings(deadline=None)
def test_pairs_at_the_end_agree_with_a_slow_count(places: list[list[int]], window: int) -> None:
    found = at_the_end(*places, window=window)
    for owner, visits in enumerate(places):
        check(found.part(owner, owner + 1), visits, window)
    assert found.tensors().owner.tolist() == sorted(found.owner.tolist())


@given(places=NO_EMPTY_HISTORIES, window=st.integers(1, 12))
@settings(deadline=None)
def test_pairs_of_every_position_agree_with_a_slow_count(
    places: list[list[int]], window: int
) -> None:
    laid = histories_of(*places)
    found = PairCounter(laid, window=window).pairs(laid.bounds[:-1], laid.bounds[1:])
    for position, owner in enumerate(laid.owner.tolist()):
        visits = laid.place[laid.bounds[owner] : position + 1].tolist()
        check(found.part(position, position + 1), visits, window)


def check(found: KnownPairs, visits: list[int], window: int) -> None:
    """Compare the pairs of one position with a slow count."""
    padded = ([NO_PLACE] * window + visits)[-window:]
    counts = Counter(place for place in padded if place != NO_PLACE)
    assert sorted(found.place.tolist()) == sorted(counts)
    for place, features in zip(found.place.tolist(), found.features, strict=True):
        slot = window - padded[::-1].index(place)
        expected = [math.log1p(counts[place]), slot / window, 1.0]
        np.testing.assert_allclose(features, expected, rtol=1e-6)
    latest_first = [place for place in dict.fromkeys(reversed(padded)) if place != NO_PLACE]
    home = max(latest_first, key=counts.__getitem__, default=NO_PLACE)
    assert found.home.tolist() == [home]


def test_positions_have_the_bits_that_they_have_alone() -> None:
    laid = histories_of([1, 2, 1, 0, 3, 1], [2, 2, 5])
    together = PairCounter(laid, window=4).pairs(laid.bounds[:-1], laid.bounds[1:])
    alone = known_at_the_end(prefixes(laid).tail(4), window=4)
    order = np.lexsort((together.place, together.owner))
    np.testing.assert_array_equal(together.home, alone.home)
    np.testing.assert_array_equal(together.place[order], alone.place)
    np.testing.assert_array_equal(together.features[order], alone.features)
    assert len(every_position(laid)) == len(together.home)


def test_histories_are_not_mutated() -> None:
    laid = histories([(1, 0, 0), (2, 1, 0)])
    before = laid.place.copy()
    known_at_the_end(laid)
    np.testing.assert_array_equal(laid.place, before)
