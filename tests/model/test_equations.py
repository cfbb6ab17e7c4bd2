"""Every equation of the paper against its slow plain-Python reading."""

import numpy as np
import pytest
import torch
from torch import Tensor

from castpoi.model.castpoi import CastPoi
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import ExactScorer
from castpoi.model.terms.base import Encoded
from tests.model.reference import Reference
from tests.model.small import ALL_PLACES, PLACES, batch_of, small_config, trained_model, walk

SWITCHES = ("backbone", "candidate_conditioning", "temporal_bias", "spatial_bias", "revisit_gate")
PRESETS = {preset: small_config(preset) for preset in ("paper", "fast")}
VARIANTS = PRESETS | {
    f"{preset} without {switch}": small_config(preset, **{switch: False})
    for preset in PRESETS
    for switch in SWITCHES
}
OURS = {
    "distance": small_config(distance_gate=True),
    "paper and distance": small_config("paper", distance_gate=True),
    "distance without reader": small_config(distance_gate=True, candidate_conditioning=False),
    "next": small_config("next"),
    "habits": small_config(revisit_features="habits", deep_revisits=True),
    "paper with habits": small_config("paper", revisit_features="habits", deep_revisits=True),
    "next with known time": small_config("next", known_time=True),
    "paper with known time": small_config("paper", known_time=True),
    "reader and habits with known time": small_config(revisit_features="habits", known_time=True),
}
VARIANTS |= OURS
IN_BOTH_PRESETS = pytest.mark.parametrize("config", PRESETS.values(), ids=PRESETS.keys())
IN_EVERY_VARIANT = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
HISTORIES = [walk(14, seed=1), walk(1, seed=2), walk(3, seed=3)]
TOLERANCE = 1e-5


def encode(model: CastPoi) -> Encoded:
    with torch.inference_mode():
        return model.encode(batch_of(model.config, *HISTORIES))


def assert_close(found: Tensor, expected: object) -> None:
    np.testing.assert_allclose(found.numpy(), np.array(expected), rtol=1e-5, atol=TOLERANCE)


@IN_BOTH_PRESETS
def test_a_token_is_the_place_the_local_time_and_the_move_that_led_there(
    config: ModelConfig,
) -> None:
    model = trained_model(config)
    windows = batch_of(config, *HISTORIES).windows
    with torch.inference_mode():
        tokens = model.tokens(model.table().of(windows.place), windows)
    reference = Reference(model)
    for history, visits in enumerate(HISTORIES):
        for back in range(1, min(len(visits), config.visits_read) + 1):
            expected = reference.token(visits, len(visits) - back)
            assert_close(tokens[history, -back], expected)


@IN_BOTH_PRESETS
def test_visits_attend_to_earlier_visits_as_far_as_the_window(config: ModelConfig) -> None:
    model = trained_model(config)
    encoded, reference = encode(model), Reference(model)
    for history, visits in enumerate(HISTORIES):
        expected = reference.states(visits)[-config.window :]
        assert_close(encoded.visits[history, -len(expected) :], expected)
        assert_close(encoded.state[history], expected[-1])


@IN_BOTH_PRESETS
def test_the_attention_of_the_reader_is_that_of_the_paper(config: ModelConfig) -> None:
    model = trained_model(config)
    assert model.reader is not None
    with torch.inference_mode():
        _, attention = model.reader(encode(model), ALL_PLACES)  # [N, B, H, C, T]
    reference = Reference(model)
    for history, visits in enumerate(HISTORIES):
        for candidate in range(PLACES):
            _, expected = reference.read(visits, candidate)
            read = min(len(visits), config.window)
            assert_close(attention[:, history, :, candidate, -read:], expected)


@IN_EVERY_VARIANT
def test_each_term_is_that_of_its_equation(config: ModelConfig) -> None:
    model = trained_model(config)
    with torch.inference_mode():
        found = model.term_values(encode(model), ALL_PLACES)
    reference = Reference(model)
    assert tuple(found) == config.terms
    for history, visits in enumerate(HISTORIES):
        for candidate in range(PLACES):
            expected = reference.terms(visits, candidate)
            assert expected.keys() == found.keys()
            for name, term in expected.items():
                assert_close(found[name][history, candidate], term)


@IN_EVERY_VARIANT
def test_the_fast_scorer_gives_the_score_of_the_equations(config: ModelConfig) -> None:
    model = trained_model(config)
    scores = ExactScorer(model, chunk=3).score(encode(model))
    reference = Reference(model)
    for history, visits in enumerate(HISTORIES):
        expected = [sum(reference.terms(visits, place).values()) for place in range(PLACES)]
        assert_close(scores[history], expected)
