"""The backbone: visits look back at the visits before them.

A visit attends to itself and to the visits before it, as far back as the window reaches, in each
layer. So the states of all positions of a long window come from one pass, and each is the state
its own history would give:

    positions  a state depends on                             its window
    absolute   its visit and all before it in the window      at most `window` slots
    relative   the last layers * (window - 1) + 1 visits      any number of slots

With relative positions a state does not depend on where its window begins, provided that the
window begins early enough; `ModelConfig.visits_read` says how early for all the reader reads.

Shapes: B histories, T slots, D width, H heads.
"""

import math
from typing import Final

import torch
from torch import Tensor, nn

from castpoi.model.config import ModelConfig
from castpoi.model.feed_forward import FeedForward

MASKED: Final = -1e9
"""Logit of what must not be attended to; finite, so that a row of nothing else is no NaN."""


class SelfAttention(nn.Module):
    """Multi-head attention of visits to earlier visits."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        # a bias here would add the same to every logit of a row, which softmax cannot see
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Linear(config.width, config.width)
        self.offset_bias = (
            nn.Parameter(torch.zeros(config.heads, config.window))
            if config.positions == "relative"
            else None
        )

    def forward(self, asking: Tensor, asked: Tensor, is_visible: Tensor) -> Tensor:
        """What each visit finds. [B, T, D], [B, T, D], [B, T, T] -> [B, T, D]"""
        query = split_heads(self.query(asking), self.heads)  # [B, H, T, D / H]
        key = split_heads(self.key(asked), self.heads)
        value = split_heads(self.value(asked), self.heads)
        match = query @ key.mT / math.sqrt(query.shape[-1])  # [B, H, T, T]
        if self.offset_bias is not None:
            match = match + self.offset_bias[:, self._offsets(asking.shape[1])]
        match = match.masked_fill(~is_visible.unsqueeze(1), MASKED)
        found: Tensor = self.mix(join_heads(match.softmax(dim=-1) @ value))  # [B, T, D]
        return found

    def _offsets(self, slots: int) -> Tensor:
        """How many visits back each slot lies from each other, within the window. [T, T]"""
        assert self.offset_bias is not None
        slot = torch.arange(slots, device=self.offset_bias.device)
        return (slot[:, None] - slot).clamp(0, self.offset_bias.shape[1] - 1)


class BackboneBlock(nn.Module):
    """Attention, then a feed-forward part; both continue from normalised vectors."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = SelfAttention(config=config)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(
            width=config.width, inner_width=config.feed_forward_width, dropout=config.dropout
        )

    def forward(self, visits: Tensor, is_visible: Tensor) -> Tensor:
        """Let visits look back once. [B, T, D], [B, T, T] -> [B, T, D]"""
        asking = self.attention_norm(visits)
        visits = asking + self.attention(asking, visits, is_visible)
        looked: Tensor = self.feed_forward(self.feed_forward_norm(visits))
        return looked


class Backbone(nn.Module):
    """Causal self-attention over the history; empty slots stay zero."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.window = config.window
        self.blocks = nn.ModuleList(
            BackboneBlock(config=config) for _ in range(config.backbone_layers)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, tokens: Tensor, is_real: Tensor) -> Tensor:
        """The state at every position. [B, T, D], [B, T] -> [B, T, D]"""
        is_visible = self._is_visible(is_real)
        filled = is_real.unsqueeze(-1)
        states = tokens
        for block in self.blocks:
            states = block(states, is_visible) * filled  # padding passes nothing on
        normed: Tensor = self.norm(states) * filled
        return normed

    def _is_visible(self, is_real: Tensor) -> Tensor:
        """Whether a slot (first) may look at another (second). [B, T] -> [B, T, T]"""
        slot = torch.arange(is_real.shape[1], device=is_real.device)
        back = slot[:, None] - slot
        return ((back >= 0) & (back < self.window)) & is_real[:, None, :]


def split_heads(vectors: Tensor, heads: int) -> Tensor:
    """Each head's part of the vectors. [B, T, D] -> [B, H, T, D / H]"""
    histories, slots, width = vectors.shape
    return vectors.view(histories, slots, heads, width // heads).transpose(1, 2)


def join_heads(vectors: Tensor) -> Tensor:
    """The parts of all heads side by side. [B, H, T, D / H] -> [B, T, D]"""
    return vectors.transpose(1, 2).flatten(2)
