import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from castpoi.core.arrays import pad_left
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import ExactScorer
from castpoi.model.windows import Windows, windows_of
from tests.model.small import (
    ALL_PLACES,
    LAT,
    LON,
    PLACES,
    Visit,
    batch_of,
    builder,
    histories,
    small_config,
    trained_model,
    walk,
)

BOTH = pytest.mark.parametrize("preset", ["paper", "fast"])
NYC_PLACES = 4980
FIRST_WEIGHTS = {"paper": "9aa4d597eea98e25", "fast": "265df8c1924e35ff"}
OUR_PARTS: dict[str, Any] = {
    "distance_gate": True,
    "revisit_features": "habits",
    "deep_revisits": True,
    "null_attention": True,
}


def score(model: CastPoi, *visits: list[Visit], candidates: Tensor = ALL_PLACES) -> Tensor:
    with torch.inference_mode():
        scores: Tensor = model(batch_of(model.config, *visits), candidates)
    return scores


def terms(model: CastPoi, *visits: list[Visit]) -> dict[str, Tensor]:
    with torch.inference_mode():
        return model.term_values(model.encode(batch_of(model.config, *visits)), ALL_PLACES)


def attention(model: CastPoi, *visits: list[Visit], candidates: Tensor = ALL_PLACES) -> Tensor:
    assert model.reader is not None
    with torch.inference_mode():
        found: Tensor = model.reader(model.encode(batch_of(model.config, *visits)), candidates)[1]
    return found


def sizes(model: CastPoi) -> dict[str, int]:
    return {name: parameter.numel() for name, parameter in model.named_parameters()}


def of_the_score(model: CastPoi) -> dict[str, torch.nn.Parameter]:
    """The weights on which the score depends: all but those of the forecast."""
    named = model.named_parameters()
    return {name: weight for name, weight in named if not name.startswith("forecast.")}


def window_of(config: ModelConfig, visits: list[Visit], most: int) -> Windows:
    """The last `most` visits as one window, whatever the model would read itself."""
    laid = histories(visits)
    visits_and_real = pad_left(laid.bounds[:-1], laid.bounds[1:], most=most)
    return windows_of(builder(config).features(laid), *visits_and_real)


def test_the_paper_preset_has_the_published_number_of_parameters_on_nyc() -> None:
    lat, lon = np.full(NYC_PLACES, 40.7), np.full(NYC_PLACES, -74.0)
    model = new_model(config=ModelConfig.preset("paper"), lat=lat, lon=lon, seed=0)
    assert round(sum(sizes(model).values()) / 1e6, 2) == 1.13


@BOTH
def test_a_new_model_starts_from_a_reader_that_contributes_nothing(preset: str) -> None:
    model = new_model(config=small_config(preset), lat=LAT, lon=LON, seed=0).eval()
    assert not terms(model, walk(6))["reader"].any()


@BOTH
def test_the_first_step_trains_the_head_with_fast_and_gamma_with_paper(
    preset: str,
) -> None:
    model = new_model(config=small_config(preset), lat=LAT, lon=LON, seed=0).eval()
    model(batch_of(model.config, walk(6)), ALL_PLACES).square().sum().backward()
    assert model.reader is not None
    last, gamma = model.reader.head.last.weight.grad, model.reader.gamma.grad
    assert last is not None
    assert gamma is not None
    assert bool(last.any()) == (preset == "fast")
    assert bool(gamma.any()) == (preset == "paper")


