from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from castpoi.baselines.sasrec import SasRec, SasRecConfig
from castpoi.checkins.city import City
from castpoi.training import sequence_objective
from castpoi.training.config import SequenceTraining
from castpoi.training.sequence_objective import PrefixObjective, WindowObjective

WINDOW = 8


def objectives(town: City, **changes: Any) -> tuple[WindowObjective, PrefixObjective]:
    config = SequenceTraining(**{"batch": 10**9, **changes})
    return (
        WindowObjective(town, window=WINDOW, config=config, seed=1),
        PrefixObjective(town, window=WINDOW, config=config, seed=1),
    )


def still_model(town: City) -> SasRec:
    torch.manual_seed(1)
    config = SasRecConfig(
        width=8, window=WINDOW, layers=1, feed_forward_width=8, dropout=0.0, attention_dropout=0.0
    )
    model = SasRec(config=config, places=town.places.height)
    with torch.no_grad():
        model.slot.weight.normal_()  # so that it matters where a visit stands
        model.place.weight[1:].normal_()
    return model


def learned(
    town: City, objective: WindowObjective | PrefixObjective
) -> tuple[Tensor, list[Tensor | None]]:
    """Loss and gradients of the one batch of an epoch."""
    model = still_model(town)
    (batch,) = objective.batches(0)
    loss = objective.loss(model, batch)
    loss.backward()
    return loss.detach(), [weight.grad for weight in model.parameters()]


def test_with_stride_one_windows_learn_what_prefixes_do(town: City) -> None:
    (loss, slopes), (other, others) = (
        learned(town, objective) for objective in objectives(town, stride=1)
    )
    torch.testing.assert_close(loss, other)
    torch.testing.assert_close(slopes, others, rtol=1e-4, atol=1e-5)


def test_parts_in_which_prefixes_are_read_change_nothing(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, objective = objectives(town)
    loss, slopes = learned(town, objective)
    monkeypatch.setattr(sequence_objective, "PREFIXES_AT_ONCE", 5)
    other, others = learned(town, objective)
    torch.testing.assert_close(loss, other)
    torch.testing.assert_close(slopes, others, rtol=1e-4, atol=1e-6)


def test_with_a_longer_stride_only_later_visits_learn_something_else(town: City) -> None:
    window, prefix = objectives(town, stride=4)
    model = still_model(town)
    first = np.flatnonzero(window.windows.begin == window.windows.learn)
    visits = np.concatenate(
        [
            np.arange(begin + 1, end + 1)  # the targets
            for begin, end in zip(
                window.windows.begin[first], window.windows.end[first], strict=True
            )
        ]
    )
    torch.testing.assert_close(window.loss(model, first), prefix.loss(model, visits))
    later = np.setdiff1d(prefix.target, visits)
    rest = np.setdiff1d(np.arange(len(window.windows)), first)
    assert window.targets(rest) == len(later)
    difference = window.loss(model, rest) - prefix.loss(model, later)
    assert abs(float(difference.detach())) > 1e-4


@pytest.mark.parametrize("which", [0, 1])
def test_an_epoch_holds_every_target_once_in_steps_of_about_one_size(
    town: City, which: int
) -> None:
    objective = objectives(town, batch=64)[which]
    batches = objective.batches(0)
    sizes = [objective.targets(batch) for batch in batches]
    whole = objectives(town)[which]
    assert sum(sizes) == whole.targets(whole.batches(0)[0])
    assert all(64 - WINDOW < size < 64 + WINDOW for size in sizes[:-1])
    numbers = np.concatenate(batches)
    assert len(np.unique(numbers)) == len(numbers)


@pytest.mark.parametrize("which", [0, 1])
def test_seed_and_epoch_fix_the_batches(town: City, which: int) -> None:
    objective, again = (objectives(town, batch=64)[which] for _ in range(2))
    same = zip(objective.batches(3), again.batches(3), strict=True)
    assert all(np.array_equal(one, other) for one, other in same)
    assert not np.array_equal(objective.batches(3)[0], objective.batches(4)[0])


@pytest.mark.parametrize("which", [0, 1])
def test_processes_share_a_batch_without_loss(town: City, which: int) -> None:
    objective = objectives(town)[which]
    model = still_model(town)
    (batch,) = objective.batches(0)
    shares = [objective.share(batch, rank, 3) for rank in range(3)]
    counts = [objective.targets(share) for share in shares]
    together = sum(
        float(objective.loss(model, share).detach()) * count
        for share, count in zip(shares, counts, strict=True)
    )
    assert sum(counts) == objective.targets(batch)
    expected = float(objective.loss(model, batch).detach())
    assert together / sum(counts) == pytest.approx(expected, rel=1e-5)
