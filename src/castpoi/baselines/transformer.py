"""The transformer of the baselines: self-attention between visits, then a feed-forward part.

    post-norm (SASRec, BERT4Rec, CORE)   x <- norm(x + part(x))
    pre-norm  (eSASRec)                  x <- x + gate(x) * part(norm(x)), a last norm at the end

The gate is a sigmoid of the visit itself (LiGR layers, arXiv 2502.03417). Windows are right-padded,
so causal attention never reaches padding and needs no mask for it.

Shapes: B histories, T slots, m querying slots, D width, H heads, F inner width.
"""

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import SequenceConfig
from castpoi.core.config import Layers, Share, Size
from castpoi.core.errors import BadInput
from castpoi.model.layers import Dropout

NORM_EPSILON: Final = 1e-12
"""RecBole's; no effect in float32."""

INITIAL_SPREAD: Final = 0.02
"""Standard deviation of initial weights in RecBole's SASRec and BERT4Rec."""


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(SequenceConfig):
    """The settings of a model with blocks of attention."""

    layers: Layers = 2
    """Blocks of attention and what follows it."""
    heads: Size = 2
    """Attention heads; must divide `width`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise BadInput(f"heads={self.heads} must divide width={self.width}")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(AttentionConfig):
    """The settings of a transformer."""

    feed_forward_width: Size = 256
    """Inner size of the feed-forward part."""
    dropout: Share = 0.5
    """Share of activations dropped in training."""
    attention_dropout: Share = 0.5
    """Share of attention weights dropped in training."""


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, *, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = Dropout(config.attention_dropout)
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Linear(config.width, config.width)

    def forward(self, visits: Tensor, is_visible: Tensor | None) -> Tensor:
        """[B, T, D], visible slots [B, 1, 1, T] or None for causal attention -> [B, T, D]"""
        if is_visible is None:
            is_visible = visits.new_ones(visits.shape[1], visits.shape[1]).tril().bool()  # [T, T]
        return self.mix(self.attend(visits, visits, is_visible))  # [B, T, D]

    def attend(self, slots: Tensor, visits: Tensor, is_visible: Tensor) -> Tensor:
        """Attention from some slots to all visits. [B, m, D], [B, T, D] -> [B, m, D]

        Every slot must attend to at least one visit. Written out because torch's own attention
        draws its dropout number by number, which took a third of a training step.
        """
        query, key, value = (
            part(inputs).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, H, ., D / H]
            for part, inputs in ((self.query, slots), (self.key, visits), (self.value, visits))
        )
        logits = query @ key.mT / math.sqrt(query.shape[-1])  # [B, H, m, T]
        weight = logits.masked_fill(~is_visible, -torch.inf).softmax(dim=-1)
        return (self.dropout(weight) @ value).transpose(1, 2).flatten(2)  # [B, m, D]


class FeedForward(nn.Module):
    """W2 gelu(W1 x), for each visit separately."""

    def __init__(self, *, config: TransformerConfig) -> None:
        super().__init__()
        self.widen = nn.Linear(config.width, config.feed_forward_width)
        self.narrow = nn.Linear(config.feed_forward_width, config.width)

    def forward(self, visits: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, D]"""
        return self.narrow(functional.gelu(self.widen(visits)))


class PostNormBlock(nn.Module):
    """Attention and feed-forward, each added and then normalised."""

    def __init__(self, *, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = Attention(config=config)
        self.attention_norm = nn.LayerNorm(config.width, eps=NORM_EPSILON)
        self.feed_forward = FeedForward(config=config)
        self.feed_forward_norm = nn.LayerNorm(config.width, eps=NORM_EPSILON)
        self.dropout = Dropout(config.dropout)

    def forward(self, visits: Tensor, is_visible: Tensor | None = None) -> Tensor:
        """[B, T, D] -> [B, T, D]"""
        attended = self.dropout(self.attention(visits, is_visible))
        visits = self.attention_norm(visits + attended)
        return self.feed_forward_norm(visits + self.dropout(self.feed_forward(visits)))


class GatedPreNormBlock(nn.Module):
    """Attention and feed-forward of normalised visits, each scaled by a gate and added."""

    def __init__(self, *, config: TransformerConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config=config)
        self.attention_gate = nn.Linear(config.width, config.width)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(config=config)
        self.feed_forward_gate = nn.Linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)

    def forward(self, visits: Tensor, is_visible: Tensor | None = None) -> Tensor:
        """[B, T, D] -> [B, T, D]"""
        attended = self.dropout(self.attention(self.attention_norm(visits), is_visible))
        visits = visits + self.attention_gate(visits).sigmoid() * attended
        fed = self.dropout(self.feed_forward(self.feed_forward_norm(visits)))
        return visits + self.feed_forward_gate(visits).sigmoid() * fed


@torch.no_grad()
def init_normal(module: nn.Module, spread: float = INITIAL_SPREAD) -> None:
    """Draw weights and vectors from N(0, spread), set biases to 0 and norms to 1; for `apply`."""
    if isinstance(module, nn.Linear | nn.Embedding):
        module.weight.normal_(0.0, spread)
    if isinstance(module, nn.LayerNorm):
        module.weight.fill_(1.0)
    if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
        module.bias.zero_()
