"""The distance gate: nearness to the user's anchors counts for every place."""

import pytest
import torch
from torch import Tensor

from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM, bucket_of, haversine_km
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

CONFIG = small_config(distance_gate=True)


def distance_term(model: CastPoi, *visits: list[Visit], candidates: Tensor = ALL_ROWS) -> Tensor:
    with torch.inference_mode():
        return model.distance(model.encode(batch_of(model.config, *visits)), candidates)


def gate_of(model: CastPoi) -> DistanceGate:
    assert model.distance_gate is not None
    return model.distance_gate


def test_places_in_one_bucket_of_every_anchor_gain_the_same() -> None:
    gained = distance_term(trained_model(CONFIG), [(0, 0, 0)])[0].tolist()
    buckets = bucket_of(haversine_km(LAT[0], LON[0], LAT, LON), DISTANCE_GATE_EDGES_KM).tolist()
    by_bucket: dict[int, set[float]] = {}
    for bucket, gain in zip(buckets, gained, strict=True):
        by_bucket.setdefault(bucket, set()).add(gain)
    assert len(by_bucket) > 3
    assert {len(gains) for gains in by_bucket.values()} == {1}


def test_an_empty_history_is_scored_without_it() -> None:
    assert not distance_term(trained_model(CONFIG), []).any()


@pytest.mark.parametrize("table_limit", [PLACES, 0], ids=["table", "on the fly"])
def test_cells_are_the_same_for_every_place_for_shared_and_for_own_candidates(
    table_limit: int,
) -> None:
    edges = DISTANCE_GATE_EDGES_KM
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
        distances=DistanceBuckets(lat=LAT, lon=LON, edges_km=DISTANCE_GATE_EDGES_KM),
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
