"""The fast objective: the paper's loss, for all positions of a window at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
import torch

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import ExactScorer
from castpoi.model.windows import BatchBuilder
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives import Objective
from castpoi.training.objectives.draws import draw_places
from castpoi.training.objectives.fast import FastBatch, FastObjective
from tests.training.small import full_objective, gradients, tiny_model, tiny_model_config

OUR_PARTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "without a reader": {"candidate_conditioning": False},
    "ours": {
        "distance_gate": True,
        "revisit_features": "habits",
        "deep_revisits": True,
        "known_time": True,
    },
}


def fast_objective(town: City, config: ModelConfig, seed: int = 0, **changes: Any) -> FastObjective:
    """With the paper's weights, which are those of `full_objective` too."""
    return FastObjective(
        town,
        model=config,
        config=replace(CastPoiTraining(margin_weight=0.5, explore_weight=1.5), **changes),
        seed=seed,
    )


@pytest.mark.parametrize("parts", OUR_PARTS.values(), ids=OUR_PARTS.keys())
def test_if_the_reader_reads_every_place_loss_and_gradient_are_those_of_the_full_objective(
    town: City, parts: dict[str, Any]
) -> None:
    """A window longer than any trajectory: every state has its whole history."""
    config = tiny_model_config(window=200, **parts)
    full = full_objective(town, config, batch=10_000)
    others = town.places.height - 1
    fast = fast_objective(
        town,
        config,
        windows_per_step=10_000,
        hard_candidates=others,
        drawn_candidates=1,
    )
    objectives: list[Objective[Any]] = [full, fast]
    models = [tiny_model(town, config, noise=0.3) for _ in objectives]
    losses = []
    for objective, model in zip(objectives, models, strict=True):
        (batch,) = objective.batches(0)
        loss = objective.loss(model, batch)
        loss.backward()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    expected, found = (gradients(model) for model in models)
    assert found.keys() == dict(models[0].named_parameters()).keys()
    assert expected.keys() == {name for name in found if not name.startswith("forecast.")}
    for name, grad in expected.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-3, atol=1e-6)


def test_few_candidates_estimate_the_loss_of_all(town: City) -> None:
    config = tiny_model_config(window=200)
    model = tiny_model(town, config, noise=0.3).eval()
    settings: dict[str, Any] = {"windows_per_step": 10_000}
    exact = fast_objective(
        town, config, hard_candidates=town.places.height - 1, drawn_candidates=1, **settings
    )
    rough = [
        fast_objective(town, config, seed, hard_candidates=12, drawn_candidates=12, **settings)
        for seed in range(5)
    ]
    whole = exact.loss(model, exact.batches(0)[0]).item()
    estimates = [objective.loss(model, objective.batches(0)[0]).item() for objective in rough]
    assert np.mean(estimates) == pytest.approx(whole, rel=0.02)


def test_every_window_is_learned_from_once_an_epoch_in_an_order_of_its_own(town: City) -> None:
    objective = fast_objective(town, tiny_model_config(window=4), windows_per_step=5)
    epochs = [
        np.concatenate([batch.windows for batch in objective.batches(epoch)]) for epoch in (0, 1)
    ]
    for order in epochs:
        assert sorted(order.tolist()) == list(range(len(objective.windows)))
    assert epochs[0].tolist() != epochs[1].tolist()
    again = fast_objective(town, tiny_model_config(window=4), windows_per_step=5)
    assert [batch.windows.tolist() for batch in again.batches(0)] == [
        batch.windows.tolist() for batch in objective.batches(0)
    ]


def test_shares_of_a_batch_are_the_batch(town: City) -> None:
    objective = fast_objective(town, tiny_model_config(window=4), windows_per_step=7)
    batch = objective.batches(0)[0]
    shares = [objective.share(batch, rank, 3) for rank in range(3)]
    together = np.concatenate([share.windows for share in shares])
    assert sorted(together.tolist()) == sorted(batch.windows.tolist())
    assert sum(objective.targets(share) for share in shares) == objective.targets(batch)


