"""PPM, TIFU-KNN and EASE against slow references, written by the formulas."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from castpoi.baselines.ease import Ease, EaseConfig
from castpoi.baselines.ppm import Ppm, PpmConfig
from castpoi.baselines.tifu_knn import TifuKnn, TifuKnnConfig
from castpoi.core.errors import BadInput
from tests.cities import histories_of
from tests.messages import refused

PLACES = 6
TRAIN = [[0, 1, 0, 2, 0, 1], [1, 2, 3], [0, 1, 3, 1, 3], [4], [2, 2, 0, 1, 0]]
some_visits = st.lists(st.integers(0, PLACES - 1), min_size=1, max_size=9)


def one(visits: list[int], model: Any) -> NDArray[Any]:
    found: NDArray[Any] = model.score(model.encode(histories_of(visits)))[0]
    return found


def ppm_by_hand(visits: list[int], config: PpmConfig) -> list[float]:
    popularity = [sum(each.count(place) for each in TRAIN) for place in range(PLACES)]
    total = sum(popularity) + PLACES
    found = [(count + 1) / total for count in popularity]
    contexts = [(TRAIN, length, config.escape) for length in range(1, config.order + 1)]
    contexts += [([visits], length, config.own_escape) for length in range(config.own_order + 1)]
    for sequences, length, escape in contexts:
        if length > len(visits):
            continue
        context = visits[len(visits) - length :]
        after = [
            each[at]
            for each in sequences
            for at in range(length, len(each))
            if each[at - length : at] == context
        ]
        if after:
            rest = escape * len(set(after))
            found = [
                (after.count(place) + rest * found[place]) / (len(after) + rest)
                for place in range(PLACES)
            ]
    return found


@settings(max_examples=60, deadline=None, derandomize=True)
@given(some_visits, st.integers(1, 3), st.integers(1, 3))
def test_ppm_blends_contexts_of_all_orders(visits: list[int], order: int, own: int) -> None:
    config = PpmConfig(order=order, own_order=own, escape=1.5, own_escape=0.5)
    model = Ppm.learn(histories_of(*TRAIN), places=PLACES, config=config)
    expected = ppm_by_hand(visits, config)
    assert sum(expected) == pytest.approx(1)
    np.testing.assert_allclose(np.exp(one(visits, model)), expected, rtol=1e-5)


def tifu_vector(visits: list[int], config: TifuKnnConfig) -> NDArray[Any]:
    groups = [
        visits[max(0, end - config.group) : end] for end in range(len(visits), 0, -config.group)
    ]
    vector = np.zeros(PLACES)
    for age, group in enumerate(groups):
        for later, place in enumerate(reversed(group)):
            weight = config.visit_decay**later / len(group)
            vector[place] += weight * config.group_decay**age / len(groups)
    return vector


@settings(max_examples=60, deadline=None, derandomize=True)
@given(some_visits, st.integers(1, 4), st.integers(1, 7))
def test_tifu_knn_mixes_the_user_with_the_nearest_users(
    visits: list[int], group: int, neighbours: int
) -> None:
    config = TifuKnnConfig(
        group=group, neighbours=neighbours, visit_decay=0.8, group_decay=0.5, own_share=0.6
    )
    own, users = tifu_vector(visits, config), [tifu_vector(each, config) for each in TRAIN]
    nearest = sorted(users, key=lambda other: round(float(((own - other) ** 2).sum()), 12))
    expected = 0.6 * own + 0.4 * np.mean(nearest[:neighbours], axis=0)
    model = TifuKnn.learn(histories_of(*TRAIN), places=PLACES, config=config)
    np.testing.assert_allclose(one(visits, model), expected, atol=1e-6)


def visited() -> NDArray[Any]:
    """Which user has visited which place."""
    return np.array([[float(place in each) for place in range(PLACES)] for each in TRAIN])


def test_ease_is_the_ridge_regression_of_each_place_on_all_others() -> None:
    config = EaseConfig(ridge=3.0, own=0.5)
    model = Ease.learn(histories_of(*TRAIN), places=PLACES, config=config)
    users = visited()
    for there in range(PLACES):
        others = [here for here in range(PLACES) if here != there]
        read = users[:, others]
        weights = np.linalg.solve(read.T @ read + 3.0 * np.eye(5), read.T @ users[:, there])
        assert one([there], model)[there] == pytest.approx(0.5 * np.log(2), abs=1e-6)
        for here, weight in zip(others, weights, strict=True):
            assert one([here], model)[there] == pytest.approx(np.log(2) * weight, abs=1e-6)


def test_weights_between_too_many_places_are_refused() -> None:
    with refused(BadInput):
        Ease.learn(histories_of([0, 1]), places=20_001, config=EaseConfig())
