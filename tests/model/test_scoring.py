import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from castpoi.model.castpoi import CastPoi
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import ExactScorer
from castpoi.model.terms.base import Encoded
from tests.model.small import ALL_PLACES, PLACES, batch_of, small_config, trained_model, walk

HISTORIES = [walk(14, seed=1), [], walk(1, seed=2), walk(3, seed=3)]
VARIANTS = {
    "paper": small_config("paper"),
    "fast": small_config("fast"),
    "no reader": small_config(candidate_conditioning=False),
    "no biases": small_config(temporal_bias=False, spatial_bias=False),
    "one layer": small_config(reader_layers=1),
    "distance gate": small_config(distance_gate=True),
    "habits": small_config(revisit_features="habits", deep_revisits=True),
}
IN_EVERY_VARIANT = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())


def encode(model: CastPoi) -> Encoded:
    with torch.inference_mode():
        return model.encode(batch_of(model.config, *HISTORIES))


@torch.inference_mode()
def total(model: CastPoi, encoded: Encoded) -> Tensor:
    return torch.stack([*model.term_values(encoded, ALL_PLACES).values()]).sum(dim=0)


@IN_EVERY_VARIANT
def test_exact_scores_are_the_sum_of_the_terms(config: ModelConfig) -> None:
    model = trained_model(config)
    encoded = encode(model)
    torch.testing.assert_close(
        ExactScorer(model).score(encoded), total(model, encoded), rtol=0, atol=1e-5
    )


@given(chunk=st.integers(1, PLACES + 2))
@settings(max_examples=9, deadline=None)
def test_the_size_of_a_chunk_changes_no_score(chunk: int) -> None:
    model = trained_model(small_config())
    encoded = encode(model)
    whole = ExactScorer(model, chunk=PLACES).score(encoded)
    chunked = ExactScorer(model, chunk=chunk).score(encoded)
    torch.testing.assert_close(chunked, whole, rtol=0, atol=1e-5)


def test_scores_stay_exact_where_attention_is_extreme() -> None:
    model = trained_model(small_config())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.startswith("reader") and "query.weight" in name:
                parameter.mul_(1000)
    encoded = encode(model)
    assert model.reader is not None
    with torch.inference_mode():
        assert model.reader(encoded, ALL_PLACES)[1].max() > 0.999
    scores = ExactScorer(model).score(encoded)
    torch.testing.assert_close(scores, total(model, encoded), rtol=0, atol=1e-4)


@IN_EVERY_VARIANT
def test_candidates_score_the_same_shared_or_each_historys_own(config: ModelConfig) -> None:
    model = trained_model(config)
    encoded = encode(model)
    scorer = ExactScorer(model)
    everywhere = scorer.score(encoded)
    shared = torch.tensor([4, 0, 4])
    own = torch.tensor([[0, 6], [1, 1], [5, 2], [3, 0]])
    torch.testing.assert_close(
        scorer.score(encoded, shared), everywhere[:, shared], rtol=0, atol=1e-5
    )
    torch.testing.assert_close(
        scorer.score(encoded, own), everywhere.gather(1, own), rtol=0, atol=1e-5
    )


@IN_EVERY_VARIANT
def test_the_cheap_terms_are_the_same_of_all_places_and_of_each_by_name(
    config: ModelConfig,
) -> None:
    model = trained_model(config)
    encoded, scorer = encode(model), ExactScorer(model)
    everywhere = scorer.cheap(encoded)
    own = ALL_PLACES.expand(len(encoded), -1)
    for named in (scorer.cheap(encoded, ALL_PLACES), scorer.cheap(encoded, own)):
        torch.testing.assert_close(everywhere, named, rtol=0, atol=1e-6)


def test_scoring_leaves_what_was_encoded_and_the_weights_as_they_were() -> None:
    model = trained_model(small_config())
    encoded = encode(model)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    scorer = ExactScorer(model, chunk=2)
    assert torch.equal(scorer.score(encoded), scorer.score(encoded))
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())


def test_places_outside_of_the_shortlist_are_below_it_in_the_order_of_the_forecast() -> None:
    model = trained_model(small_config())
    encoded, scorer = encode(model), ExactScorer(model)
    exact, forecast = scorer.score(encoded), scorer.forecast(encoded)
    found = scorer.shortlisted(encoded, 3)
    best = forecast.argsort(dim=1, descending=True)
    torch.testing.assert_close(found.gather(1, best[:, :3]), exact.gather(1, best[:, :3]))
    rest = found.gather(1, best[:, 3:])
    assert (rest.amax(dim=1) < found.gather(1, best[:, :3]).amin(dim=1)).all()
    assert (rest.diff(dim=1) <= 0).all()
