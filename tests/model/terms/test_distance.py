"""The distance gate: nearness to the user's anchors counts for every place."""

import pytest
import torch
from torch import Tensor

from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM, bucket_of, haversine_km
from castpoi.model.castpoi import CastPoi
from castpoi.model.distances import DistanceBuckets
from castpoi.model.features.known import KnownPlaces
from castpoi.model.places import PlaceTable
from castpoi.model.terms.base import ScoreInputs
from castpoi.model.terms.distance import DistanceGate
from tests.model.small import (
    ALL_PLACES,
    LAT,
    LON,
    PLACES,
    Visit,
    batch_of,
    small_config,
    trained_model,
)

CONFIG = small_config(distance_gate=True)


def distance_term(model: CastPoi, *visits: list[Visit]) -> Tensor:
    with torch.inference_mode():
        encoded = model.encode(batch_of(model.config, *visits))
        return model.term_values(encoded, ALL_PLACES)["distance"]


def inputs(anchors: list[list[int]], state: Tensor | None = None) -> ScoreInputs:
    """Histories with these anchors; all else is empty."""
    empty = torch.zeros(0, dtype=torch.int64)
    known = KnownPlaces(owner=empty, place=empty, features=torch.zeros(0, 3))
    table = PlaceTable(vectors=torch.zeros(PLACES + 1, 1), popularity=torch.zeros(PLACES + 1))
    state = torch.zeros(len(anchors), CONFIG.width) if state is None else state
    return ScoreInputs(state=state, known=known, anchors=torch.tensor(anchors), table=table)


def test_places_in_one_bucket_of_every_anchor_gain_the_same() -> None:
    gained = distance_term(trained_model(CONFIG), [(0, 0, 0)])[0].tolist()
    buckets = bucket_of(haversine_km(LAT[0], LON[0], LAT, LON), DISTANCE_GATE_EDGES_KM).tolist()
    by_bucket: dict[int, set[float]] = {}
    for bucket, gain in zip(buckets, gained, strict=True):
        by_bucket.setdefault(bucket, set()).add(gain)
    assert len(by_bucket) > 3
    assert {len(gains) for gains in by_bucket.values()} == {1}


def test_an_empty_history_has_no_distance_term() -> None:
    assert not distance_term(trained_model(CONFIG), []).any()


@pytest.mark.parametrize("table_limit", [PLACES, 0], ids=["table", "on the fly"])
def test_a_cell_is_a_bucket_of_each_anchor(
    table_limit: int,
) -> None:
    edges = DISTANCE_GATE_EDGES_KM
    distances = DistanceBuckets(lat=LAT, lon=LON, edges_km=edges, table_limit=table_limit)
    gate = DistanceGate(config=CONFIG, distances=distances)
    anchors = [[0, 6], [2, 2], [6, 1]]
    every = gate.index(inputs(anchors))
    assert every.shape == (3, PLACES)
    for row, (last, home) in enumerate(anchors):
        last_bucket, home_bucket = distances.between(torch.tensor([last, home]), ALL_PLACES).long()
        assert torch.equal(every[row], last_bucket * (len(edges) + 1) + home_bucket)


def test_a_new_gate_is_almost_closed() -> None:
    torch.manual_seed(0)
    gate = DistanceGate(
        config=CONFIG,
        distances=DistanceBuckets(lat=LAT, lon=LON, edges_km=DISTANCE_GATE_EDGES_KM),
    )
    state = torch.randn(4, CONFIG.width, generator=torch.Generator().manual_seed(0))
    gained = gate.at(inputs([[0, 1]] * 4, state), ALL_PLACES)
    assert 0 < gained.abs().max() < 0.2
