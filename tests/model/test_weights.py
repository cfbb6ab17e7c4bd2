import numpy as np
import pytest
import torch

from castpoi.model.weights import fill


def test_arrays_become_the_weights_of_their_names() -> None:
    weights = {"place": torch.zeros(2), "bias": torch.zeros(1)}
    fill(weights, {"bias": np.array([3.0]), "place": np.array([1.0, 2.0])})
    assert weights["place"].tolist() == [1.0, 2.0]
    assert weights["bias"].tolist() == [3.0]


def test_arrays_that_are_no_weights_must_be_named() -> None:
    arrays = {"place": np.ones(2), "lat": np.ones(1)}
    fill({"place": torch.zeros(2)}, arrays, besides=["lat"])
    with pytest.raises(ValueError, match="the model has no weight lat"):
        fill({"place": torch.zeros(2)}, arrays)


def test_a_weight_without_an_array_is_told_and_nothing_is_copied() -> None:
    weights = {"place": torch.zeros(2), "bias": torch.zeros(1)}
    with pytest.raises(ValueError, match="it lacks bias; is it of an earlier castpoi"):
        fill(weights, {"place": np.ones(2)})
    assert weights["place"].tolist() == [0.0, 0.0]


def test_an_array_of_another_shape_is_told() -> None:
    with pytest.raises(ValueError, match=r"weight place has shape \(3,\), not \(2,\)"):
        fill({"place": torch.zeros(2)}, {"place": np.ones(3)})
