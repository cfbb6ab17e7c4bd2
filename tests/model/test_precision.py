"""Which devices have float64; none but the CPU is at hand, so the others are only named."""

import numpy as np
import pytest
import torch

from castpoi.model import biases, distance_buckets
from castpoi.model.biases import SpatialBias
from castpoi.model.distance_buckets import DistanceBuckets
from castpoi.model.precision import has_float64, widest_float


def test_all_devices_but_apples_have_float64() -> None:
    for name, has in (("cpu", True), ("cuda", True), ("mps", False)):
        device = torch.device(name)
        assert has_float64(device) == has
        assert widest_float(device) == (torch.float64 if has else torch.float32)


def test_the_slope_of_a_bias_needs_no_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(biases, "widest_float", lambda device: torch.float32)
    bias = SpatialBias(edges_km=(1.0, 2.0))
    bias(torch.tensor([[0, 1, 1], [2, 1, 0]], dtype=torch.uint8)).sum().backward()
    assert bias.weight.grad is not None
    assert bias.weight.grad.tolist() == [2.0, 3.0, 1.0]


def test_no_float64_follows_the_model_to_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with a table of all pairs nor without; distances are then computed on the CPU."""
    monkeypatch.setattr(distance_buckets, "has_float64", lambda device: False)
    lat, lon = np.array([0.0, 0.0, 0.01]), np.array([0.0, 60.0, 0.0])
    found = []
    for limit in (3, 2):
        distances = DistanceBuckets(lat=lat, lon=lon, edges_km=(1.0, 5.0), table_limit=limit)
        assert all(each.dtype != torch.float64 for each in distances.buffers())
        found.append(distances.to_every(torch.tensor([1, 3])).tolist())
    assert found[0] == found[1] == [[0, 2, 1], [1, 2, 0]]
