import pytest
import torch

from castpoi.geo.buckets import SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS
from castpoi.model.biases import SpatialBias, TemporalBias

HOUR_US = 3_600_000_000


def test_both_biases_start_at_zero_with_one_scalar_a_bucket() -> None:
    assert TemporalBias(edges_hours=TEMPORAL_BIAS_EDGES_HOURS).weight.tolist() == [0.0] * 6
    assert SpatialBias(edges_km=SPATIAL_BIAS_EDGES_KM).weight.tolist() == [0.0] * 6


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
