"""The attention of the reader against the same by autograd, and the last states of the backbone."""

import math

import pytest
import torch
from torch import Tensor

from castpoi.model.attention import MASKED, Backbone, attend, join_heads, split_heads
from tests.model.small import small_config

HEADS = 2


def inputs(*, null: bool = False) -> list[Tensor]:
    """Queries, keys, values and biases of 3 histories, 4 candidates and 5 visits."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4, 6), (3, 5, 6), (3, 5, 6), (3, 4, 5), *([()] if null else [])]
    given = [torch.randn(each, generator=generator, dtype=torch.float64) for each in shapes]
    given[3][0, :, :2] = MASKED
    given[3][1, 0] = MASKED  # a row of masked slots only
    return [each.requires_grad_() for each in given]


def by_autograd(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, null: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    query, key, value = (split_heads(each, HEADS) for each in (query, key, value))
    match = query @ key.mT + bias.unsqueeze(1)  # [B, H, C, T]
    if null is not None:
        match = torch.cat([match, null.expand(*match.shape[:-1], 1)], dim=-1)
    attention = match.softmax(dim=-1)[..., : key.shape[2]]
    return join_heads(attention @ value), attention


@pytest.mark.parametrize("null", [False, True])
def test_values_and_gradients_are_those_of_autograd(null: bool) -> None:
    given = inputs(null=null)
    found, attention = attend(*given, heads=HEADS)
    expected, weights = by_autograd(*given)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(attention, weights.detach())
    grad = torch.cos(torch.arange(found.numel()).double()).view_as(found)
    for own, right in zip(
        torch.autograd.grad(found, given, grad),
        torch.autograd.grad(expected, given, grad),
        strict=True,
    ):
        torch.testing.assert_close(own, right)


def test_sums_of_half_precision_are_in_full_precision() -> None:
    query, key, value, bias = (each.detach().float() for each in inputs())
    query, key, value = halves = [each.bfloat16().requires_grad_() for each in (query, key, value)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, attention = attend(query, key, value, bias, heads=HEADS)
    assert found.dtype == attention.dtype == torch.float32
    found.sum().backward()
    assert all(each.grad is not None and each.grad.dtype == torch.bfloat16 for each in halves)
    assert math.isclose(float(attention.detach().sum()), 3 * 4 * HEADS, rel_tol=1e-5)


@pytest.mark.parametrize("positions", ["absolute", "relative"])
@pytest.mark.parametrize("last", [1, 3, 20])
def test_the_last_states_of_the_backbone_are_those_of_all_states(positions: str, last: int) -> None:
    config = small_config(positions=positions, backbone_layers=3)
    backbone = Backbone(config=config).eval()
    tokens = torch.randn(4, 11, config.width, generator=torch.Generator().manual_seed(1))
    is_real = torch.arange(11) >= torch.tensor([[0], [4], [10], [11]])  # the last one is empty
    tokens = tokens * is_real.unsqueeze(-1)
    found = backbone(tokens, is_real, last)
    torch.testing.assert_close(found, backbone(tokens, is_real)[:, -last:], atol=1e-6, rtol=0)
