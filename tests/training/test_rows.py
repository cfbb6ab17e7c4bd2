"""Rows that few steps use are those of AdamW and of a running mean over all steps."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from castpoi.training.rows import SparseRows

PLACES, WIDTH, STEPS = 40, 3, 120


def targets() -> Tensor:
    return torch.randn(PLACES, WIDTH, generator=torch.Generator().manual_seed(1))


def dense(used: list[Tensor], rate: float, decay: float, kept: float) -> tuple[Tensor, Tensor]:
    """AdamW and the running mean of all rows, of which a step uses few."""
    weight = nn.Parameter(torch.zeros(PLACES, WIDTH))
    optimizer = torch.optim.AdamW([weight], lr=rate, weight_decay=decay)
    mean = weight.detach().clone()
    for rows in used:
        optimizer.zero_grad(set_to_none=False)
        (weight[rows] - targets()[rows]).pow(2).sum().backward()
        optimizer.step()
        mean.lerp_(weight.detach(), 1 - kept)
    return weight.detach(), mean


def sparse(used: list[Tensor], rate: float, decay: float, kept: float) -> tuple[Tensor, Tensor]:
    """The same row by row."""
    weight = nn.Parameter(torch.zeros(PLACES, WIDTH))
    moments = {name: torch.zeros(PLACES, WIDTH) for name in ("exp_avg", "exp_avg_sq")}
    mean = weight.detach().clone()
    rows_of = SparseRows({"weight": decay})
    rows_of.bind({"weight": weight}, {"weight": moments}, {"weight": mean}, steps=0)
    for rows in used:
        leaf = rows_of.take(rows)["weight"]
        (leaf - targets()[rows]).pow(2).sum().backward()
        rows_of.step(rate, kept)
    rows_of.catch_up()
    return weight.detach(), mean


@pytest.mark.parametrize(("share", "tolerance"), [(1.0, 1e-5), (0.5, 0.01), (0.1, 0.06)])
def test_rows_that_some_steps_use_end_where_adamw_moves_them(
    share: float, tolerance: float
) -> None:
    rng = np.random.default_rng(2)
    used = [torch.from_numpy(np.flatnonzero(rng.random(PLACES) < share)) for _ in range(STEPS)]
    for rate, decay, kept in [(0.01, 0.5, 0.9), (0.01, 0.0, 0.99)]:
        wanted, found = (each(used, rate, decay, kept) for each in (dense, sparse))
        assert wanted[0].abs().mean() > 0.1
        torch.testing.assert_close(found[0], wanted[0], rtol=0, atol=tolerance)
        torch.testing.assert_close(found[1], wanted[1], rtol=0, atol=tolerance)


def test_a_row_that_no_step_uses_only_decays() -> None:
    weight = nn.Parameter(torch.ones(2, 1))
    zeros = {name: torch.zeros(2, 1) for name in ("exp_avg", "exp_avg_sq")}
    rows = SparseRows({"weight": 0.5})
    rows.bind({"weight": weight}, {"weight": zeros}, {}, steps=0)
    for _ in range(100):
        rows.take(torch.tensor([0]))["weight"].sum().backward()
        rows.step(0.01, 1.0)
    rows.catch_up()
    assert weight[1].item() == pytest.approx((1 - 0.01 * 0.5) ** 100, rel=2e-3)
    assert weight[0].item() < 0.2
