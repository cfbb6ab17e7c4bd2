from typing import Any

import numpy as np
import pytest
import torch

from castpoi.baselines.sasrec import SasRecConfig
from castpoi.baselines.sequence import (
    MODELS,
    SequenceModel,
    SequenceRanker,
    last_of,
    last_rows,
    model_class,
    new_model,
    real_slots,
    zero_where_empty,
)
from castpoi.core.errors import BadInput
from tests.cities import histories_of
from tests.messages import refused

TRANSFORMER = {"layers": 2, "heads": 2, "feed_forward_width": 256}
RECBOLE: dict[str, dict[str, Any]] = {
    "sasrec": {**TRANSFORMER, "dropout": 0.5, "attention_dropout": 0.5},
    "bert4rec": {
        **(TRANSFORMER | {"dropout": 0.2, "attention_dropout": 0.2}),
        **{"mask_share": 0.2, "last_only_share": 0.5},
    },
    "caser": {
        **{"horizontal_filters": 8, "vertical_filters": 4},
        **{"dropout": 0.4, "penalty_weight": 1e-4, "padding_class": True},
    },
    "narm": {"memory_width": 128, "layers": 1, "place_dropout": 0.25, "state_dropout": 0.5},
    "srgnn": {"steps": 1, "dropout": 0.0},
    "stamp": {"place_dropout": 0.0, "padding_class": True, "reads_padding": True},
    "core": {
        **(TRANSFORMER | {"dropout": 0.5, "attention_dropout": 0.5}),
        **{"history_dropout": 0.2, "candidate_dropout": 0.2, "temperature": 0.07},
    },
}
"""The defaults of RecBole 1.2.1, in our words."""
OURS: dict[str, dict[str, Any]] = {
    "bert4rec": {"window_step": 5, "forgets_first_visit": False},
}
"""Where the preset leaves them (docs/baselines.md), beside the class of padding."""


def small_ranker() -> SequenceRanker:
    config = SasRecConfig(width=4, heads=2, layers=1, feed_forward_width=8, window=3)
    model = new_model("sasrec", config=config, places=5, seed=1)
    return SequenceRanker(model, method="sasrec", training={"epochs": 1})


def test_the_last_visit_gives_the_state_and_an_empty_history_gives_zero() -> None:
    states = torch.arange(12.0).view(2, 3, 2)
    lengths = torch.tensor([2, 0])
    assert last_of(states, lengths).tolist() == [[2.0, 3.0], [6.0, 7.0]]
    no_number = torch.full((2, 2), torch.nan)
    assert zero_where_empty(no_number, torch.tensor([0, 0])).tolist() == [[0.0, 0.0]] * 2
    assert real_slots(torch.zeros(2, 3), lengths).tolist() == [[True, True, False], [False] * 3]


def test_windows_hold_the_last_visits_oldest_first_and_padding_after_them() -> None:
    rows, lengths = last_rows(histories_of([0, 1, 2, 3], [4], []), window=3)
    assert rows.tolist() == [[2, 3, 4], [5, 0, 0], [0, 0, 0]]
    assert lengths.tolist() == [3, 1, 0]


@pytest.mark.parametrize("name", MODELS)
def test_presets_are_of_the_paper_and_tuned_to_the_width_of_castpoi(name: str) -> None:
    kind = model_class(name)
    assert issubclass(kind, SequenceModel)
    paper, tuned = (kind.config_class.preset(each) for each in ("paper", "tuned"))
    assert (paper.width, paper.window) == (64, 50)
    assert (tuned.width, tuned.window) == (128, 50)  # as wide as CaST-POI, the same windows
    assert kind.config_class.from_dict(paper.to_dict()) == paper


def test_a_baseline_has_no_preset_but_paper_and_tuned() -> None:
    with refused(BadInput):
        SasRecConfig.preset("fast")


@pytest.mark.parametrize("name", RECBOLE)
def test_the_paper_preset_has_recboles_defaults_with_documented_differences(name: str) -> None:
    paper = model_class(name).config_class.preset("paper").to_dict()
    common = {"width": 64, "window": 50, "padding_class": False}
    assert paper == common | RECBOLE[name] | OURS.get(name, {})


