"""Overlap of targets with the trajectories of train."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.trajectory import Trajectories
from castpoi.evaluation.result import MAX_LENGTH, overlap_with_train

TRAIN, TEST = record.PARTS.index(record.TRAIN), record.PARTS.index(record.TEST)


def trajectories_of(people: Sequence[Sequence[int]], tests: int) -> Trajectories:
    """Places of each person in order; the last `tests` of everybody are in test."""
    place = np.concatenate([np.array(each) for each in people])
    ends: list[int] = []
    for each in people:
        ends += [TRAIN] * (len(each) - tests) + [TEST] * tests
    user = np.repeat(np.arange(len(people)), [len(each) for each in people])
    rows = np.arange(len(place))
    return Trajectories(
        checkin=rows, user=user, place=place, at_us=rows, offset_minutes=0 * rows,
        part=np.array(ends, dtype=np.uint8),
    )  # fmt: skip


def overlaps(people: Sequence[Sequence[int]], tests: int = 1) -> list[int]:
    made = trajectories_of(people, tests)
    found = overlap_with_train(made, np.flatnonzero(made.part == TEST))
    return [int(each) for each in found]


def test_overlaps_worked_by_hand() -> None:
    assert overlaps([[1, 2, 3, 9], [5, 6, 2]]) == [0, 1]  # nobody was at 9; the place 2 only
    assert overlaps([[1, 2, 3, 4, 5], [7, 2, 3]]) == [0, 2]  # the move from 2 to 3
    assert overlaps([[1, 2, 3, 4, 5], [1, 2, 3]]) == [0, 3]
    assert overlaps([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5]]) == [0, MAX_LENGTH]


def test_a_sequence_does_not_reach_from_one_person_to_the_next() -> None:
    # 2 ends the first person's train visits and 3 begins the second's: nobody moved from 2 to 3.
    assert overlaps([[1, 2, 8], [3, 4, 2, 3]])[1] == 1


def test_a_move_that_only_test_has_is_no_overlap() -> None:
    assert overlaps([[1, 2, 3], [1, 3, 9, 2, 3]], tests=1) == [1, 1]
    assert overlaps([[3, 1, 2, 3], [1, 2, 3, 2, 3]], tests=2)[0] == 2


PEOPLE = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=9), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(PEOPLE)
def test_it_is_that_of_a_slow_search(people: list[list[int]]) -> None:
    expected = [
        max(
            [0]
            + [
                length
                for length in range(1, min(MAX_LENGTH, len(own)) + 1)
                for other in people
                for start in range(len(other) - 1)
                if other[:-1][start : start + length] == own[-length:]
            ]
        )
        for own in people
    ]
    assert overlaps(people) == expected