def test_each_process_draws_its_own_and_one_alone_draws_as_the_first_of_many(town: City) -> None:
    objective = fast_objective(town, tiny_model_config(window=4), windows_per_step=2)
    batches = objective.batches(0)
    assert len(batches) > 3
    shares = [objective.share(batch, rank, 5) for batch in batches for rank in range(5)]

    def first_draw(batch: FastBatch) -> float:
        return np.random.default_rng(np.random.SeedSequence(batch.seed)).random()

    assert len({first_draw(share) for share in shares}) == len(shares)
    assert first_draw(shares[0]) == first_draw(batches[0])


def test_processes_learn_from_their_shares_what_one_learns_from_the_batch(town: City) -> None:
    """Where the reader reads every place; what is drawn, each process draws for itself."""
    config = tiny_model_config(window=10)
    others = town.places.height - 1
    objective = fast_objective(
        town, config, windows_per_step=7, hard_candidates=others, drawn_candidates=1
    )
    batch = objective.batches(0)[0]
    whole, team = (tiny_model(town, config, noise=0.3) for _ in range(2))
    expected = objective.loss(whole, batch)
    expected.backward()
    found = 0.0
    for share in (objective.share(batch, rank, 3) for rank in range(3)):
        loss = objective.loss(team, share) * objective.targets(share) / objective.targets(batch)
        loss.backward()
        found += loss.item()
    assert found == pytest.approx(expected.item(), rel=1e-5)
    for name, grad in gradients(whole).items():
        if not name.startswith("forecast."):
            torch.testing.assert_close(gradients(team)[name], grad, rtol=1e-3, atol=1e-6)


def test_a_target_at_a_new_place_weighs_more(town: City) -> None:
    config = tiny_model_config(candidate_conditioning=False)
    model = tiny_model(town, config).eval()
    losses = []
    for weight in (1.0, 2.0, 3.0):
        objective = fast_objective(town, config, windows_per_step=10_000, explore_weight=weight)
        losses.append(objective.loss(model, objective.batches(0)[0]).item())
    assert losses[1] - losses[0] == pytest.approx(losses[2] - losses[1], rel=1e-3)
    assert losses[1] > losses[0]


def test_the_forecast_learns_the_term_of_the_reader(town: City) -> None:
    config = tiny_model_config(window=200)
    model = tiny_model(town, config, noise=0.3).eval()
    objective = fast_objective(town, config, windows_per_step=10_000, hard_candidates=4)
    (batch,) = objective.batches(0)
    assert model.forecast is not None
    optimizer = torch.optim.Adam(model.forecast.parameters(), lr=0.02)
    before = forecast_error(model, town)
    for _ in range(25):
        optimizer.zero_grad()
        objective.loss(model, batch).backward()
        optimizer.step()
    assert forecast_error(model, town) < 0.6 * before


def forecast_error(model: CastPoi, town: City) -> float:
    """How far the forecast is from the reader over all places, a constant aside."""
    trajectories = town.trajectories
    histories = trajectories.histories_before(town.targets("test")[:20])
    encoded = model.encode(
        BatchBuilder(config=model.config, lat=town.lat, lon=town.lon).build(histories)
    )
    exact = ExactScorer(model)
    wrong = exact.score(encoded) - exact.forecast(encoded)
    return float(wrong.var(dim=1).mean())


PLACES = 300
BUCKETS = torch.arange(2 * PLACES).view(2, PLACES).remainder(6).byte()


@pytest.fixture
def scores() -> torch.Tensor:
    draw = torch.Generator().manual_seed(1)
    scores = 3 * torch.randn(2, PLACES, generator=draw)
    scores[:, 7] = -torch.inf  # a place that is read anyway
    return scores


def test_the_weighted_mean_of_draws_is_on_average_that_of_all_places(scores: torch.Tensor) -> None:
    values = torch.randn(2, PLACES, generator=torch.Generator().manual_seed(2)).exp()
    probability = scores.exp()
    truth = (probability * values).sum(dim=1) / probability.sum(dim=1)
    rng = np.random.default_rng(3)
    found = []
    for _ in range(1500):
        drawn, weight = draw_places(probability, BUCKETS, 16, rng)
        found.append((weight * values.gather(1, drawn)).sum(dim=1))
    assert torch.stack(found).mean(dim=0).tolist() == pytest.approx(truth.tolist(), rel=0.05)


