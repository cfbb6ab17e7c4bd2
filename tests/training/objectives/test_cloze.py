from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from castpoi.baselines.bert4rec import Bert4Rec, Bert4RecConfig
from castpoi.checkins.city import City
from castpoi.training.config import SequenceTraining
from castpoi.training.objectives.cloze import ClozeBatch, ClozeObjective
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city

WINDOW = 8


def small_config(**changes: Any) -> Bert4RecConfig:
    small = {"width": 8, "window": WINDOW, "layers": 2, "feed_forward_width": 8}
    no_dropout = {"dropout": 0.0, "attention_dropout": 0.0}
    return Bert4RecConfig(**small | no_dropout | changes)


def objective_of(city: City, *, batch: int = 200, seed: int = 1, **changes: Any) -> ClozeObjective:
    config = SequenceTraining(batch=batch)
    return ClozeObjective(city, model=small_config(**changes), config=config, seed=seed)


def new_model(city: City, *, noise: float = 0.3) -> Bert4Rec:
    torch.manual_seed(1)
    model = Bert4Rec(config=small_config(), places=city.places.height)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=noise)
    return model


def small_town() -> City:
    return small_city(
        [
            (0, CAFE, "2012-04-02 12:00"),
            (0, OFFICE, "2012-04-02 13:00"),
            (0, CAFE, "2012-04-03 12:00"),
            (0, PARK, "2012-04-03 13:00"),
            (0, STATION, "2012-04-03 21:00"),
            (1, STATION, "2012-04-02 12:00"),
            (2, PARK, "2012-04-02 12:00"),
            (2, OFFICE, "2012-04-02 13:00"),
        ],
        ["train", "train", "train", "train", "test", "train", "train", "train"],
    )


def test_a_window_ends_at_every_train_visit_that_has_one_before_it() -> None:
    objective = objective_of(small_town(), window_step=1)
    (batch,) = objective.batches(0)
    places = objective.place[batch.ends].tolist()
    assert sorted(places) == sorted([OFFICE, CAFE, PARK, OFFICE])


@pytest.mark.parametrize("window_step", [1, 3, 2048])
def test_epochs_rotate_through_all_windows(town: City, window_step: int) -> None:
    objective = objective_of(town, window_step=window_step)
    epochs = min(window_step, len(objective.ends))
    ends = np.concatenate(
        [batch.ends for epoch in range(epochs) for batch in objective.batches(epoch)]
    )
    assert sorted(ends) == objective.ends.tolist()


def test_seed_and_epoch_fix_windows_and_masks(town: City) -> None:
    one, same, other = (objective_of(town, window_step=1, seed=seed) for seed in (1, 1, 2))

    def drawn(objective: ClozeObjective, epoch: int) -> list[Any]:
        return [
            (batch.ends.tolist(), objective.masks(batch).tolist())
            for batch in objective.batches(epoch)
        ]

    assert drawn(one, 0) == drawn(same, 0)
    assert drawn(one, 0) != drawn(one, 1)
    assert drawn(one, 0) != drawn(other, 0)


def test_a_share_of_steps_masks_only_the_last_visit(town: City) -> None:
    objective = objective_of(town, window_step=1, batch=20, last_only_share=0.5, mask_share=0.9)
    batches = [batch for epoch in range(6) for batch in objective.batches(epoch)]
    is_last_only = []
    for batch in batches:
        masks = objective.masks(batch)
        lengths = np.minimum(batch.ends + 1 - objective.begin[batch.ends], WINDOW)
        last = np.arange(masks.shape[1]) == lengths[:, None] - 1
        is_last_only.append(bool((masks == last).all()))
    assert 0.35 < np.mean(is_last_only) < 0.65


def test_visits_are_masked_at_random_and_every_window_has_a_mask(town: City) -> None:
    objective = objective_of(town, window_step=1, batch=10**6, last_only_share=0.0)
    (batch,) = objective.batches(0)
    masks = objective.masks(batch)
    lengths = np.minimum(batch.ends + 1 - objective.begin[batch.ends], WINDOW)
    is_real = np.arange(WINDOW) < lengths[:, None]
    assert masks.any(axis=1).all()
    assert not masks[~is_real].any()
    # without the last visits, which are also masked where no other is
    earlier = is_real & (np.arange(WINDOW) < lengths[:, None] - 1)
    assert masks[earlier].mean() == pytest.approx(0.2, abs=0.02)


def slow_loss(objective: ClozeObjective, model: Bert4Rec, batch: ClozeBatch) -> Tensor:
    """One window after the other, then the plain cross-entropy of all places."""
    states, targets = [], []
    for end, masks in zip(batch.ends, objective.masks(batch), strict=True):
        begin = max(objective.begin[end], end + 1 - WINDOW)
        rows = torch.from_numpy(objective.place[begin : end + 1] + 1)
        is_masked = torch.from_numpy(masks[: len(rows)])
        states.append(model.masked_states(rows[None], torch.tensor([len(rows)]), is_masked[None]))
        targets.append(rows[is_masked] - 1)
    scores = model.scores(torch.cat(states))[:, 1:]
    return functional.cross_entropy(scores, torch.cat(targets))


@pytest.mark.parametrize("last_only_share", [0.0, 0.99])
def test_loss_and_gradient_equal_those_of_single_windows(
    town: City, last_only_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castpoi.training.objectives.cloze._WINDOWS_AT_ONCE", 7)
    objective = objective_of(town, batch=60, last_only_share=last_only_share)
    batch = objective.batches(0)[0]
    assert len(batch.ends) > 14
    quick, slow = new_model(town), new_model(town)
    loss, expected = objective.loss(quick, batch), slow_loss(objective, slow, batch)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    loss.backward()
    expected.backward()
    for ours, theirs in zip(quick.parameters(), slow.parameters(), strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)


def test_shares_of_a_batch_are_the_batch(town: City) -> None:
    objective = objective_of(town)
    batch = objective.batches(0)[0]
    shares = [objective.share(batch, rank, 3) for rank in range(3)]
    assert sorted(np.concatenate([each.ends for each in shares])) == sorted(batch.ends)
    assert len({each.seed for each in shares}) == 3
