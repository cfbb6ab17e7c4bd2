"""The forecast of the reader: its value, and that the score does not depend on it."""

import pytest
import torch
from torch import Tensor

from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.ranker import ExactScorer
from castpoi.model.terms.base import Encoded
from tests.model.small import (
    LAT,
    LON,
    PLACES,
    batch_of,
    small_config,
    trained_model,
    walk,
)

HISTORIES = [walk(6, seed=1), walk(11, seed=2), []]


def encode(model: CastPoi) -> Encoded:
    with torch.inference_mode():
        return model.encode(batch_of(model.config, *HISTORIES))


@torch.inference_mode()
def forecast_of(model: CastPoi, candidates: Tensor | None = None) -> Tensor:
    encoded = encode(model)
    assert model.forecast is not None
    found: Tensor = model.forecast(encoded, encoded.is_known(), candidates)
    return found


@torch.inference_mode()
def test_a_forecast_is_projection_popularity_distance_and_whether_a_place_is_known() -> None:
    model = trained_model(small_config())
    encoded, found = encode(model), forecast_of(model)
    forecast = model.forecast
    assert forecast is not None
    for history, visits in enumerate(HISTORIES):
        state = encoded.state[history]
        projected = forecast.project.weight @ state + forecast.project.bias
        known = float(forecast.known(state))
        weights = forecast.distance.weights(encoded)[history]
        for place in range(PLACES):
            expected = projected @ model.place.weight[place + 1] + forecast.popularity[place]
            expected = expected + known * (place in {visit[0] for visit in visits})
            for anchor, at in enumerate(encoded.anchors[history]):
                bucket = forecast.distance.distances(at[None, None], torch.tensor([[place]]))
                expected = expected + weights[anchor, int(bucket)]
            assert float(found[history, place]) == pytest.approx(float(expected), abs=1e-5)


def test_the_forecast_for_candidates_is_that_for_every_place() -> None:
    model = trained_model(small_config())
    candidates = torch.tensor([[6, 0], [1, 1], [3, 2]])
    torch.testing.assert_close(
        forecast_of(model, candidates), forecast_of(model).gather(1, candidates)
    )


def test_a_new_forecast_is_close_to_zero() -> None:
    model = new_model(config=small_config(), lat=LAT, lon=LON, seed=0).eval()
    assert float(forecast_of(model).abs().max()) < 0.1


@pytest.mark.parametrize("changes", [{"reader_forecast": False}, {"candidate_conditioning": False}])
def test_without_a_forecast_or_a_reader_the_cheap_score_is_used(changes: dict[str, bool]) -> None:
    model = trained_model(small_config(**changes))
    assert model.forecast is None
    encoded = encode(model)
    exact = ExactScorer(model)
    assert torch.equal(exact.forecast(encoded), exact.cheap(encoded))


def test_the_score_does_not_depend_on_the_forecast() -> None:
    model = trained_model(small_config())
    before = ExactScorer(model).score(encode(model))
    assert model.forecast is not None
    with torch.no_grad():
        for weight in model.forecast.parameters():
            weight.add_(1.0)
    assert torch.equal(ExactScorer(model).score(encode(model)), before)


def test_presets_start_from_the_same_weights_with_and_without_a_forecast() -> None:
    models = [
        new_model(config=small_config(reader_forecast=has), lat=LAT, lon=LON, seed=3)
        for has in (False, True)
    ]
    plain, with_forecast = (dict(model.named_parameters()) for model in models)
    assert plain.keys() < with_forecast.keys()
    assert all(torch.equal(weight, with_forecast[name]) for name, weight in plain.items())
