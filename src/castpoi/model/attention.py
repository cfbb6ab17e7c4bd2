"""Attention: the backbone, where visits attend to earlier visits, and a fused kernel for readers.

In each backbone layer a visit attends to itself and to the visits before it, as far back as the
window reaches. So one pass over a long window gives the states of all its positions, and each is
the state that its own history would give:

    positions  a state depends on                             its window
    absolute   its visit and all before it in the window      at most `window` slots
    relative   the last layers * (window - 1) + 1 visits      any number of slots

With relative positions a state does not depend on where its window begins, if the window begins
early enough; `ModelConfig.visits_read` is the number of visits needed for all that the reader
reads.

`attend` is the attention of candidates to visits, with a hand-written gradient that copies nothing:

    A = softmax( q K^T + B )           F = A V                  for each head, B shared by all
    dV = A^T dF    dA = dF V^T         dS = A * (dA - row sums of dF * F)
    dq = dS K      dK = dS^T q         dB = dS, summed over heads

The row sums of A * dA are those of dF * F, which has fewer columns. Heads are taken one by one as
slices of the vectors; autograd would split them by copies, in both directions.

Null attention adds one column to the softmax: an extra key with a learned logit n and a value of
zero. The equation of A does not change; its rows then sum to less than 1, and dn is the missing
part times -(row sums of dF * F).

Shapes: B histories, T slots, C candidates, D width, H heads.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from castpoi.model.config import ModelConfig
from castpoi.model.layers import FeedForward

MASKED: Final = -1e9
"""Logit of a masked slot; finite, so that a row of nothing but masked slots is not NaN."""


class SelfAttention(nn.Module):
    """Multi-head attention of visits to earlier visits."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        # a bias would add the same to every logit of a row, which softmax cancels
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Linear(config.width, config.width)
        self.offset_bias = (
            nn.Parameter(torch.zeros(config.heads, config.window))
            if config.positions == "relative"
            else None
        )

    def forward(self, queries: Tensor, visits: Tensor, is_visible: Tensor) -> Tensor:
        """Attend to the visible visits; the queries are the last Q of them.

        [B, Q, D], [B, T, D], [B, Q, T] -> [B, Q, D]
        """
        query = split_heads(self.query(queries), self.heads)  # [B, H, Q, D / H]
        key = split_heads(self.key(visits), self.heads)  # [B, H, T, D / H]
        value = split_heads(self.value(visits), self.heads)
        match = query @ key.mT / math.sqrt(query.shape[-1])  # [B, H, Q, T]
        if self.offset_bias is not None:
            slot = torch.arange(visits.shape[1], device=match.device)
            offset = slot[-queries.shape[1] :, None] - slot  # [Q, T]
            match = match + self.offset_bias[:, offset.clamp(0, self.offset_bias.shape[1] - 1)]
        match = match.masked_fill(~is_visible.unsqueeze(1), MASKED)
        return self.mix(join_heads(match.softmax(dim=-1) @ value))  # [B, Q, D]


class BackboneBlock(nn.Module):
    """Attention, then a feed-forward layer; both start from normalised vectors."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = SelfAttention(config=config)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(
            width=config.width, inner_width=config.feed_forward_width, dropout=config.dropout
        )

    def forward(self, visits: Tensor, is_visible: Tensor) -> Tensor:
        """Attend from the last Q visits to earlier ones. [B, T, D], [B, Q, T] -> [B, Q, D]"""
        queries = self.attention_norm(visits[:, -is_visible.shape[1] :])  # [B, Q, D]
        attended = queries + self.attention(queries, visits, is_visible)
        return self.feed_forward(self.feed_forward_norm(attended))


class Backbone(nn.Module):
    """Causal self-attention over the history; empty slots stay zero."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.window = config.window
        self.blocks = nn.ModuleList(
            BackboneBlock(config=config) for _ in range(config.backbone_layers)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, tokens: Tensor, is_real: Tensor, last: int | None = None) -> Tensor:
        """The state at every position, or at the `last` ones. [B, T, D], [B, T] -> [B, Q, D]

        A layer computes only the positions on which later layers depend.
        """
        slot = torch.arange(is_real.shape[1], device=is_real.device)
        back = slot[:, None] - slot
        # whether a slot (first) may attend to another (second)
        is_visible = ((back >= 0) & (back < self.window)) & is_real[:, None, :]  # [B, T, T]
        filled = is_real.unsqueeze(-1)
        states = tokens
        for above, block in zip(reversed(range(len(self.blocks))), self.blocks, strict=True):
            # each layer above depends on `window` - 1 positions more
            most = len(slot) if last is None else last + above * (self.window - 1)
            read = slice(-min(most, len(slot)), None)
            seen = slice(-states.shape[1], None)
            states = block(states, is_visible[:, read, seen]) * filled[:, read]  # padding: zero
        return self.norm(states) * filled[:, -states.shape[1] :]


