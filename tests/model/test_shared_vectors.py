"""Shared vectors: a place is also its category and its neighbourhoods, and may be no more."""

import json

import numpy as np
import pytest
import torch
from torch import Tensor

from castpoi.model.castpoi import CastPoi
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.shared_vectors import SharedVectors
from castpoi.model.traits import NO_TRAIT
from tests.model.small import (
    ALL_ROWS,
    CATEGORIES,
    LAT,
    LON,
    PLACES,
    batch_of,
    builder,
    histories,
    small_config,
    trained_model,
    walk,
)

CONFIG = small_config("next", shared_vectors=True)
READING = small_config(
    shared_vectors=True, distance_gate=True, revisit_features="habits", deep_revisits=True
)
HISTORIES = histories(walk(14, seed=1), [], walk(1, seed=2))
COLD = PLACES
"""Number of a cold place."""


def shared_of(model: CastPoi) -> SharedVectors:
    assert model.shared is not None
    return model.shared


def ranker(*, reader: bool = False) -> CastPoiRanker:
    config = READING if reader else CONFIG
    return CastPoiRanker(trained_model(config), builder(config))


def with_a_cafe(known: CastPoiRanker, lat: float = LAT[0], lon: float = LON[0]) -> CastPoiRanker:
    """The ranker and one cold place."""
    return known.with_places(np.array([lat]), np.array([lon]), ["Food"])


def test_a_place_is_the_sum_of_its_own_and_what_it_shares() -> None:
    model = trained_model(CONFIG)
    shared, table = shared_of(model), model.table()
    for place in range(PLACES):
        rows = shared.rows[place + 1]
        vector = model.place.weight[place + 1] + shared.vectors[rows].sum(dim=0)
        torch.testing.assert_close(table.vectors[place + 1], vector)
        popularity = model.popularity[place + 1] + shared.popularity[rows].sum()
        torch.testing.assert_close(table.popularity[place + 1], popularity)
    assert not table.vectors[0].any()  # padding is no place


def test_a_new_model_starts_as_it_would_without_them() -> None:
    parts = {
        "distance_gate": True,
        "candidate_conditioning": False,
        "revisit_features": "habits",
        "deep_revisits": True,
    }
    plain, shared = (
        trained_model(small_config(**parts, shared_vectors=switch)) for switch in (False, True)
    )
    with torch.no_grad():
        for weight in shared_of(shared).parameters():
            weight.zero_()
        shared.load_state_dict(plain.state_dict(), strict=False)
        scores = [
            model(batch_of(model.config, walk(6)), ALL_ROWS).tolist() for model in (plain, shared)
        ]
    assert scores[0] == scores[1]


def test_in_training_some_places_are_without_their_own_part_anew_in_every_step() -> None:
    model = trained_model(CONFIG)
    shared_of(model).forgotten = 0.5
    whole = model.table()
    alone = whole.vectors - model.place.weight  # [P + 1, D]
    model.train()
    torch.manual_seed(0)
    seen = set()
    for _ in range(20):
        table = model.table()
        is_forgotten = torch.isclose(table.vectors, alone, atol=1e-6).all(dim=1)[1:]
        is_whole = torch.equal(table.vectors[1:][~is_forgotten], whole.vectors[1:][~is_forgotten])
        worth = whole.popularity[1:] - torch.where(is_forgotten, model.popularity[1:], 0.0)
        torch.testing.assert_close(table.popularity[1:], worth)
        assert is_whole
        seen.add(tuple(is_forgotten.tolist()))
    assert len(seen) > 10


def test_gradients_reach_what_is_shared_but_never_the_row_of_nothing() -> None:
    model = with_a_cafe(ranker(), -33.9, 151.2).model.train()  # a cafe in no neighbourhood
    encoded = model.encode(batch_of(CONFIG, walk(6)))
    model.terms(encoded, torch.arange(1, PLACES + 2)).score.square().sum().backward()
    shared = shared_of(model)
    for weight in (shared.vectors, shared.popularity):
        assert weight.grad is not None
        assert not weight.grad[NO_TRAIT].any()
        used = weight.grad[1:].reshape(len(weight) - 1, -1).any(dim=1)
        assert used.all()


@pytest.mark.parametrize("reader", [False, True])
def test_a_cold_place_changes_no_score_of_the_known(reader: bool) -> None:
    known = ranker(reader=reader)
    more = with_a_cafe(known)
    assert more.places == PLACES + 1
    scores = more.score(more.encode(HISTORIES))
    expected = known.score(known.encode(HISTORIES))
    np.testing.assert_allclose(scores[:, :PLACES], expected, atol=1e-5)


@pytest.mark.parametrize("reader", [False, True])
def test_a_cold_place_scores_as_a_neighbour_of_its_kind_that_has_nothing_of_its_own(
    reader: bool,
) -> None:
    known = ranker(reader=reader)
    with torch.no_grad():
        known.model.place.weight[1] = 0.0
        known.model.popularity[1] = 0.0
    more = with_a_cafe(CastPoiRanker(known.model, known.builder))
    visits = [each for each in walk(9) if each[0] != 0]  # no visit tells the two apart
    scores = more.score(more.encode(histories(visits)))
    assert scores[0, COLD] == pytest.approx(scores[0, 0], abs=1e-5)


def test_the_terms_of_a_cold_place_sum_to_its_score() -> None:
    more = with_a_cafe(ranker(reader=True))
    encoded = more.encode(HISTORIES)
    with torch.inference_mode():
        terms = more.model.terms(encoded, torch.tensor([COLD + 1]))
    np.testing.assert_allclose(terms.score, more.score(encoded)[:, [COLD]], atol=1e-5)
    parts = (terms.base, terms.popularity, terms.reader, terms.distance)
    assert all(bool(part[0].abs() > 1e-6) for part in parts)
    assert not terms.revisit.any()


def test_a_cold_place_can_be_visited() -> None:
    more = with_a_cafe(ranker())
    visits = [*walk(5), (COLD, walk(6)[-1][1], -240)]
    encoded = more.encode(histories(visits))
    with torch.inference_mode():
        terms = more.model.terms(encoded, torch.tensor([COLD + 1]))
    assert bool(terms.revisit[0, 0].abs() > 1e-6)
    assert encoded.anchors[0, 0] == COLD + 1


def test_nearness_to_a_cold_place_is_that_of_any_other() -> None:
    near, far = (with_a_cafe(ranker(), lat, lon) for lat, lon in ((LAT[0], LON[0]), (51.5, -0.1)))

    def distance(castpoi: CastPoiRanker) -> Tensor:
        encoded = castpoi.encode(histories([(0, 0, 0)]))
        with torch.inference_mode():
            return castpoi.model.distance(encoded, torch.tensor([1, COLD + 1]))[0]

    assert distance(near)[0] == distance(near)[1]
    assert distance(far)[0] != distance(far)[1]


def test_saving_and_restoring_changes_no_score_and_no_trait() -> None:
    castpoi = ranker(reader=True)
    words = json.loads(json.dumps(castpoi.config))
    restored = CastPoiRanker.restore(words, castpoi.arrays)
    assert restored.config == castpoi.config
    for one, other in ((castpoi, restored), (with_a_cafe(castpoi), with_a_cafe(restored))):
        np.testing.assert_array_equal(
            one.score(one.encode(HISTORIES)), other.score(other.encode(HISTORIES))
        )


def test_no_cold_places_are_no_change() -> None:
    nowhere = np.array([])
    known = ranker()
    assert known.with_places(nowhere, nowhere, []).places == len(CATEGORIES)
