"""CORE: the state is a weighted mean of place vectors (Hou, Hu, Zhang and Zhao 2022).

A transformer computes only the weights; the state stays in the space of place vectors and is
compared with them by the angle:

    state = normal(sum of softmax(weight) * place vector),  score = state . normal(place) / 0.07

RecBole normalises places when it ranks all of them, but not when it scores a single one; we
always do.

Shapes: B histories, T slots, P places, D width.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import Preset, SequenceModel
from castpoi.baselines.transformer import NORM_EPSILON, PostNormBlock, TransformerConfig
from castpoi.core.config import Positive, Share
from castpoi.model.layers import Dropout


@dataclass(frozen=True, kw_only=True)
class CoreConfig(TransformerConfig):
    """The settings of CORE."""

    tuned: ClassVar[Preset] = {
        "width": 128,
        "heads": 4,
        "dropout": 0.3,
        "attention_dropout": 0.1,
        "history_dropout": 0.1,
    }

    history_dropout: Share = 0.2
    """Share of the vectors of visits dropped in training."""
    candidate_dropout: Share = 0.2
    """Share of the vectors of candidates dropped in training."""
    temperature: Positive = 0.07
    """Divisor of cosines."""


class Core(SequenceModel):
    """Ranks places by the angle between their vector and a weighted mean of visited places."""

    config_class: ClassVar[type[CoreConfig]] = CoreConfig
    config: CoreConfig
    all_positions: ClassVar[bool] = True

    def __init__(self, *, config: CoreConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.slot = nn.Embedding(config.window, config.width)
        self.norm = nn.LayerNorm(config.width, eps=NORM_EPSILON)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(PostNormBlock(config=config) for _ in range(config.layers))
        self.weight = nn.Linear(config.width, 1)
        self.history_dropout = Dropout(config.history_dropout)
        self.candidate_dropout = Dropout(config.candidate_dropout)
        self._initialise()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        vectors = self.history_dropout(self.place(rows))  # [B, T, D]
        shares = self._shares(vectors)  # [B, T, T]
        return functional.normalize(shares @ vectors, dim=-1)

    def candidate_vectors(self) -> Tensor:
        """Normalised place vectors, divided by the temperature. [P + 1, D]"""
        vectors = self.candidate_dropout(self.place.weight)
        return functional.normalize(vectors, dim=-1) / self.config.temperature

    def _shares(self, vectors: Tensor) -> Tensor:
        """Weight of each visit in each prefix (first). [B, T, D] -> [B, T, T]"""
        slots = torch.arange(vectors.shape[1], device=vectors.device)
        visits = self.dropout(self.norm(vectors + self.slot(slots)))  # [B, T, D]
        for block in self.blocks:
            visits = block(visits)
        weight = self.weight(visits).mT  # [B, 1, T]
        # one softmax per prefix: running sums would be cheaper, but lose weak visits next to strong
        is_later = slots > slots.unsqueeze(1)  # [T, T]
        return weight.masked_fill(is_later, -math.inf).softmax(dim=-1)  # [B, T, T]

    @torch.no_grad()
    def _initialise(self) -> None:
        """Draw all weights, those of norms too, evenly from a range given by the width."""
        most = 1 / math.sqrt(self.config.width)
        for weight in self.parameters():
            weight.uniform_(-most, most)
        self.clear_padding()