def test_the_same_seed_gives_the_same_weights_and_leaves_other_randomness_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, other = (
        new_model(config=small_config(), lat=LAT, lon=LON, seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first.place.weight, second.place.weight)
    assert not torch.equal(first.place.weight, other.place.weight)


@BOTH
def test_the_terms_sum_to_the_score(preset: str) -> None:
    model = trained_model(small_config(preset, **OUR_PARTS))
    visits = [walk(12, seed=4), walk(2, seed=5), []]
    found = terms(model, *visits)
    total = torch.stack([*found.values()]).sum(dim=0)
    assert found["distance"].abs().max() > 0.01
    # that of the scorer, which computes them in another way
    encoded = model.encode(batch_of(model.config, *visits))
    torch.testing.assert_close(ExactScorer(model).score(encoded), total, rtol=0, atol=1e-5)


def test_with_null_attention_the_attention_to_visits_is_higher_the_nearer_they_all_are() -> None:
    model = trained_model(small_config("fast", null_attention=True))
    assert model.reader is not None
    assert model.reader.spatial_bias is not None
    given = []
    for everywhere in (-4.0, 4.0):  # all visits far, all visits near
        model.reader.spatial_bias.weight.data.fill_(everywhere)
        given.append(attention(model, walk(12, seed=4)).sum(dim=-1))
    assert (given[0] < given[1]).all()
    assert given[1].max() < 1


@BOTH
def test_an_empty_history_has_no_attention(preset: str) -> None:
    found = attention(trained_model(small_config(preset)), [], walk(3))
    assert not found[:, 0].any()


@BOTH
def test_an_empty_history_has_no_base_and_no_revisit_term(preset: str) -> None:
    model = trained_model(small_config(preset))
    alone = terms(model, [])
    assert not alone["base"].any()
    assert not alone["revisit"].any()
    scores = score(model, [])
    assert torch.isfinite(scores).all()
    torch.testing.assert_close(score(model, [], walk(9))[:1], scores, rtol=0, atol=1e-5)


@BOTH
def test_padding_changes_nothing(preset: str) -> None:
    model = trained_model(small_config(preset, **OUR_PARTS))
    many = [walk(count, seed=count) for count in (1, 2, 5, 30)]
    together = score(model, *many)
    for each, visits in enumerate(many):
        torch.testing.assert_close(together[each], score(model, visits)[0], rtol=0, atol=1e-5)


@given(order=st.permutations(range(PLACES)))
@settings(max_examples=20, deadline=None)
def test_permuting_candidates_permutes_scores(order: list[int]) -> None:
    model = trained_model(small_config())
    permuted = score(model, walk(8), candidates=ALL_PLACES[order])
    torch.testing.assert_close(permuted, score(model, walk(8))[:, order], rtol=0, atol=1e-5)


def test_the_score_of_a_candidate_does_not_depend_on_the_others() -> None:
    model = trained_model(small_config())
    own = torch.tensor([[2, 2], [6, 0]])
    expected = score(model, walk(8), walk(3)).gather(1, own)
    found = score(model, walk(8), walk(3), candidates=own)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@BOTH
def test_a_later_visit_never_changes_an_earlier_state(preset: str) -> None:
    config = small_config(preset)
    model = trained_model(config)
    visits = walk(config.window, seed=6)
    changed = [*visits[:-1], ((visits[-1][0] + 1) % PLACES, visits[-1][1] + 7_000_000, 60)]
    with torch.inference_mode():
        before, after = (
            model.states(window_of(config, each, config.window)) for each in (visits, changed)
        )
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])


def test_a_state_is_the_same_in_every_window_that_begins_early_enough() -> None:
    config = small_config("fast")  # 2 layers, each 4 visits wide: a state reaches back 7 visits
    model = trained_model(config)
    visits = walk(25, seed=2)
    with torch.inference_mode():
        all_at_once = model.states(window_of(config, visits, 25))
        for end in range(7, 26):
            enough = model.states(window_of(config, visits[:end], 7))[0, -1]
            torch.testing.assert_close(all_at_once[0, end - 1], enough, rtol=0, atol=1e-5)
        too_few = model.states(window_of(config, visits, 6))[0, -1]
    assert (all_at_once[0, -1] - too_few).abs().max() > 1e-3


