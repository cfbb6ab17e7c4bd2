import math

import numpy as np
import pytest
import torch

from castpoi.geo.distance import EARTH_RADIUS_KM, SPATIAL_BIAS_EDGES_KM, bucket_of, haversine_km
from castpoi.model.distance_buckets import DistanceBuckets

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
    rows = torch.arange(1, 301)
    assert distances.has_table == (table_limit == 300)
    np.testing.assert_array_equal(distances.between(rows, rows), expected)


@pytest.mark.parametrize("table_limit", [40, 0], ids=["table", "on the fly"])
def test_the_way_to_every_place_is_that_to_all_candidates(table_limit: int) -> None:
    lat, lon = scattered(40)
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=EDGES, table_limit=table_limit)
    visited = torch.tensor([3, 40, 3, 1])
    assert torch.equal(distances.to_every(visited), distances.between(visited, torch.arange(1, 41)))


@pytest.mark.parametrize("table_limit", [40, 0], ids=["table", "on the fly"])
def test_each_history_may_have_its_own_candidates(table_limit: int) -> None:
    lat, lon = scattered(40)
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=EDGES, table_limit=table_limit)
    visited = torch.randint(1, 41, (3, 5), generator=torch.Generator().manual_seed(0))
    candidates = torch.randint(1, 41, (3, 4), generator=torch.Generator().manual_seed(1))
    found = distances(visited, candidates)
    assert found.shape == (3, 4, 5)
    for each in range(3):
        assert torch.equal(found[each], distances.between(candidates[each], visited[each]))


@pytest.mark.parametrize("edge_km", EDGES)
def test_an_edge_parts_what_is_a_millimetre_nearer_from_what_is_a_millimetre_farther(
    edge_km: float,
) -> None:
    north = [0.0, *(math.degrees((edge_km + mm * 1e-6) / EARTH_RADIUS_KM) for mm in (-1, 1))]
    distances = DistanceBuckets(lat=np.array(north), lon=np.zeros(3), edges_km=EDGES)
    bucket = EDGES.index(edge_km)
    found = distances.between(torch.tensor([1]), torch.tensor([1, 2, 3]))
    assert found.tolist() == [[0, bucket, bucket + 1]]


def test_an_edge_belongs_to_the_bucket_above() -> None:
    distances = DistanceBuckets(
        lat=np.array([0.0, 0.0]), lon=np.array([0.0, 60.0]), edges_km=(1.0,), table_limit=0
    )
    chord = 2 - 2 * (distances.vectors[1] @ distances.vectors[2])  # as the code rounds it
    for edge, bucket in ((chord.nextafter(chord + 1), 0), (chord, 1)):
        distances.edges = edge.unsqueeze(0)
        assert distances.between(torch.tensor([1]), torch.tensor([2])).item() == bucket


def test_nothing_of_the_distances_is_saved_with_the_weights() -> None:
    distances = DistanceBuckets(lat=np.zeros(3), lon=np.zeros(3), edges_km=EDGES)
    assert distances.state_dict() == {}
