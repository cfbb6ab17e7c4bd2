"""Candidates meet visits: the attention of the reader, with a gradient that copies nothing.

    A = softmax( q K^T + B )           F = A V                  for each head, B shared by all
    dV = A^T dF    dA = dF V^T         dS = A * (dA - rows' sums of dF * F)
    dq = dS K      dK = dS^T q         dB = dS, summed over heads

The rows' sums of A * dA are those of dF * F, which has fewer columns. Heads are taken one by one
as slices of the vectors: autograd would split them by copies, in both directions.

A candidate may look away from all visits: one more column in the softmax, with a logit a of its own
and nothing to be found there. A keeps its equation, its rows now sum to less than 1, and what they
lack, times -(rows' sums of dF * F), is da.

Shapes: B histories, C candidates, T slots, D width, H heads.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    away: Tensor | None = None,
    *,
    heads: int,
) -> tuple[Tensor, Tensor]:
    """What each candidate finds, and where it looked; no gradient flows through the latter.

    [B, C, D], [B, T, D], [B, T, D], [B, C, T], [] -> [B, C, D], [B, H, C, T]
    """
    apply: Callable[..., tuple[Tensor, Tensor]] = _Attend.apply
    kind = torch.promote_types(query.dtype, bias.dtype)
    with torch.autocast(query.device.type, enabled=False):  # half numbers lose too much of a sum
        given = (each.to(kind) for each in (query, key, value, bias))
        found, attention = apply(*given, None if away is None else away.to(kind), heads)
    return found, attention.transpose(0, 1)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor,
        away: Tensor | None,
        heads: int,
    ) -> tuple[Tensor, Tensor]:
        attention = _softmax(_products(query, key, heads).add_(bias), away)  # [H, B, C, T]
        found = _sums(attention, value)  # [B, C, D]
        ctx.save_for_backward(query, key, value, attention, found)
        ctx.mark_non_differentiable(attention)
        ctx.looks_away = away is not None
        return found, attention

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        slope = slopes[0]
        query, key, value, attention, found = ctx.saved_tensors
        heads = len(attention)
        rows = (slope * found).unflatten(-1, (heads, -1)).sum(dim=-1)  # [B, C, H]
        rows = rows.permute(2, 0, 1)  # [H, B, C]
        by_match = _products(slope, value, heads)  # [H, B, C, T]
        by_match.sub_(rows.unsqueeze(-1)).mul_(attention)
        by_query, by_key = _sums(by_match, key), _sums(by_match.mT, query)
        by_value, by_bias = _sums(attention.mT, slope), by_match.sum(dim=0)
        by_away = (rows * (attention.sum(dim=-1) - 1)).sum() if ctx.looks_away else None
        return by_query, by_key, by_value, by_bias, by_away, None


def _softmax(match: Tensor, away: Tensor | None) -> Tensor:
    """Shares of the visits, and of looking away from them all. [..., T], [] -> [..., T]"""
    if away is None:
        return match.softmax(dim=-1)
    whole = torch.logaddexp(match.logsumexp(dim=-1, keepdim=True), away)
    return match.sub_(whole).exp_()


def _products(left: Tensor, right: Tensor, heads: int) -> Tensor:
    """Each head's products of its parts of vectors. [B, C, D], [B, T, D] -> [H, B, C, T]"""
    products = left.new_empty(heads, *left.shape[:2], right.shape[1])
    parts = zip(products, left.chunk(heads, dim=-1), right.chunk(heads, dim=-1), strict=True)
    for each, one, other in parts:
        torch.bmm(one, other.mT, out=each)
    return products


def _sums(weights: Tensor, vectors: Tensor) -> Tensor:
    """Each head's weighted sums of its part of vectors. [H, B, C, T], [B, T, D] -> [B, C, D]"""
    parts = zip(weights, vectors.chunk(len(weights), dim=-1), strict=True)
    return torch.cat([weight @ part for weight, part in parts], dim=-1)