def test_prefixes_encoded_at_once_score_as_they_would_alone() -> None:
    config = small_config("fast")
    model = trained_model(config)
    visits = walk(25, seed=9)
    windows = window_of(config, visits, 25)
    with torch.inference_mode():
        states = model.states(windows)
        for end in (3, 4, 17, 25):
            read = slice(max(0, end - config.window), end)
            encoded = model.encode(batch_of(config, visits[:end]))
            shared = replace(
                encoded,
                state=states[:, end - 1],
                visits=states[:, read],
                age_us=windows.age_us[:, read] - windows.age_us[:, end - 1 : end],
            )
            torch.testing.assert_close(
                ExactScorer(model).score(shared),
                score(model, visits[:end]),
                rtol=0,
                atol=1e-5,
            )


def test_visits_before_those_read_count_for_the_revisit_gate_only() -> None:
    config = small_config("fast")
    model = trained_model(config)
    visits = walk(20, seed=10)
    first_read = len(visits) - config.visits_read
    # the visit before the first one read still decides the move that led to it
    changed = [(3, at_us, offset) for _, at_us, offset in visits[: first_read - 1]]
    before, after = terms(model, visits), terms(model, changed + visits[first_read - 1 :])
    assert torch.equal(before["base"], after["base"])
    assert torch.equal(before["reader"], after["reader"])
    assert not torch.equal(before["revisit"], after["revisit"])


@BOTH
def test_gradients_reach_every_parameter(preset: str) -> None:
    # few buckets, so that every one of them has a place
    config = small_config(preset, **OUR_PARTS)
    model = trained_model(config)
    visits = [walk(25, seed=seed) for seed in range(12)]
    model(batch_of(config, *visits), ALL_PLACES).square().sum().backward()
    for name, parameter in of_the_score(model).items():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
    assert model.place.weight.grad is not None
    assert not model.place.weight.grad[0].any()  # padding stays zero


@BOTH
def test_gradients_are_finite_where_a_history_is_empty(preset: str) -> None:
    model = trained_model(small_config(preset, **OUR_PARTS))
    model(batch_of(model.config, [], walk(2)), ALL_PLACES).square().sum().backward()
    for name, parameter in of_the_score(model).items():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


@BOTH
@pytest.mark.parametrize(
    ("switch", "prefix"),
    [
        ("backbone", "backbone."),
        ("candidate_conditioning", ("reader.", "forecast.")),
        ("temporal_bias", "reader.temporal_bias."),
        ("spatial_bias", "reader.spatial_bias."),
        ("revisit_gate", "cheap_terms.revisit."),
        ("distance_gate", "cheap_terms.distance."),
        ("null_attention", tuple(f"reader.layers.blocks.{n}.attention.null" for n in range(2))),
    ],
)
def test_an_ablation_removes_the_parameters_of_its_part_and_no_others(
    preset: str, switch: str, prefix: str | tuple[str, ...]
) -> None:
    whole = sizes(trained_model(small_config(preset, **OUR_PARTS)))
    without = sizes(trained_model(small_config(preset, **OUR_PARTS | {switch: False})))
    assert without == {name: size for name, size in whole.items() if not name.startswith(prefix)}
    assert without != whole


@BOTH
def test_our_own_parts_do_not_change_the_first_weights_of_the_papers_parts(
    preset: str,
) -> None:
    """SHA-256 over all weights of a new model, as they were before our parts."""
    lat, lon = np.linspace(40, 41, 50), np.linspace(-74, -73, 50)
    config = replace(ModelConfig.preset(preset), null_attention=False)
    plain = of_the_score(new_model(config=config, lat=lat, lon=lon, seed=3))
    digest = hashlib.sha256()
    for weight in plain.values():
        digest.update(weight.detach().numpy().tobytes())
    assert digest.hexdigest()[:16] == FIRST_WEIGHTS[preset]
    ours = replace(config, **OUR_PARTS)
    richer = dict(new_model(config=ours, lat=lat, lon=lon, seed=3).named_parameters())
    assert len(richer) > len(plain)
    kept = {name: weight for name, weight in plain.items() if "cheap_terms.revisit" not in name}
    assert all(torch.equal(richer[name], weight) for name, weight in kept.items())
