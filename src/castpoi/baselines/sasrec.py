"""SASRec: causal self-attention over the last visits (Kang and McAuley 2018).

    x_t = norm(place vector + vector of slot t), then post-norm blocks; state = the last output
    score of a place = state . place vector

As in RecBole 1.2.1 it is trained with the cross-entropy of all places, not with one negative.

Shapes: B histories, T slots, P places, D width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from castpoi.baselines.sequence import SequenceModel
from castpoi.baselines.transformer import (
    NORM_EPSILON,
    PostNormBlock,
    TransformerConfig,
    init_normal,
)
from castpoi.model.dropout import Dropout


@dataclass(frozen=True, kw_only=True)
class SasRecConfig(TransformerConfig):
    """The shape of one SASRec."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""
        return {
            "paper": cls(),
            "tuned": cls(width=128, heads=4, dropout=0.2, attention_dropout=0.1),
        }


class SasRec(SequenceModel):
    """Ranks places by what the last visit finds when it looks back."""

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
        visits: Tensor = self.dropout(self.norm(self.place(rows) + self.slot(slots)))  # [B, T, D]
        for block in self.blocks:
            visits = block(visits)
        return visits
