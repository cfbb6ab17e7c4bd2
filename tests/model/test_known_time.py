"""Known time: of the next visit a model uses the time, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from castpoi.checkins.trajectory import Histories, Trajectories
from castpoi.core.errors import BadInput
from castpoi.methods.ranker import abilities_of
from castpoi.model.castpoi import new_model
from castpoi.model.config import PRESETS, ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import next_times
from tests.model.small import (
    LAT,
    LON,
    at,
    builder,
    histories,
    small_config,
    trained_model,
    walk,
    with_next_time,
)

HOUR_US = 3_600_000_000
FRIDAY_NOON = at("2012-04-06 12:00")
TIMED = {
    "next": small_config("next", known_time=True),
    "with a reader": small_config(revisit_features="habits", known_time=True),
}
IN_BOTH = pytest.mark.parametrize("config", TIMED.values(), ids=TIMED.keys())


def next_time_of(next_us: int, *, offset: int = 0) -> list[int]:
    """Hour and wait of the next visit, after a visit on Friday at noon (UTC)."""
    laid = replace(histories([(0, FRIDAY_NOON, offset)]), next_at_us=np.array([next_us]))
    (features,) = next_times(laid).tolist()
    return list(features)


def test_the_hour_of_the_next_visit_differs_between_working_days_and_weekends() -> None:
    assert next_time_of(at("2012-04-06 18:59")) == [18, 2]
    assert next_time_of(at("2012-04-07 18:00")) == [24 + 18, 3]
    assert next_time_of(at("2012-04-09 00:00")) == [0, 3]


def test_an_edge_of_the_wait_belongs_to_the_bucket_above() -> None:
    for hours, bucket in (
        (0.0, 0),
        (0.99, 0),
        (1.0, 1),
        (6.0, 2),
        (23.9, 2),
        (24.0, 3),
        (168.0, 4),
    ):
        assert next_time_of(FRIDAY_NOON + round(hours * HOUR_US))[1] == bucket


def test_the_clock_is_that_of_the_last_visit() -> None:
    assert next_time_of(at("2012-04-07 02:00"), offset=-240)[0] == 22  # still Friday evening
    assert next_time_of(at("2012-04-06 20:00"), offset=600)[0] == 24 + 6


def test_inside_a_history_the_next_visit_is_the_one_that_followed() -> None:
    visits = [(0, FRIDAY_NOON, 0), (1, FRIDAY_NOON + 2 * HOUR_US, 0)]
    laid = replace(histories(visits, [], visits[:1]), next_at_us=np.array([FRIDAY_NOON] * 3))
    later = replace(laid, next_at_us=np.array([FRIDAY_NOON + 9 * HOUR_US] * 3))
    assert next_times(laid).tolist() == [[14, 1], [12, 0], [12, 0]]
    assert next_times(later).tolist() == [[14, 1], [21, 2], [21, 2]]


@IN_BOTH
def test_all_other_weights_start_as_without_known_time(
    config: ModelConfig,
) -> None:
    with_it, without = (
        new_model(config=each, lat=LAT, lon=LON, seed=4).eval()
        for each in (config, replace(config, known_time=False))
    )
    weights, fewer = with_it.state_dict(), without.state_dict()
    added = weights.keys() - fewer.keys()
    assert added == {"tokens.next_time.hour", "tokens.next_time.wait"}
    assert not any(weights[name].any() for name in added)
    assert all(torch.equal(weights[name], weight) for name, weight in fewer.items())


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_uses_the_time_of_the_next_visit(preset: str) -> None:
    config = small_config(preset)
    assert not config.known_time
    assert "known_time" in ModelConfig.preset(preset).to_dict()
    castpoi = ranker(config)
    assert not abilities_of(castpoi).needs_next_time
    visits = [walk(14, seed=1), [], walk(1, seed=2)]
    plain = histories(*visits)
    timed = with_next_time(plain, *visits)
    np.testing.assert_array_equal(scores(castpoi, timed), scores(castpoi, plain))


@IN_BOTH
def test_of_the_next_visit_only_its_time_changes_a_score(config: ModelConfig) -> None:
    """The target's place and offset, and later visits, are not used."""
    castpoi = ranker(config)
    assert abilities_of(castpoi).needs_next_time
    plain = scores(castpoi, before_the_target())
    for changed in (
        before_the_target(place=3),
        before_the_target(offset=600),
        before_the_target(later=True),
    ):
        np.testing.assert_array_equal(scores(castpoi, changed), plain)
    for hours in (2, 11, 200):
        moved = scores(castpoi, before_the_target(hours=hours))
        assert (np.abs(moved - plain).max(axis=1) > 1e-3).all()


def before_the_target(
    *, place: int = 0, offset: int = -240, hours: int = 0, later: bool = False
) -> Histories:
    """The history of a target some hours after it, as evaluation takes it from a city."""
    visits = walk(12, seed=8)
    target = (place, visits[-1][1] + (5 + hours) * HOUR_US, offset)
    after = (5, target[1] + HOUR_US, 0) if later else (6, target[1] + 90 * HOUR_US, -60)
    places, at_us, offsets = np.array([*visits, target, after], dtype=np.int64).T
    count = len(places)
    trajectories = Trajectories(
        checkin=np.arange(count),
        user=np.zeros(count, dtype=np.int64),
        place=places,
        at_us=at_us,
        offset_minutes=offsets,
        part=np.zeros(count, dtype=np.uint8),
    )
    return trajectories.histories_before(np.array([count - 2]), known_time=True)


@IN_BOTH
def test_histories_are_scored_together_as_they_would_be_alone(config: ModelConfig) -> None:
    castpoi = ranker(config)
    many = [walk(14, seed=1), [], walk(1, seed=2), walk(30, seed=3)]
    together = scores(castpoi, with_next_time(histories(*many), *many))
    for number, visits in enumerate(many):
        alone = scores(castpoi, with_next_time(histories(visits), visits))
        np.testing.assert_allclose(together[number], alone[0], atol=1e-5)


@IN_BOTH
def test_a_model_with_known_time_rejects_histories_without_it(config: ModelConfig) -> None:
    words = "known_time=true and needs the time of the next visit; give histories"
    with pytest.raises(BadInput, match=words):
        ranker(config).encode(histories(walk(3)))


def ranker(config: ModelConfig) -> CastPoiRanker:
    return CastPoiRanker(trained_model(config), builder(config))


def scores(castpoi: CastPoiRanker, given: Histories) -> np.ndarray:
    return castpoi.score(castpoi.encode(given))
