"""The attention of the reader against the same by autograd."""

import math

import pytest
import torch
from torch import Tensor

from castpoi.model.attend import attend
from castpoi.model.backbone import MASKED, join_heads, split_heads

HEADS = 2


def asked(*, away: bool = False) -> list[Tensor]:
    """Queries, keys, values and biases of 3 histories, 4 candidates and 5 visits."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4, 6), (3, 5, 6), (3, 5, 6), (3, 4, 5), *([()] if away else [])]
    given = [torch.randn(each, generator=generator, dtype=torch.float64) for each in shapes]
    given[3][0, :, :2] = MASKED
    given[3][1, 0] = MASKED  # a row of nothing else
    return [each.requires_grad_() for each in given]


def plainly(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, away: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    query, key, value = (split_heads(each, HEADS) for each in (query, key, value))
    match = query @ key.mT + bias.unsqueeze(1)  # [B, H, C, T]
    if away is not None:
        match = torch.cat([match, away.expand(*match.shape[:-1], 1)], dim=-1)
    attention = match.softmax(dim=-1)[..., : key.shape[2]]
    return join_heads(attention @ value), attention


@pytest.mark.parametrize("away", [False, True])
def test_candidates_find_and_learn_what_they_would_by_autograd(away: bool) -> None:
    given = asked(away=away)
    found, attention = attend(*given, heads=HEADS)
    expected, looked = plainly(*given)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(attention, looked.detach())
    slope = torch.cos(torch.arange(found.numel()).double()).view_as(found)
    for own, right in zip(
        torch.autograd.grad(found, given, slope),
        torch.autograd.grad(expected, given, slope),
        strict=True,
    ):
        torch.testing.assert_close(own, right)


def test_half_numbers_are_summed_as_whole_ones() -> None:
    query, key, value, bias = (each.detach().float() for each in asked())
    query, key, value = halves = [each.bfloat16().requires_grad_() for each in (query, key, value)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, attention = attend(query, key, value, bias, heads=HEADS)
    assert found.dtype == attention.dtype == torch.float32
    found.sum().backward()
    assert all(each.grad is not None and each.grad.dtype == torch.bfloat16 for each in halves)
    assert math.isclose(float(attention.detach().sum()), 3 * 4 * HEADS, rel_tol=1e-5)
