"""The transformer of the baselines: visits attend to visits, then each thinks for itself.

    post-norm (SASRec, BERT4Rec, CORE)   x <- norm(x + part(x))
    pre-norm  (eSASRec)                  x <- x + gate(x) * part(norm(x)), a last norm at the end

The gate is a sigmoid of the visit itself (LiGR layers, arXiv 2502.03417). Windows are right-padded,
so a causal visit never sees padding, and no mask of padding is needed.

Shapes: B histories, T slots, D width, H heads, F inner width.
"""

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence_config import SequenceConfig
from castpoi.core.errors import BadInput
from castpoi.model.dropout import Dropout

NORM_EPSILON: Final = 1e-12
"""RecBole's; far below what float32 can tell from 0."""

INITIAL_SPREAD: Final = 0.02
"""Standard deviation of initial weights in RecBole's SASRec and BERT4Rec."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(SequenceConfig):
    """The shape of a model that is built on the transformer."""

    layers: int = 2
    """Blocks of attention and feed-forward."""
    heads: int = 2
    """Attention heads; must divide `width`."""
    feed_forward_width: int = 256
    """Inner size of the feed-forward part."""
    dropout: float = 0.5
    """Share of activations dropped in training."""
    attention_dropout: float = 0.5
    """Share of attention weights dropped in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise BadInput(f"heads={self.heads} must divide width={self.width}")


class Attention(nn.Module):
    """Multi-head attention of visits to visits."""

    def __init__(self, *, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = Dropout(config.attention_dropout)
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Linear(config.width, config.width)

    def forward(self, visits: Tensor, is_visible: Tensor | None) -> Tensor:
        """What each visit finds. [B, T, D], [B, 1, 1, T] or None for causal -> [B, T, D]"""
        if is_visible is None:
            is_visible = visits.new_ones(visits.shape[1], visits.shape[1]).tril().bool()  # [T, T]
        mixed: Tensor = self.mix(self.look(visits, visits, is_visible))  # [B, T, D]
        return mixed

    def look(self, asking: Tensor, visits: Tensor, is_visible: Tensor) -> Tensor:
        """What some slots find among the visits of their window. [B, m, D], [B, T, D] -> [B, m, D]

        Every slot must see something. Written out, because torch's own attention draws its dropout
        number by number, which took a third of a training step.
        """
        query, key, value = (
            part(slots).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, H, ., D / H]
            for part, slots in ((self.query, asking), (self.key, visits), (self.value, visits))
        )
        logits = query @ key.mT / math.sqrt(query.shape[-1])  # [B, H, m, T]
        weight = logits.masked_fill(~is_visible, -torch.inf).softmax(dim=-1)
        found: Tensor = self.dropout(weight) @ value  # [B, H, m, D / H]
        return found.transpose(1, 2).flatten(2)  # [B, m, D]


class FeedForward(nn.Module):
    """W2 gelu(W1 x), each visit for itself."""

    def __init__(self, *, config: TransformerConfig) -> None:
        super().__init__()
        self.widen = nn.Linear(config.width, config.feed_forward_width)
        self.narrow = nn.Linear(config.feed_forward_width, config.width)

    def forward(self, visits: Tensor) -> Tensor:
        """What each visit says about itself. [B, T, D] -> [B, T, D]"""
        said: Tensor = self.narrow(functional.gelu(self.widen(visits)))
        return said


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
        """Let visits look at visits once. [B, T, D] -> [B, T, D]"""
        found = self.dropout(self.attention(visits, is_visible))
        visits = self.attention_norm(visits + found)
        said = self.dropout(self.feed_forward(visits))
        normed: Tensor = self.feed_forward_norm(visits + said)
        return normed


class GatedPreNormBlock(nn.Module):
    """Attention and feed-forward of normalised visits; a gate decides how much is added."""

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
        """Let visits look at visits once. [B, T, D] -> [B, T, D]"""
        found = self.dropout(self.attention(self.attention_norm(visits), is_visible))
        visits = visits + self.attention_gate(visits).sigmoid() * found
        said = self.dropout(self.feed_forward(self.feed_forward_norm(visits)))
        added: Tensor = visits + self.feed_forward_gate(visits).sigmoid() * said
        return added


@torch.no_grad()
def init_normal(module: nn.Module, spread: float = INITIAL_SPREAD) -> None:
    """Draw weights and vectors from N(0, spread), set biases to 0 and norms to 1; for `apply`."""
    if isinstance(module, nn.Linear | nn.Embedding):
        module.weight.normal_(0.0, spread)
    if isinstance(module, nn.LayerNorm):
        module.weight.fill_(1.0)
    if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
        module.bias.zero_()
