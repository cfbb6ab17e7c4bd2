"""SASRec: causal self-attention over the last visits (Kang and McAuley 2018), and eSASRec.

    SASRec    x_t = norm(place vector + vector of slot t), then post-norm blocks
    eSASRec   x_t = place vector + vector of slot t, then gated pre-norm blocks and a norm

The state is the last output; the score of a place is state . place vector. As in RecBole 1.2.1,
SASRec is trained with the cross-entropy over all places, not with one negative.

eSASRec (arXiv 2508.06450) adds what later replications found to help: normalisation before each
part instead of after it, gates that scale what a part adds (LiGR layers), and more negatives. We
use the softmax over all places, of which their sampled softmax is an estimate; so there is no
overconfidence of the binary cross-entropy to correct as in gSASRec (arXiv 2308.07192). We use the
gelu of our SASRec instead of their SwiGLU, so that only the layers differ. eSASRec is not among
the paper's baselines; its preset `paper` has the size of the paper's SASRec.

Shapes: B histories, T slots, P places, D width.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from castpoi.baselines.sequence import Preset, SequenceModel
from castpoi.baselines.transformer import (
    NORM_EPSILON,
    GatedPreNormBlock,
    PostNormBlock,
    TransformerConfig,
    init_normal,
)
from castpoi.core.config import Share
from castpoi.model.layers import Dropout


@dataclass(frozen=True, kw_only=True)
class SasRecConfig(TransformerConfig):
    """The settings of SASRec."""

    tuned: ClassVar[Preset] = {"width": 128, "heads": 4, "dropout": 0.2, "attention_dropout": 0.1}


class SasRec(SequenceModel):
    """Ranks places by the output of causal self-attention at the last visit."""

    config_class: ClassVar[type[SasRecConfig]] = SasRecConfig
    all_positions: ClassVar[bool] = True

    def __init__(self, *, config: SasRecConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.slot = nn.Embedding(config.window, config.width)
        self.norm = nn.LayerNorm(config.width, eps=NORM_EPSILON)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(PostNormBlock(config=config) for _ in range(config.layers))
        self.apply(init_normal)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        slots = torch.arange(rows.shape[1], device=rows.device)
        visits = self.dropout(self.norm(self.place(rows) + self.slot(slots)))  # [B, T, D]
        for block in self.blocks:
            visits = block(visits)
        return visits


@dataclass(frozen=True, kw_only=True)
class ESasRecConfig(TransformerConfig):
    """The settings of eSASRec."""

    tuned: ClassVar[Preset] = {"width": 128, "heads": 4, "feed_forward_width": 512}

    dropout: Share = 0.2
    """Share of activations dropped in training."""
    attention_dropout: Share = 0.2
    """Share of attention weights dropped in training."""


class ESasRec(SequenceModel):
    """Ranks places by the output of gated causal self-attention at the last visit."""

    config_class: ClassVar[type[ESasRecConfig]] = ESasRecConfig
    all_positions: ClassVar[bool] = True

    def __init__(self, *, config: ESasRecConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.slot = nn.Embedding(config.window, config.width)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(GatedPreNormBlock(config=config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.apply(init_normal)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        slots = torch.arange(rows.shape[1], device=rows.device)
        visits = self.dropout(self.place(rows) + self.slot(slots))  # [B, T, D]
        for block in self.blocks:
            visits = block(visits)
        return self.norm(visits)
