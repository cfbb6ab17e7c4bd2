"""Shared vectors: the vectors of places, of their traits, and of cold places."""

import json

import numpy as np
import pytest
import torch

from castpoi.model.castpoi import CastPoi
from castpoi.model.places import NO_TRAIT, PlaceTraits, SharedVectors
from castpoi.model.ranker import CastPoiRanker
from tests.model.small import (
    ALL_PLACES,
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
            model(batch_of(model.config, walk(6)), ALL_PLACES).tolist() for model in (plain, shared)
        ]
    assert scores[0] == scores[1]


def test_each_training_step_has_other_places_without_their_own_part() -> None:
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


def test_gradients_reach_shared_vectors_but_not_the_row_of_no_trait() -> None:
    model = with_a_cafe(ranker(), -33.9, 151.2).model.train()  # a cafe in no neighbourhood
    encoded = model.encode(batch_of(CONFIG, walk(6)))
    values = model.term_values(encoded, torch.arange(PLACES + 1))
    torch.stack([*values.values()]).square().sum().backward()
    shared = shared_of(model)
    for weight in (shared.vectors, shared.popularity):
        assert weight.grad is not None
        assert not weight.grad[NO_TRAIT].any()
        used = weight.grad[1:].reshape(len(weight) - 1, -1).any(dim=1)
        assert used.all()


@pytest.mark.parametrize("reader", [False, True])
def test_a_cold_place_changes_no_score_of_other_places(reader: bool) -> None:
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
    visits = [each for each in walk(9) if each[0] != 0]  # no visit to either
    scores = more.score(more.encode(histories(visits)))
    assert scores[0, COLD] == pytest.approx(scores[0, 0], abs=1e-5)


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


def test_saving_and_restoring_changes_no_score_and_no_trait() -> None:
    castpoi = ranker(reader=True)
    words = json.loads(json.dumps(castpoi.config))
    restored = CastPoiRanker.restore(words, castpoi.arrays)
    assert restored.config == castpoi.config
    for one, other in ((castpoi, restored), (with_a_cafe(castpoi), with_a_cafe(restored))):
        np.testing.assert_array_equal(
            one.score(one.encode(HISTORIES)), other.score(other.encode(HISTORIES))
        )


TRAITS = PlaceTraits.of(LAT, LON, CATEGORIES)


def rows_of(lat: float, lon: float, category: str | None) -> list[int]:
    rows: list[int] = TRAITS.rows_of(np.array([lat]), np.array([lon]), [category])[0].tolist()
    return rows


def test_a_place_has_a_category_and_a_square_of_every_size() -> None:
    assert TRAITS.rows.shape == (PLACES, 3)
    assert TRAITS.categories == ("Arts", "Food", "Travel")
    assert TRAITS.rows[:, 0].tolist() == [3, 3, 2, 1, 3, 4, 2]  # 1: no category


def test_each_trait_that_some_place_has_has_a_row_and_no_other() -> None:
    assert set(TRAITS.rows.flatten().tolist()) == set(range(1, TRAITS.row_count))


def test_only_neighbours_share_a_square() -> None:
    small, large = TRAITS.rows[:, 1].tolist(), TRAITS.rows[:, 2].tolist()
    assert small[0] == small[1]  # 240 m apart
    assert small[0] != small[2]  # 1.1 km apart
    assert large[0] == large[1] == large[2]
    assert len(set(small[2:])) == 5
    assert not set(small) & set(large)


def test_neighbours_of_one_category_have_the_same_traits() -> None:
    assert rows_of(LAT[0] + 1e-5, LON[0], "Food") == TRAITS.rows[0].tolist()
    assert rows_of(LAT[0] + 1e-5, LON[0], " FOOD ") == TRAITS.rows[0].tolist()


def test_a_category_that_the_city_does_not_have_is_none() -> None:
    assert rows_of(LAT[0], LON[0], "Zoo") == rows_of(LAT[0], LON[0], None)
    assert rows_of(LAT[0], LON[0], None)[0] == 1


def test_a_place_far_from_all_others_has_no_neighbourhood() -> None:
    assert rows_of(-33.9, 151.2, "Food") == [3, NO_TRAIT, NO_TRAIT]


def test_a_city_without_categories_shares_only_neighbourhoods() -> None:
    bare = PlaceTraits.of(LAT, LON, [None, "", " ", None, None, None, None])
    assert bare.categories == ()
    assert bare.rows.shape == (PLACES, 2)
    assert bare.rows.min() == 1
    assert bare.row_count == TRAITS.row_count - 4
