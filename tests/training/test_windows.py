"""Windows of training: every visit with a successor learns once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.training.windows import cut_windows
from tests.cities import CAFE, OFFICE, PARK, small_city
from tests.training.histories import laid_out

trajectories = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=30), min_size=1, max_size=4
)


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


@given(visits=trajectories, stride=st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_every_visit_with_a_successor_learns_exactly_once(
    visits: list[list[int]], stride: int
) -> None:
    histories = laid_out(visits)
    learned = [
        visit
        for window in cut_windows(histories, stride)
        for visit in range(window.learn, window.end)
    ]
    last = set((histories.bounds[1:] - 1).tolist())
    assert sorted(learned) == [visit for visit in range(len(histories.place)) if visit not in last]


@given(visits=trajectories, stride=st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_a_window_never_leaves_its_user_and_looks_back_a_full_stride(
    visits: list[list[int]], stride: int
) -> None:
    histories = laid_out(visits)
    owner = histories.owner
    for window in cut_windows(histories, stride):
        assert len(set(owner[window.begin : window.end + 1].tolist())) == 1
        first = int(histories.bounds[owner[window.begin]])
        assert window.begin == max(first, window.learn - stride)
