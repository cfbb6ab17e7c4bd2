import pytest
import torch

from castpoi.geo.distance import SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS
from castpoi.model.terms import reader
from castpoi.model.terms.reader import SpatialBias, TemporalBias

HOUR_US = 3_600_000_000


def test_both_biases_start_at_zero_with_one_scalar_a_bucket() -> None:
    assert TemporalBias(edges_hours=TEMPORAL_BIAS_EDGES_HOURS).weight.tolist() == [0.0] * 6
    assert SpatialBias(edges_km=SPATIAL_BIAS_EDGES_KM).weight.tolist() == [0.0] * 6


def test_the_bias_of_distance_may_start_by_preferring_near_visits() -> None:
    start = SpatialBias(edges_km=SPATIAL_BIAS_EDGES_KM, nearest=1.0).weight
    assert start.tolist() == pytest.approx([1.0, 0.6, 0.2, -0.2, -0.6, -1.0])


@pytest.mark.parametrize("has_float64", [True, False])
def test_the_gradient_of_a_bias_is_summed_over_the_pairs_of_its_bucket(
    has_float64: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "has_float64", lambda device: has_float64)
    bias = SpatialBias(edges_km=(1.0, 2.0))
    buckets = torch.tensor([[0, 1, 1], [2, 1, 0]], dtype=torch.uint8)
    (bias(buckets) * torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
    assert bias.weight.grad is not None
    assert bias.weight.grad.tolist() == [7.0, 10.0, 4.0]


@pytest.mark.parametrize(
    ("age_us", "bucket"),
    [
        (0, 0),
        (HOUR_US - 1, 0),
        (HOUR_US, 1),
        (6 * HOUR_US - 1, 1),
        (6 * HOUR_US, 2),
        (24 * HOUR_US, 3),
        (7 * 24 * HOUR_US - 1, 3),
        (7 * 24 * HOUR_US, 4),
        (30 * 24 * HOUR_US - 1, 4),
        (30 * 24 * HOUR_US, 5),
        (10 * 365 * 24 * HOUR_US, 5),
    ],
)
def test_an_age_at_an_edge_belongs_to_the_bucket_above(age_us: int, bucket: int) -> None:
    bias = TemporalBias(edges_hours=TEMPORAL_BIAS_EDGES_HOURS)
    with torch.no_grad():
        bias.weight.copy_(torch.arange(6))
    assert bias(torch.tensor([age_us])).tolist() == [bucket]


def test_a_spatial_bucket_gives_its_scalar() -> None:
    bias = SpatialBias(edges_km=SPATIAL_BIAS_EDGES_KM)
    with torch.no_grad():
        bias.weight.copy_(torch.arange(6) / 2)
    assert bias(torch.tensor([[0, 5]], dtype=torch.uint8)).tolist() == [[0.0, 2.5]]
