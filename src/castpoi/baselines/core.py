"""CORE: a history is a mean of its own place vectors (Hou, Hu, Zhang and Zhao 2022).

A transformer only decides how much each visit weighs; the state never leaves the space in which
places live, and is compared with them by the angle alone:

    state = normal(sum of softmax(weight) * place vector),  score = state . normal(place) / 0.07

RecBole normalises places when it ranks all of them, but not when it scores a single one; we
always do.

Shapes: B histories, T slots, P places, D width.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import SequenceModel
from castpoi.baselines.transformer import NORM_EPSILON, PostNormBlock, TransformerConfig
from castpoi.model.dropout import Dropout


@dataclass(frozen=True, kw_only=True)
class CoreConfig(TransformerConfig):
    """The shape of one CORE."""

    history_dropout: float = 0.2
    """Share of the vectors of visits dropped in training."""
    candidate_dropout: float = 0.2
    """Share of the vectors of candidates dropped in training."""
    temperature: float = 0.07
    """What cosines are divided by."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""
        return {
            "paper": cls(),
            "tuned": cls(
                width=128, heads=4, dropout=0.3, attention_dropout=0.1, history_dropout=0.1
            ),
        }


class Core(SequenceModel):
    """Ranks places by their angle to a weighted mean of the places visited."""

    config_class: ClassVar[type[CoreConfig]] = CoreConfig
    all_positions: ClassVar[bool] = True

    def __init__(self, *, config: CoreConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.temperature = config.temperature
        self.slot = nn.Embedding(config.window, config.width)
        self.norm = nn.LayerNorm(config.width, eps=NORM_EPSILON)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(PostNormBlock(config=config) for _ in range(config.layers))
        self.weight = nn.Linear(config.width, 1)
        self.history_dropout = Dropout(config.history_dropout)
        self.candidate_dropout = Dropout(config.candidate_dropout)
        self._begin()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        vectors = self.history_dropout(self.place(rows))  # [B, T, D]
        shares = self._shares(vectors)  # [B, T, T]
        return functional.normalize(shares @ vectors, dim=-1)

    def candidate_vectors(self) -> Tensor:
        """Places on the unit sphere, over the temperature. [P + 1, D]"""
        vectors = self.candidate_dropout(self.place.weight)
        return functional.normalize(vectors, dim=-1) / self.temperature

    def _shares(self, vectors: Tensor) -> Tensor:
        """How much each prefix (first) gives to each of its visits. [B, T, D] -> [B, T, T]"""
        slots = torch.arange(vectors.shape[1], device=vectors.device)
        visits = self.dropout(self.norm(vectors + self.slot(slots)))  # [B, T, D]
        for block in self.blocks:
            visits = block(visits)
        weight = self.weight(visits).mT  # [B, 1, T]
        # a softmax a prefix: running sums would be cheaper and lose weak visits before a strong one
        is_later = slots > slots.unsqueeze(1)  # [T, T]
        shares: Tensor = weight.masked_fill(is_later, -math.inf).softmax(dim=-1)  # [B, T, T]
        return shares

    @torch.no_grad()
    def _begin(self) -> None:
        """All weights, those of norms too, evenly from a range that the width gives."""
        most = 1 / math.sqrt(self.config.width)
        for weight in self.parameters():
            weight.uniform_(-most, most)
        self.clear_padding()
