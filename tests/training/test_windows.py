from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from castpoi.training.windows import TrainWindows, cut_windows
from tests.cities import CAFE, OFFICE, PARK, histories_of, small_city


def windows_of(*lengths: int, first: int, stride: int) -> TrainWindows:
    return cut_windows(histories_of(*([0] * each for each in lengths)), first=first, stride=stride)


def as_tuples(windows: TrainWindows) -> list[tuple[int, int, int]]:
    columns = (windows.begin.tolist(), windows.learn.tolist(), windows.end.tolist())
    return list(zip(*columns, strict=True))


def test_train_histories_hold_the_train_visits_of_every_user_and_nothing_else() -> None:
    visits = [
        (1, CAFE, "2024-01-01 08:00"),
        (1, OFFICE, "2024-01-01 09:00"),
        (1, PARK, "2024-01-01 18:00"),
        (2, PARK, "2024-01-01 10:00"),
        (2, CAFE, "2024-01-02 10:00"),
    ]
    city = small_city(visits, ["train", "train", "test", "train", "train"])
    histories = city.train
    assert histories.place.tolist() == [CAFE, OFFICE, PARK, CAFE]
    assert histories.bounds.tolist() == [0, 2, 4]


def test_a_long_history_is_cut_into_windows_with_earlier_visits_as_context() -> None:
    windows = windows_of(8, first=4, stride=2)
    # the visits 0 to 6 have a successor: four learn in the first window, then two by two
    assert as_tuples(windows) == [(0, 0, 4), (0, 4, 6), (0, 6, 7)]
    assert windows.targets.tolist() == [4, 2, 1]
    assert as_tuples(windows.chosen(np.array([2, 0]))) == [(0, 6, 7), (0, 0, 4)]
    assert as_tuples(windows.at_most(4)) == [(0, 0, 4), (2, 4, 6), (3, 6, 7)]
    assert as_tuples(windows.looking_back(2)) == [(0, 0, 4), (2, 4, 6), (4, 6, 7)]


def test_users_without_a_second_visit_have_no_window() -> None:
    assert as_tuples(windows_of(1, 3, 0, 2, first=4, stride=2)) == [(1, 1, 3), (4, 4, 5)]


def test_with_stride_one_every_prefix_has_its_last_visits() -> None:
    windows = windows_of(7, first=3, stride=1).at_most(3)
    assert as_tuples(windows) == [(0, 0, 3), (1, 3, 4), (2, 4, 5), (3, 5, 6)]


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    first=st.integers(1, 9),
    stride=st.integers(1, 12),
)
def test_every_visit_with_a_successor_learns_once_and_a_window_has_one_user(
    lengths: list[int], first: int, stride: int
) -> None:
    bounds = np.cumsum([0, *lengths])
    windows = windows_of(*lengths, first=first, stride=stride)
    learned: list[int] = []
    for begin, learn, end in as_tuples(windows):
        owner = int(np.searchsorted(bounds, begin, side="right")) - 1
        assert bounds[owner] == begin <= learn < end < bounds[owner + 1]
        assert end - learn <= (first if learn == begin else stride)
        learned += range(learn, end)
    with_successor = [visit for begin, end in pairwise(bounds) for visit in range(begin, end - 1)]
    assert sorted(learned) == with_successor
    assert (windows.at_most(9).end - windows.at_most(9).begin <= 9).all()
    shorter = windows.looking_back(stride)
    assert (shorter.begin == np.maximum(windows.begin, windows.learn - stride)).all()
