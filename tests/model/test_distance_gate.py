"""The distance gate: nearness to the user's anchors counts for every place."""

import numpy as np
import pytest
import torch
from torch import Tensor

from castpoi.geo.distance import haversine_km
from castpoi.model.castpoi import CastPoi
from castpoi.model.distance_buckets import DistanceBuckets
from castpoi.model.distance_gate import DistanceGate, sum_by_cell
from castpoi.model.scoring import ExactScorer
from tests.model.small import (
    ALL_ROWS,
    LAT,
    LON,
    PLACES,
    Visit,
    batch_of,
    small_config,
    trained_model,
    walk,
)

CONFIG = small_config(distance_gate=True, distance_anchors=["last", "home"])


def distance_term(model: CastPoi, *visits: list[Visit], candidates: Tensor = ALL_ROWS) -> Tensor:
    with torch.inference_mode():
        return model.distance(model.encode(batch_of(model.config, *visits)), candidates)


def gate_of(model: CastPoi) -> DistanceGate:
    assert model.distance_gate is not None
    return model.distance_gate


def test_places_in_one_bucket_of_every_anchor_gain_the_same() -> None:
    model = trained_model(small_config(distance_gate=True, distance_gate_edges_km=[5.0, 50.0]))
    gained = distance_term(model, [(0, 0, 0)])[0]
    far = haversine_km(LAT[0], LON[0], LAT, LON)
    near, middle, away = (
        gained[torch.from_numpy(np.flatnonzero(is_there))].tolist()
        for is_there in (far < 5, (far >= 5) & (far < 50), far >= 50)
    )
    assert len(near) > 1
    assert len(set(near)) == len(set(middle)) == len(set(away)) == 1
    assert len({near[0], middle[0], away[0]}) == 3


def test_an_anchor_that_a_history_does_not_have_weighs_nothing() -> None:
    model = trained_model(small_config(distance_gate=True, distance_anchors=["before_last"]))
    found = distance_term(model, [], [(3, 0, 0)], [(3, 0, 0), (3, 1, 0)])
    assert not found[:2].any()
    assert found[2].all()


def test_an_empty_history_is_scored_without_it() -> None:
    assert not distance_term(trained_model(CONFIG), []).any()


def test_terms_of_anchors_are_added_up() -> None:
    both = trained_model(CONFIG)
    each = [
        trained_model(small_config(distance_gate=True, distance_anchors=[name]))
        for name in ("last", "home")
    ]
    layers = [gate_of(model).weigh for model in (both, *each)]
    with torch.no_grad():
        for number, model in enumerate(each):
            model.load_state_dict(
                {
                    name: weight
                    for name, weight in both.state_dict().items()
                    if not name.startswith(("distance_gate", "forecast"))
                },
                strict=False,
            )
            buckets = gate_of(model).buckets
            part = slice(number * buckets, (number + 1) * buckets)
            for name, weight in layers[number + 1].named_parameters():
                whole = layers[0].get_parameter(name)
                weight.copy_(whole if name.startswith("0") else whole[part])
    visits = [walk(12, seed=3), walk(2, seed=4)]
    summed = distance_term(each[0], *visits) + distance_term(each[1], *visits)
    torch.testing.assert_close(distance_term(both, *visits), summed, rtol=0, atol=1e-5)


@pytest.mark.parametrize("table_limit", [PLACES, 0], ids=["table", "on the fly"])
def test_cells_are_the_same_for_every_place_for_shared_and_for_own_candidates(
    table_limit: int,
) -> None:
    edges = CONFIG.distance_gate_edges_km
    distances = DistanceBuckets(lat=LAT, lon=LON, edges_km=edges, table_limit=table_limit)
    gate = DistanceGate(config=CONFIG, distances=distances)
    anchors = torch.tensor([[1, 7], [3, 3], [7, 2]])
    every = gate.cells(anchors)
    assert every.shape == (3, PLACES)
    assert torch.equal(gate.cells(anchors, ALL_ROWS), every)
    own = torch.tensor([[1, 7], [2, 2], [6, 3]])
    assert torch.equal(gate.cells(anchors, own), every.gather(1, own - 1))
    for row, (last, home) in enumerate(anchors.tolist()):
        last_bucket, home_bucket = distances.between(torch.tensor([last, home]), ALL_ROWS).long()
        assert torch.equal(every[row], last_bucket * (len(edges) + 1) + home_bucket)


def test_what_is_summed_by_cell_is_the_slope_of_what_was_gained() -> None:
    draw = torch.Generator().manual_seed(1)
    cell = torch.randint(0, 5, (3, 40), generator=draw)
    slope = torch.randn(3, 40, generator=draw)
    gains = torch.randn(3, 5, generator=draw).requires_grad_()
    gains.gather(1, cell).backward(slope)
    torch.testing.assert_close(sum_by_cell(slope, cell, 5), gains.grad)


def test_a_new_gate_is_almost_closed() -> None:
    gate = DistanceGate(
        config=CONFIG,
        distances=DistanceBuckets(lat=LAT, lon=LON, edges_km=CONFIG.distance_gate_edges_km),
    )
    state = torch.randn(4, CONFIG.width, generator=torch.Generator().manual_seed(0))
    gained = gate(state, torch.tensor([[1, 2]] * 4))
    assert 0 < gained.abs().max() < 0.1


def test_the_shortlist_knows_of_it() -> None:
    model = trained_model(CONFIG)
    with torch.inference_mode():
        encoded = model.encode(batch_of(CONFIG, walk(9), walk(3)))
        terms = model.terms(encoded, ALL_ROWS)
    quick = ExactScorer(model).quick(encoded, ALL_ROWS)
    torch.testing.assert_close(quick, terms.score - terms.reader, rtol=0, atol=1e-5)
    assert terms.distance.abs().max() > 0.01