def split_heads(vectors: Tensor, heads: int) -> Tensor:
    """The slice of each head. [B, T, D] -> [B, H, T, D / H]"""
    return vectors.unflatten(2, (heads, -1)).transpose(1, 2)


def join_heads(vectors: Tensor) -> Tensor:
    """The slices of all heads side by side. [B, H, T, D / H] -> [B, T, D]"""
    return vectors.transpose(1, 2).flatten(2)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    null: Tensor | None = None,
    *,
    heads: int,
) -> tuple[Tensor, Tensor]:
    """Attended values and attention weights; no gradient flows through the weights.

    [B, C, D], [B, T, D], [B, T, D], [B, C, T], [] -> [B, C, D], [B, H, C, T]
    """
    apply: Callable[..., tuple[Tensor, Tensor]] = _Attend.apply
    dtype = torch.promote_types(query.dtype, bias.dtype)
    with torch.autocast(query.device.type, enabled=False):  # half precision rounds sums too much
        given = (each.to(dtype) for each in (query, key, value, bias))
        found, attention = apply(*given, None if null is None else null.to(dtype), heads)
    return found, attention.transpose(0, 1)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor,
        null: Tensor | None,
        heads: int,
    ) -> tuple[Tensor, Tensor]:
        match = _products(query, key, heads).add_(bias)  # [H, B, C, T]
        if null is None:
            attention = match.softmax(dim=-1)
        else:
            whole = torch.logaddexp(match.logsumexp(dim=-1, keepdim=True), null)
            attention = match.sub_(whole).exp_()
        found = _sums(attention, value)  # [B, C, D]
        ctx.save_for_backward(query, key, value, attention, found)
        ctx.mark_non_differentiable(attention)
        ctx.has_null = null is not None
        return found, attention

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0]
        query, key, value, attention, found = ctx.saved_tensors
        heads = len(attention)
        rows = (grad * found).unflatten(-1, (heads, -1)).sum(dim=-1)  # [B, C, H]
        rows = rows.permute(2, 0, 1)  # [H, B, C]
        by_match = _products(grad, value, heads)  # [H, B, C, T]
        by_match.sub_(rows.unsqueeze(-1)).mul_(attention)
        by_query, by_key = _sums(by_match, key), _sums(by_match.mT, query)
        by_value, by_bias = _sums(attention.mT, grad), by_match.sum(dim=0)
        by_null = (rows * (attention.sum(dim=-1) - 1)).sum() if ctx.has_null else None
        return by_query, by_key, by_value, by_bias, by_null, None


def _products(left: Tensor, right: Tensor, heads: int) -> Tensor:
    """Products of the slices of each head. [B, C, D], [B, T, D] -> [H, B, C, T]"""
    products = left.new_empty(heads, *left.shape[:2], right.shape[1])
    parts = zip(products, left.chunk(heads, dim=-1), right.chunk(heads, dim=-1), strict=True)
    for each, one, other in parts:
        torch.bmm(one, other.mT, out=each)
    return products


def _sums(weights: Tensor, vectors: Tensor) -> Tensor:
    """Weighted sums of the slices of each head. [H, B, C, T], [B, T, D] -> [B, C, D]"""
    parts = zip(weights, vectors.chunk(len(weights), dim=-1), strict=True)
    return torch.cat([weight @ part for weight, part in parts], dim=-1)