def test_likely_and_unlikely_places_are_both_drawn(scores: torch.Tensor) -> None:
    rng = np.random.default_rng(4)
    drawn = torch.cat([draw_places(scores.exp(), BUCKETS, 30, rng)[0] for _ in range(50)], dim=1)[0]
    order = scores[0].argsort(descending=True)
    assert torch.isin(order[:5], drawn).all()
    assert torch.isin(order[-150:], drawn).float().mean() > 0.5


def test_a_place_nearby_is_drawn_however_unlikely_it_is() -> None:
    scores = torch.zeros(1, PLACES)
    scores[0, 5] = -20.0
    buckets = torch.full((1, PLACES), 5, dtype=torch.uint8)
    buckets[0, 5] = 0
    drawn, weight = draw_places(scores.exp(), buckets, 8, np.random.default_rng(0))
    assert 5 in drawn[0].tolist()
    assert float(weight[drawn == 5].sum()) < 1e-3  # a low weight, unless its score is raised


def test_the_weights_of_a_target_sum_to_one_even_if_nothing_is_left_to_draw() -> None:
    nothing = torch.zeros(2, 5)
    for count in (1, 2, 16):
        drawn, weight = draw_places(nothing, nothing.byte(), count, np.random.default_rng(0))
        assert drawn.shape == weight.shape == (2, count)
        assert weight.sum(dim=1).tolist() == pytest.approx([1, 1])
        assert bool((drawn < 5).all())


STEPS: Final = 24
ALL: Final = 10_000
"""More windows and prefixes than there are."""

WITH_READER = tiny_model_config(window=200)
"""The window is longer than any trajectory, so both objectives have the same histories."""
WITHOUT = tiny_model_config(window=200, candidate_conditioning=False)


@pytest.fixture(scope="module")
def hamlet(tmp_path_factory: pytest.TempPathFactory) -> City:
    """Twelve people and 35 places: the full objective is affordable, and the reader counts."""
    folder = tmp_path_factory.mktemp("hamlet")
    config = SynthesisConfig(users=12, places=40, days=25)
    checkins = synthesize(config, seed=5)
    source = write_checkins(checkins, folder / "checkins.csv", config=config, seed=5)
    return prepare([source], folder / "city", Preparation(accept_rhythm=True))


def full(city: City, config: ModelConfig) -> Objective[Any]:
    return full_objective(city, config, batch=ALL, at_once=64)


def fast(city: City, config: ModelConfig) -> Objective[Any]:
    """The reader reads a target, its four hardest rivals and four draws: 9 places of 35."""
    return FastObjective(
        city,
        model=config,
        config=CastPoiTraining(
            windows_per_step=ALL,
            hard_candidates=4,
            drawn_candidates=4,
            explore_weight=1.5,
            margin_weight=0.5,
        ),
        seed=0,
    )


def loss_after(
    city: City,
    config: ModelConfig,
    objective: Callable[[City, ModelConfig], Objective[Any]],
    *,
    reader_learns: bool = True,
) -> float:
    """The full loss of a model after some steps with an objective."""
    model, trained_by = tiny_model(city, config), objective(city, config)
    if not reader_learns:
        for name, weight in model.named_parameters():  # which are zero at the start
            weight.requires_grad_(not name.startswith("reader.head.last."))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for epoch in range(STEPS):
        optimizer.zero_grad()
        (batch,) = trained_by.batches(epoch)
        trained_by.loss(model, batch).backward()
        optimizer.step()
    return full_loss(city, model)


def full_loss(city: City, model: CastPoi) -> float:
    objective = full(city, model.config)
    with torch.no_grad():
        return float(objective.loss(model.eval(), objective.batches(0)[0]))


def test_both_objectives_reach_the_same_loss_though_the_reader_reads_few_places(
    hamlet: City,
) -> None:
    by_full = loss_after(hamlet, WITH_READER, full)
    by_fast = loss_after(hamlet, WITH_READER, fast)
    without_reader = loss_after(hamlet, WITHOUT, fast)
    zero_reader = loss_after(hamlet, WITH_READER, fast, reader_learns=False)
    assert by_full < full_loss(hamlet, tiny_model(hamlet, WITH_READER)) - 2
    worth = without_reader - by_full
    assert worth > 0.4  # what the reader is worth, so that there is something to miss
    assert abs(by_fast - by_full) < worth / 3
    assert zero_reader > by_full + 2 * worth / 3  # the bound would see it
