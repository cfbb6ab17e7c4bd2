"""Rich features of all positions at once: those of every prefix, and of a slow count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins.city import City
from castpoi.model.revisits import revisits_of
from castpoi.training.windows import KnownPlaces, known_places, train_histories
from tests.model import reference
from tests.model.small import histories, walk
from tests.training.histories import prefixes


def of_position(known: KnownPlaces, position: int) -> dict[int, np.ndarray]:
    pairs = slice(known.bounds[position], known.bounds[position + 1])
    return dict(zip(known.place[pairs].tolist(), known.features[pairs], strict=True))


@given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
    window=st.integers(1, 30),
)
@settings(max_examples=25, deadline=None)
def test_features_of_all_positions_agree_with_a_slow_count(
    lengths: list[int], seed: int, window: int
) -> None:
    many = [walk(length, seed=seed + number) for number, length in enumerate(lengths)]
    known = known_places(histories(*many), window, "rich")
    ends = [visits[: end + 1] for visits in many for end in range(len(visits))]
    for position, visits in enumerate(ends):
        found = of_position(known, position)
        assert found.keys() == {place for place, _, _ in visits[-window:]}
        for place, features in found.items():
            expected = reference.rich_features(visits[-window:], place, window)
            np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", [12, 512])
def test_features_of_all_positions_are_those_that_every_prefix_has_in_service(
    town: City, window: int
) -> None:
    trajectories = train_histories(town)
    known = known_places(trajectories, window, "rich")
    served = revisits_of(prefixes(trajectories), window, "rich")
    position = np.repeat(np.arange(len(trajectories.place)), np.diff(known.bounds))
    order = np.lexsort((known.place, position))
    np.testing.assert_array_equal(position[order], served.owner)
    np.testing.assert_array_equal(known.place[order] + 1, served.row)
    np.testing.assert_allclose(known.features[order], served.features, rtol=1e-6, atol=1e-6)


def test_the_first_three_features_are_the_papers(town: City) -> None:
    trajectories = train_histories(town)
    rich, paper = (known_places(trajectories, 20, kind) for kind in ("rich", "paper"))
    np.testing.assert_array_equal(rich.features[:, :3], paper.features)
    np.testing.assert_array_equal(rich.home, paper.home)


def test_many_pairs_are_told_of_in_parts(town: City, monkeypatch: pytest.MonkeyPatch) -> None:
    trajectories = train_histories(town)
    whole = known_places(trajectories, 20, "rich")
    monkeypatch.setattr("castpoi.training.windows._PAIRS_AT_ONCE", 37)
    np.testing.assert_array_equal(known_places(trajectories, 20, "rich").features, whole.features)


def test_users_with_one_visit_each_have_no_moves() -> None:
    known = known_places(histories([(3, 0, 0)], [(3, 5, 0)]), 9, "rich")
    assert known.features[:, 3:5].tolist() == [[0.0, 0.0]] * 2
