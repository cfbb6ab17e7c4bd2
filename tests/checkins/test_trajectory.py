"""Histories are slices of the past: against slow loops over every row."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins.trajectory import Histories, Trajectories


def trajectories(rows: list[tuple[int, int]]) -> Trajectories:
    """Of (user, place) in canonical order; the instant of a row is its number."""
    user, place = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    number = np.arange(len(rows), dtype=np.int64)
    return Trajectories(
        checkin=number + 100,
        user=user,
        place=place,
        at_us=number * 10,
        offset_minutes=number - 50,
        part=np.zeros(len(rows), dtype=np.uint8),
    )


@dataclass(frozen=True)
class Asked:
    """Some rows of a city, and a window."""

    visits: list[tuple[int, int]]
    rows: list[int]
    window: int


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    places = st.lists(st.integers(0, 4), min_size=1, max_size=12)
    users = draw(st.lists(places, min_size=1, max_size=5))
    visits = [(2 * user, place) for user, walk in enumerate(users) for place in walk]
    rows = draw(st.lists(st.integers(0, len(visits) - 1), max_size=10))
    return Asked(visits, rows, draw(st.integers(1, 8)))


def slow_history(visits: list[tuple[int, int]], row: int) -> list[int]:
    """Rows of the same user before a row."""
    return [before for before in range(row) if visits[before][0] == visits[row][0]]


def as_lists(histories: Histories, column: np.ndarray) -> list[list[int]]:
    bounds = histories.bounds
    return [column[a:b].tolist() for a, b in pairwise(bounds)]


@given(questions())
@settings(max_examples=80, deadline=None)
def test_a_history_is_everything_the_user_did_before(asked: Asked) -> None:
    city = trajectories(asked.visits)
    histories = city.histories_before(np.array(asked.rows, dtype=np.int64))
    slow = [slow_history(asked.visits, row) for row in asked.rows]
    assert len(histories) == len(asked.rows)
    places = [[asked.visits[row][1] for row in history] for history in slow]
    assert as_lists(histories, histories.place) == places
    assert as_lists(histories, histories.at_us) == [[10 * row for row in h] for h in slow]
    assert as_lists(histories, histories.offset_minutes) == [[r - 50 for r in h] for h in slow]
    assert histories.lengths.tolist() == [len(history) for history in slow]
    assert histories.last_place.tolist() == [walk[-1] if walk else -1 for walk in places]
    assert histories.owner.tolist() == [b for b, history in enumerate(slow) for _ in history]


@given(questions())
@settings(max_examples=80, deadline=None)
def test_a_tail_is_the_end_of_every_history(asked: Asked) -> None:
    histories = trajectories(asked.visits).histories_before(np.array(asked.rows, dtype=np.int64))
    tail = histories.tail(asked.window)
    for column in ("place", "at_us", "offset_minutes"):
        whole = as_lists(histories, getattr(histories, column))
        assert as_lists(tail, getattr(tail, column)) == [walk[-asked.window :] for walk in whole]


@given(questions())
@settings(max_examples=80, deadline=None)
def test_a_revisit_is_among_the_visits_before_it(asked: Asked) -> None:
    city = trajectories(asked.visits)

    def slow(row: int) -> bool:
        near = slow_history(asked.visits, row)[-asked.window :]
        return asked.visits[row][1] in [asked.visits[before][1] for before in near]

    found = city.is_revisit(np.array(asked.rows, dtype=np.int64), window=asked.window)
    assert found.tolist() == [slow(row) for row in asked.rows]
    # one row of every user goes another way
    one_each = {asked.visits[row][0]: row for row in asked.rows}
    distinct = np.array(list(one_each.values()), dtype=np.int64)
    found = city.is_revisit(distinct, window=asked.window)
    assert found.tolist() == [slow(row) for row in distinct.tolist()]


def test_the_window_of_a_revisit_counts_visits_back_from_the_target() -> None:
    city = trajectories([(0, 7), (0, 1), (0, 2), (0, 7)])
    target = np.array([3])
    assert city.is_revisit(target, window=3).tolist() == [True]
    assert city.is_revisit(target, window=2).tolist() == [False]


@given(questions())
@settings(max_examples=40, deadline=None)
def test_the_last_visits_before_a_row_are_the_tail_of_its_history(asked: Asked) -> None:
    city, rows = trajectories(asked.visits), np.array(asked.rows, dtype=np.int64)
    found = city.histories_before(rows, most=asked.window)
    expected = city.histories_before(rows).tail(asked.window)
    assert as_lists(found, found.at_us) == as_lists(expected, expected.at_us)


@given(questions())
@settings(max_examples=40, deadline=None)
def test_the_instant_of_a_target_is_included_only_on_request(asked: Asked) -> None:
    city, rows = trajectories(asked.visits), np.array(asked.rows, dtype=np.int64)
    assert city.histories_before(rows).next_at_us is None
    known = city.histories_before(rows, known_time=True)
    for histories in (known, known.tail(asked.window)):
        assert histories.next_at_us is not None
        assert histories.next_at_us.tolist() == [10 * row for row in asked.rows]


@given(questions())
@settings(max_examples=40, deadline=None)
def test_every_visit_is_followed_by_the_next_and_the_last_by_the_target(asked: Asked) -> None:
    city, rows = trajectories(asked.visits), np.array(asked.rows, dtype=np.int64)
    slow = [slow_history(asked.visits, row) for row in asked.rows]
    # the visits of a user are ten apart
    without, known = (city.histories_before(rows, known_time=known) for known in (False, True))
    assert as_lists(known, known.following_us) == [[10 * row + 10 for row in h] for h in slow]
    assert as_lists(without, without.following_us) == [
        [*(10 * row + 10 for row in h[:-1]), *(10 * row for row in h[-1:])] for h in slow
    ]


def test_histories_of_a_city_have_their_users_and_those_of_a_request_have_none() -> None:
    city = trajectories([(3, 0), (3, 1), (7, 2)])
    before = city.histories_before(np.array([1, 2]))
    request = Histories.of_one(place=city.place, at_us=city.at_us, offset_minutes=city.place)
    assert city.as_histories().user.tolist() == [3, 7]  # type: ignore[union-attr]
    assert Histories.concat([before, before]).user.tolist() == [3, 7] * 2  # type: ignore[union-attr]
    assert request.user is None
    assert Histories.concat([before, request]).user is None
