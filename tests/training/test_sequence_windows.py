import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from castpoi.checkins.trajectory import Histories
from castpoi.training.sequence_windows import SequenceWindows, cut_sequences


def histories_of(*lengths: int) -> Histories:
    visits = np.zeros(sum(lengths), dtype=np.int64)
    bounds = np.cumsum([0, *lengths])
    return Histories(place=visits, at_us=visits, offset_minutes=visits, bounds=bounds)


def as_tuples(windows: SequenceWindows) -> list[tuple[int, int, int]]:
    columns = (windows.begin.tolist(), windows.learn.tolist(), windows.end.tolist())
    return list(zip(*columns, strict=True))


def test_a_long_history_is_cut_into_windows_that_look_back() -> None:
    windows = cut_sequences(histories_of(9), window=4, stride=2)
    # the visits 0 to 7 have a successor: four share the first window, then two by two
    assert as_tuples(windows) == [(0, 0, 4), (2, 4, 6), (4, 6, 8)]
    assert windows.targets.tolist() == [4, 2, 2]
    assert as_tuples(windows.chosen(np.array([2, 0]))) == [(4, 6, 8), (0, 0, 4)]


def test_the_last_window_of_a_user_is_a_full_one() -> None:
    windows = cut_sequences(histories_of(8), window=4, stride=2)
    assert as_tuples(windows) == [(0, 0, 4), (2, 4, 6), (3, 6, 7)]


def test_users_without_a_second_visit_have_nothing_to_learn() -> None:
    assert as_tuples(cut_sequences(histories_of(1, 3, 0, 2), window=4, stride=2)) == [
        (1, 1, 3),
        (4, 4, 5),
    ]


def test_stride_one_gives_every_prefix_the_last_visits_it_may_see() -> None:
    windows = cut_sequences(histories_of(7), window=3, stride=1)
    assert as_tuples(windows) == [(0, 0, 3), (1, 3, 4), (2, 4, 5), (3, 5, 6)]


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    window=st.integers(1, 9),
    stride=st.integers(1, 12),
)
def test_every_visit_with_a_successor_learns_once_and_sees_no_other_user(
    lengths: list[int], window: int, stride: int
) -> None:
    histories = histories_of(*lengths)
    learned: list[int] = []
    for begin, learn, end in as_tuples(cut_sequences(histories, window=window, stride=stride)):
        owner = int(np.searchsorted(histories.bounds, begin, side="right")) - 1
        first, last = histories.bounds[owner], histories.bounds[owner + 1] - 1
        assert first <= begin <= learn < end <= last
        assert end - begin <= window
        if begin > first:  # a window that does not reach the user's first visit is full
            assert end - begin == window
            assert learn - begin >= window - min(stride, window)
        learned += range(learn, end)
    with_successor = [
        visit
        for first, end in zip(histories.bounds[:-1], histories.bounds[1:], strict=True)
        for visit in range(first, end - 1)
    ]
    assert sorted(learned) == with_successor
