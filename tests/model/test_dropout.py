"""Dropout: it forgets as often as asked, keeps the mean, and only while training."""

import pytest
import torch

from castpoi.model.dropout import Dropout

RATE = 51 / 256


def test_a_fifth_of_the_values_is_forgotten_and_the_others_keep_the_mean() -> None:
    torch.manual_seed(0)
    kept = Dropout(0.2)(torch.ones(1000, 200))
    assert float((kept == 0).float().mean()) == pytest.approx(RATE, abs=0.003)
    assert float(kept.mean()) == pytest.approx(1, abs=0.003)


def test_every_value_of_eight_that_share_a_draw_is_forgotten_equally_often() -> None:
    torch.manual_seed(0)
    forgotten = Dropout(0.2)(torch.ones(20_000, 8)) == 0
    assert forgotten.float().mean(dim=0).tolist() == pytest.approx([RATE] * 8, abs=0.015)


def test_values_that_share_a_draw_are_forgotten_independently() -> None:
    torch.manual_seed(0)
    forgotten = (Dropout(0.5)(torch.ones(20_000, 8)) == 0).float()
    together = torch.corrcoef(forgotten.mT) - torch.eye(8)
    assert float(together.abs().max()) < 0.03


def test_one_seed_forgets_the_same_values() -> None:
    torch.manual_seed(3)
    first = Dropout(0.3)(torch.ones(5, 7))
    torch.manual_seed(3)
    assert torch.equal(first, Dropout(0.3)(torch.ones(5, 7)))


def test_nothing_is_forgotten_after_training_or_at_rate_zero() -> None:
    values = torch.randn(4, 9)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
