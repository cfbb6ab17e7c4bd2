"""Cold places: a trained model ranks them like a place that it knows."""

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.model.ranker import CastPoiRanker
from tests.messages import refused
from tests.model.small import (
    LAT,
    LON,
    PLACES,
    builder,
    histories,
    small_config,
    trained_model,
    walk,
)

HISTORIES = histories(walk(14, seed=1), [], walk(1, seed=2))
COLD = PLACES
"""Number of a cold place."""


def ranker(*, reader: bool = False) -> CastPoiRanker:
    config = small_config("fast" if reader else "next", distance_gate=True)
    return CastPoiRanker(trained_model(config), builder(config))


def with_a_cafe(known: CastPoiRanker, lat: float = LAT[0], lon: float = LON[0]) -> CastPoiRanker:
    """The ranker and one cold place, like place 0."""
    return known.with_places(np.array([lat]), np.array([lon]), np.array([0]))


@pytest.mark.parametrize("reader", [False, True])
def test_a_cold_place_changes_no_score_of_other_places(reader: bool) -> None:
    known = ranker(reader=reader)
    more = with_a_cafe(known)
    assert more.places == PLACES + 1
    scores = more.score(more.encode(HISTORIES))
    expected = known.score(known.encode(HISTORIES))
    np.testing.assert_allclose(scores[:, :PLACES], expected, atol=1e-5)


@pytest.mark.parametrize("reader", [False, True])
def test_a_cold_place_scores_as_the_place_it_is_like_if_it_is_there(reader: bool) -> None:
    more = with_a_cafe(ranker(reader=reader))
    visits = [each for each in walk(9) if each[0] != 0]  # no visit to either
    encoded = more.encode(histories(visits))
    scores = more.score(encoded)
    assert scores[0, COLD] == pytest.approx(scores[0, 0], abs=1e-5)
    forecast = more.forecast(encoded)
    assert forecast[0, COLD] == pytest.approx(forecast[0, 0], abs=1e-5)


def test_the_terms_of_a_cold_place_sum_to_its_score() -> None:
    more = with_a_cafe(ranker(reader=True))
    encoded = more.encode(HISTORIES)
    terms = more.term_values(encoded, np.array([COLD]))
    np.testing.assert_allclose(sum(terms.values()), more.score(encoded)[:, [COLD]], atol=1e-5)
    for name in ("base", "popularity", "reader", "distance"):
        assert abs(terms[name][0, 0]) > 1e-6
    assert not terms["revisit"].any()


def test_a_cold_place_can_be_visited() -> None:
    more = with_a_cafe(ranker())
    visits = [*walk(5), (COLD, walk(6)[-1][1], -240)]
    encoded = more.encode(histories(visits))
    assert abs(more.term_values(encoded, np.array([COLD]))["revisit"][0, 0]) > 1e-6
    assert encoded.anchors[0, 0] == COLD


def test_nearness_to_a_cold_place_is_that_of_any_other() -> None:
    near, far = (with_a_cafe(ranker(), lat, lon) for lat, lon in ((LAT[0], LON[0]), (51.5, -0.1)))

    def distance(castpoi: CastPoiRanker) -> np.ndarray:
        encoded = castpoi.encode(histories([(0, 0, 0)]))
        terms: np.ndarray = castpoi.term_values(encoded, np.array([0, COLD]))["distance"][0]
        return terms

    assert distance(near)[0] == distance(near)[1]
    assert distance(far)[0] != distance(far)[1]


def test_a_run_that_could_have_shared_vectors_is_read_if_it_has_none() -> None:
    castpoi = ranker()
    earlier, model = castpoi.config, castpoi.config["model"]
    expected = castpoi.score(castpoi.encode(HISTORIES))
    restored = CastPoiRanker.restore(
        earlier | {"model": model | {"shared_vectors": False}}, castpoi.arrays
    )
    np.testing.assert_array_equal(restored.score(restored.encode(HISTORIES)), expected)
    with refused(BadInput):
        CastPoiRanker.restore(earlier | {"model": model | {"shared_vectors": True}}, castpoi.arrays)
