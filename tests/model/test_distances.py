import math

import numpy as np
import pytest
import torch

from castpoi.geo.distance import EARTH_RADIUS_KM, SPATIAL_BIAS_EDGES_KM, bucket_of, haversine_km
from castpoi.model import distances as distances_module
from castpoi.model.distances import DistanceBuckets
from castpoi.model.places import NO_PLACE

EDGES = SPATIAL_BIAS_EDGES_KM


def scattered(places: int) -> tuple[np.ndarray, np.ndarray]:
    """Places from a street to the other side of the Earth, across the date line too."""
    rng = np.random.default_rng(7)
    spread = 10.0 ** rng.uniform(-3, 2, places)
    lat = np.clip(40 + spread * rng.normal(size=places), -90, 90)
    lon = (179.9 + spread * rng.normal(size=places) + 180) % 360 - 180
    return lat, lon


@pytest.mark.parametrize("table_limit", [300, 299], ids=["table", "on the fly"])
def test_buckets_agree_with_the_haversine_formula(table_limit: int) -> None:
    lat, lon = scattered(300)
    expected = bucket_of(haversine_km(lat[:, None], lon[:, None], lat, lon), EDGES)
    assert len(np.unique(expected)) == len(EDGES) + 1
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=EDGES, table_limit=table_limit)
    rows = torch.arange(300)
    assert distances.has_table == (table_limit == 300)
    np.testing.assert_array_equal(distances.between(rows, rows), expected)


@pytest.mark.parametrize("table_limit", [40, 0], ids=["table", "on the fly"])
def test_buckets_of_every_place_are_those_of_all_candidates(table_limit: int) -> None:
    lat, lon = scattered(40)
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=EDGES, table_limit=table_limit)
    visited = torch.tensor([2, 39, 2, 0])
    assert torch.equal(distances.between(visited), distances.between(visited, torch.arange(40)))


@pytest.mark.parametrize("table_limit", [40, 0], ids=["table", "on the fly"])
def test_each_history_may_have_its_own_candidates(table_limit: int) -> None:
    lat, lon = scattered(40)
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=EDGES, table_limit=table_limit)
    visited = torch.randint(40, (3, 5), generator=torch.Generator().manual_seed(0))
    candidates = torch.randint(40, (3, 4), generator=torch.Generator().manual_seed(1))
    found = distances(visited, candidates)
    assert found.shape == (3, 4, 5)
    for each in range(3):
        assert torch.equal(found[each], distances.between(candidates[each], visited[each]))


@pytest.mark.parametrize("edge_km", EDGES)
def test_a_millimetre_on_either_side_of_an_edge_is_another_bucket(
    edge_km: float,
) -> None:
    north = [0.0, *(math.degrees((edge_km + mm * 1e-6) / EARTH_RADIUS_KM) for mm in (-1, 1))]
    distances = DistanceBuckets(lat=np.array(north), lon=np.zeros(3), edges_km=EDGES)
    bucket = EDGES.index(edge_km)
    found = distances.between(torch.tensor([0]), torch.tensor([0, 1, 2]))
    assert found.tolist() == [[0, bucket, bucket + 1]]


def test_nothing_of_the_distances_is_saved_with_the_weights() -> None:
    distances = DistanceBuckets(lat=np.zeros(3), lon=np.zeros(3), edges_km=EDGES)
    assert distances.state_dict() == {}


@pytest.mark.parametrize("table_limit", [40, 0], ids=["table", "on the fly"])
def test_an_empty_slot_has_some_bucket(table_limit: int) -> None:
    lat, lon = scattered(40)
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=EDGES, table_limit=table_limit)
    visited = torch.tensor([NO_PLACE, 3])
    assert distances.between(visited).shape == (2, 40)
    assert distances.between(visited, torch.arange(5)).shape == (2, 5)
    assert distances(visited[None], torch.arange(5)[None]).shape == (1, 5, 2)


def test_no_float64_follows_the_model_to_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with a table of all pairs nor without; distances are then computed on the CPU."""
    monkeypatch.setattr(distances_module, "has_float64", lambda device: False)
    lat, lon = np.array([0.0, 0.0, 0.01]), np.array([0.0, 60.0, 0.0])
    found = []
    for limit in (3, 2):
        distances = DistanceBuckets(lat=lat, lon=lon, edges_km=(1.0, 5.0), table_limit=limit)
        assert all(each.dtype != torch.float64 for each in distances.buffers())
        found.append(distances.between(torch.tensor([0, 2])).tolist())
    assert found[0] == found[1] == [[0, 2, 1], [1, 2, 0]]
