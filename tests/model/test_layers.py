"""Layers: dropout, the devices with float64, and filling weights from arrays."""

import numpy as np
import pytest
import torch

from castpoi.model.layers import Dropout, fill, has_float64

RATE = 51 / 256


def test_dropout_drops_a_fifth_of_the_values_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    kept = Dropout(0.2)(torch.ones(1000, 200))
    assert float((kept == 0).float().mean()) == pytest.approx(RATE, abs=0.003)
    assert float(kept.mean()) == pytest.approx(1, abs=0.003)


def test_each_of_eight_values_that_share_a_draw_is_dropped_equally_often() -> None:
    torch.manual_seed(0)
    dropped = Dropout(0.2)(torch.ones(20_000, 8)) == 0
    assert dropped.float().mean(dim=0).tolist() == pytest.approx([RATE] * 8, abs=0.015)


def test_values_that_share_a_draw_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5)(torch.ones(20_000, 8)) == 0).float()
    together = torch.corrcoef(dropped.mT) - torch.eye(8)
    assert float(together.abs().max()) < 0.03


def test_one_seed_drops_the_same_values() -> None:
    torch.manual_seed(3)
    first = Dropout(0.3)(torch.ones(5, 7))
    torch.manual_seed(3)
    assert torch.equal(first, Dropout(0.3)(torch.ones(5, 7)))


def test_nothing_is_dropped_after_training_or_at_rate_zero() -> None:
    values = torch.randn(4, 9)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)


@pytest.mark.parametrize(("name", "has"), [("cpu", True), ("cuda", True), ("mps", False)])
def test_all_devices_but_apples_have_float64(name: str, has: bool) -> None:
    assert has_float64(torch.device(name)) == has


def test_arrays_fill_the_weights_of_their_names() -> None:
    weights = {"place": torch.zeros(2), "bias": torch.zeros(1)}
    fill(weights, {"bias": np.array([3.0]), "place": np.array([1.0, 2.0])})
    assert weights["place"].tolist() == [1.0, 2.0]
    assert weights["bias"].tolist() == [3.0]


def test_arrays_that_are_no_weights_must_be_named() -> None:
    arrays = {"place": np.ones(2), "lat": np.ones(1)}
    fill({"place": torch.zeros(2)}, arrays, besides=["lat"])
    with pytest.raises(ValueError, match="the model has no weight lat"):
        fill({"place": torch.zeros(2)}, arrays)


def test_a_weight_without_an_array_is_an_error_and_nothing_is_copied() -> None:
    weights = {"place": torch.zeros(2), "bias": torch.zeros(1)}
    with pytest.raises(ValueError, match="it lacks bias; is it of an earlier castpoi"):
        fill(weights, {"place": np.ones(2)})
    assert weights["place"].tolist() == [0.0, 0.0]


def test_an_array_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"weight place has shape \(3,\), not \(2,\)"):
        fill({"place": torch.zeros(2)}, {"place": np.ones(3)})