def dropouts_of(name: str) -> list[str]:
    shape = model_class(name).config_class.preset("paper").to_dict()
    return [field for field in shape if field.endswith("dropout")]


@pytest.mark.parametrize(
    ("name", "acting"), [(name, acting) for name in MODELS for acting in (None, *dropouts_of(name))]
)
def test_every_dropout_acts_in_training_and_in_training_only(name: str, acting: str | None) -> None:
    rates = dict.fromkeys(dropouts_of(name), 0.0) | ({acting: 0.5} if acting else {})
    config = model_class(name).config_class.from_dict({"width": 8, "window": 4, **rates})
    model = new_model(name, config=config, places=6, seed=3)
    rows, lengths = torch.tensor([[1, 2, 3, 4], [5, 1, 0, 0]]), torch.tensor([4, 2])
    if model.reads_times:
        rows = torch.stack([rows, 60 * rows], dim=-1)  # [B, T, 2]

    def read() -> tuple[torch.Tensor, torch.Tensor]:
        return model.state(rows, lengths), model.candidate_vectors()

    def is_same() -> bool:
        return all(torch.equal(one, other) for one, other in zip(read(), read(), strict=True))

    torch.manual_seed(0)
    assert model.training
    assert is_same() == (acting is None)
    model.eval()
    assert is_same()


@pytest.mark.parametrize("name", MODELS)
def test_the_score_of_a_place_is_that_of_its_own_row(name: str) -> None:
    config = model_class(name).config_class.from_dict({"width": 8, "window": 4})
    ranker = SequenceRanker(new_model(name, config=config, places=6, seed=3), method=name)
    state = ranker.encode(histories_of([4, 0, 2], [1]))
    scores = ranker.score(state)
    for place in range(6):
        own = state @ ranker.model.candidate_vectors().detach()[place + 1]
        np.testing.assert_allclose(scores[:, place], own.numpy(), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_one_seed_gives_one_model_that_starts_without_padding(name: str) -> None:
    config = model_class(name).config_class.from_dict({"width": 8, "window": 4})
    one, same, other = (new_model(name, config=config, places=6, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.place.weight, same.place.weight)
    assert not torch.equal(one.place.weight, other.place.weight)
    assert not one.place.weight[0].any()
    assert one.place_count == 6


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 0},
        {"window": True},
        {"width": 10**9},
        {"layers": 10**7},
        {"dropout": 1.0},
        {"dropout": "half"},
        {"padding_class": 1},
        {"width": 10, "heads": 4},
        {"depth": 3},
    ],
)
def test_a_setting_of_a_model_out_of_its_range_is_refused(settings: dict[str, Any]) -> None:
    with refused(BadInput):
        SasRecConfig.from_dict(settings)


def test_a_ranker_refuses_places_of_another_city() -> None:
    ranker = small_ranker()
    with refused(BadInput):
        ranker.encode(histories_of([1, 5]))
    with refused(BadInput):
        ranker.score(ranker.encode(histories_of([1])), np.array([0, -1]))


def test_a_ranker_is_not_restored_from_weights_that_do_not_fit() -> None:
    ranker = small_ranker()
    arrays = ranker.arrays
    with pytest.raises(ValueError, match="the model has no weight magic"):
        SequenceRanker.restore(ranker.config, {**arrays, "magic": np.zeros(1)})
    with pytest.raises(ValueError, match=r"it lacks slot.weight; is it of an earlier castpoi"):
        SequenceRanker.restore(
            ranker.config, {name: each for name, each in arrays.items() if name != "slot.weight"}
        )
    with pytest.raises(ValueError, match=r"weight slot.weight has shape \(2, 4\), not \(3, 4\)"):
        SequenceRanker.restore(ranker.config, {**arrays, "slot.weight": np.zeros((2, 4))})


def test_a_model_without_states_says_so() -> None:
    class Lazy(SequenceModel):
        pass

    lazy = Lazy(config=SasRecConfig(), places=3)
    with pytest.raises(NotImplementedError, match="Lazy has no state but the last"):
        lazy.states(torch.ones(1, 1, dtype=torch.long), torch.ones(1, dtype=torch.long))
