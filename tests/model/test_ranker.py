import json

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.methods.ranker import Explains
from castpoi.model.ranker import CHUNK, CastPoiRanker
from tests.model.small import PLACES, builder, histories, small_config, trained_model, walk

HISTORIES = histories(walk(14, seed=1), [], walk(1, seed=2))


def ranker(chunk: int = CHUNK) -> CastPoiRanker:
    config = small_config()
    return CastPoiRanker(trained_model(config), builder(config), chunk=chunk)


def test_candidates_are_place_numbers() -> None:
    castpoi = ranker()
    encoded = castpoi.encode(HISTORIES)
    everywhere = castpoi.score(encoded)
    shared, own = np.array([6, 0]), np.array([[0, 1], [6, 5], [2, 2]])
    np.testing.assert_allclose(castpoi.score(encoded, shared), everywhere[:, shared], atol=1e-5)
    expected = np.take_along_axis(everywhere, own, axis=1)
    np.testing.assert_allclose(castpoi.score(encoded, own), expected, atol=1e-5)


def test_more_histories_than_are_encoded_at_once_score_as_they_would_alone() -> None:
    castpoi = ranker()
    many = [walk(count % 6, seed=count) for count in range(300)]
    together = castpoi.score(castpoi.encode(histories(*many)))
    for each in (0, 7, 255, 256, 299):
        alone = castpoi.score(castpoi.encode(histories(many[each])))
        np.testing.assert_allclose(together[each], alone[0], atol=1e-5)


def test_saving_and_restoring_a_model_with_parts_of_our_own_changes_no_score() -> None:
    config = small_config(
        distance_gate=True,
        revisit_features="habits",
        deep_revisits=True,
    )
    castpoi = CastPoiRanker(trained_model(config), builder(config))
    words, arrays = json.loads(json.dumps(castpoi.config)), castpoi.arrays
    restored = CastPoiRanker.restore(words, arrays)
    assert restored.config == castpoi.config
    np.testing.assert_array_equal(
        restored.score(restored.encode(HISTORIES)), castpoi.score(castpoi.encode(HISTORIES))
    )


@pytest.mark.parametrize("place", [-1, PLACES])
def test_a_candidate_of_another_city_is_refused(place: int) -> None:
    castpoi = ranker()
    encoded = castpoi.encode(HISTORIES)
    with pytest.raises(BadInput, match=f"candidate {place} is not a place of the city; its places"):
        castpoi.score(encoded, np.array([0, place]))


@pytest.mark.parametrize("preset", ["fast", "next"])
def test_a_ranker_explains_its_scores_by_terms_and_attention(preset: str) -> None:
    config = small_config(preset)
    castpoi = CastPoiRanker(trained_model(config), builder(config))
    assert isinstance(castpoi, Explains)
    state, candidates = castpoi.encode(HISTORIES), np.array([5, 0])
    values = castpoi.term_values(state, candidates)
    assert tuple(values) == tuple(castpoi.terms)
    assert ("reader" in values) == config.candidate_conditioning
    scores = castpoi.score(state, candidates)
    np.testing.assert_allclose(sum(values.values()), scores, rtol=0, atol=1e-5)
    attention = castpoi.attention(state, candidates)
    assert castpoi.abilities.has_reader == (attention is not None)
    if attention is not None:
        assert attention.shape == (*scores.shape, config.window)
        assert attention.min() >= 0
        assert attention.sum(axis=2).max() <= 1 + 1e-6
