"""Habits of all positions at once: those of every prefix, and of a slow count."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.model.distance_buckets import unit_vectors
from castpoi.model.habits import HABITS
from castpoi.model.known_pairs import known_pairs
from castpoi.model.revisits import revisits_of
from castpoi.training.known_places import Known, KnownPlaces
from tests.model.slow_habits import habits
from tests.model.small import LAT, LON, histories, walk
from tests.training.histories import every_position, prefixes

POINTS = unit_vectors(LAT, LON).numpy()


def points_of(city: City) -> NDArray[np.float64]:
    lat, lon = (city.places[name].to_numpy() for name in ("lat", "lon"))
    return unit_vectors(lat, lon).numpy()


def known_places(
    trajectories: Histories,
    window: int,
    points: NDArray[np.float64] | None = None,
    *,
    known_time: bool = False,
) -> Known:
    """Those of every position."""
    known = KnownPlaces(trajectories, window, points, known_time=known_time)
    return known.of(every_position(trajectories))


def of_position(found: Known, position: int) -> dict[int, NDArray[np.float32]]:
    pairs = slice(found.bounds[position], found.bounds[position + 1])
    return dict(zip(found.place[pairs].tolist(), found.features[pairs], strict=True))


@given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
    window=st.integers(1, 30),
    at_once=st.integers(1, 9),
)
@settings(max_examples=25, deadline=None)
def test_habits_of_all_positions_agree_with_a_slow_count(
    lengths: list[int], seed: int, window: int, at_once: int
) -> None:
    many = [walk(length, seed=seed + number) for number, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("castpoi.model.habits.POSITIONS_AT_ONCE", at_once)
        patch.setattr("castpoi.training.known_places.POSITIONS_AT_ONCE", at_once)
        found = known_places(histories(*many), window, POINTS)
    ends = [visits[: end + 1] for visits in many for end in range(len(visits))]
    for position, visits in enumerate(ends):
        of_places = of_position(found, position)
        assert of_places.keys() == {place for place, _, _ in visits[-window:]}
        for place, features in of_places.items():
            expected = habits(visits[-window:], place)
            np.testing.assert_allclose(features[3:], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [12, 512])
def test_habits_of_all_positions_are_those_that_every_prefix_has_in_service(
    town: City, window: int
) -> None:
    trajectories, points = town.train, points_of(town)
    found = known_places(trajectories, window, points)
    recent = prefixes(trajectories).tail(window)
    served = revisits_of(recent, known_pairs(recent, window), window, points)
    position = np.repeat(np.arange(len(trajectories.place)), np.diff(found.bounds))
    order = np.lexsort((found.place, position))
    np.testing.assert_array_equal(position[order], served.owner)
    np.testing.assert_array_equal(found.place[order] + 1, served.row)
    np.testing.assert_allclose(found.features[order], served.features, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [12, 512])
def test_where_the_time_is_known_now_is_the_moment_of_the_visit_that_follows(
    town: City, window: int
) -> None:
    trajectories, points = town.train, points_of(town)
    known, unknown = (
        known_places(trajectories, window, points, known_time=each) for each in (True, False)
    )
    asked = replace(prefixes(trajectories), next_at_us=trajectories.following_us).tail(window)
    served = revisits_of(asked, known_pairs(asked, window), window, points, known_time=True)
    position = np.repeat(np.arange(len(trajectories.place)), np.diff(known.bounds))
    order = np.lexsort((known.place, position))
    np.testing.assert_allclose(known.features[order], served.features, rtol=1e-4, atol=1e-5)
    differs = (known.features != unknown.features).any(axis=0)[3:]
    told = {name for name, differs in zip(HABITS, differs, strict=True) if not differs}
    assert told == {
        "share of all visits",
        "moves from here",
        "share of the moves from here",
        "moves from here, by the same way here",
        "two visits after the place before here",
        "after a place nearby",
        "distance from here",
        "time that leads there",
        "is here",
        "visits of all",
        "share of places among visits",
        "share of visits here",
    }  # what tells nothing of now


def test_the_first_three_features_are_the_papers(town: City) -> None:
    trajectories = town.train
    ours = known_places(trajectories, 20, points_of(town))
    paper = known_places(trajectories, 20)
    np.testing.assert_array_equal(ours.features[:, :3], paper.features)
    np.testing.assert_array_equal(ours.home, paper.home)
