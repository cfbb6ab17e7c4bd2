"""HSTU: attention without a softmax, biased by position and time, and gated.

    x          sqrt(D) * place vector + vector of the slot, then blocks of

    u, v, q, k = silu(norm(x) W)
    weight_tj  = silu(q_t . k_j + position[t - j] + time[bucket of t's time - j's time]) / window
    x_t       <- x_t + O (u_t * norm(sum over j <= t of weight_tj v_j)) + o

The weights do not sum to one, so a state can count visits. A bucket is a range of the logarithm of
seconds. The score is the cosine of state and place, divided by a temperature. Their code reads the
time of the *next* visit in place of t's, also of the target when it is evaluated; ours never does.
Their loss is a softmax over sampled places, ours over all.

Zhai et al. 2024, arXiv 2402.17152.

Shapes: B histories, T slots, H heads, P places, D width.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import Preset, SequenceModel
from castpoi.baselines.transformer import INITIAL_SPREAD, AttentionConfig
from castpoi.core.config import Positive, Share
from castpoi.model.layers import Dropout

TIME_BUCKETS: Final = 128
_BUCKET_WIDTH: Final = 0.301
"""Of the natural logarithm of seconds, as in their code."""


@dataclass(frozen=True, kw_only=True)
class HstuConfig(AttentionConfig):
    """The settings of HSTU."""

    tuned: ClassVar[Preset] = {"width": 128, "heads": 4}

    dropout: Share = 0.2
    """Share of the activations dropped in training."""
    temperature: Positive = 0.05
    """Divisor of cosines."""


class HstuBlock(nn.Module):
    """Gated attention with pointwise weights, added to its input."""

    def __init__(self, *, config: HstuConfig) -> None:
        super().__init__()
        self.heads, self.window = config.heads, config.window
        self.widen = nn.Linear(config.width, 4 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width)
        self.position = nn.Parameter(INITIAL_SPREAD * torch.randn(config.window))
        self.time = nn.Parameter(INITIAL_SPREAD * torch.randn(TIME_BUCKETS))
        self.dropout = Dropout(config.dropout)
        nn.init.normal_(self.widen.weight, std=INITIAL_SPREAD)
        nn.init.xavier_uniform_(self.out.weight)

    def forward(self, visits: Tensor, distance: Tensor, bucket: Tensor) -> Tensor:
        """[B, T, D], slots between visits [T, T], bucket of their times [B, T, T] -> [B, T, D]"""
        gate, value, query, key = functional.silu(self.widen(_norm(visits))).chunk(4, dim=-1)
        value, query, key = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, H, T, D / H]
            for each in (value, query, key)
        )
        bias = self.position[distance.clamp(min=0)] + self.time[bucket]  # [B, T, T]
        weight = functional.silu(query @ key.mT + bias.unsqueeze(1)) / self.window  # [B, H, T, T]
        attended = (weight.masked_fill(distance < 0, 0.0) @ value).transpose(1, 2).flatten(2)
        return visits + self.out(self.dropout(gate * _norm(attended)))  # [B, T, D]


class Hstu(SequenceModel):
    """Ranks places by the angle to the output of gated pointwise attention at the last visit."""

    config_class: ClassVar[type[HstuConfig]] = HstuConfig
    config: HstuConfig
    all_positions: ClassVar[bool] = True
    reads_times: ClassVar[bool] = True

    def __init__(self, *, config: HstuConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.slot = nn.Embedding(config.window, config.width)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(HstuBlock(config=config) for _ in range(config.layers))
        for table in (self.place, self.slot):
            nn.init.normal_(table.weight, std=INITIAL_SPREAD)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. Rows and seconds [B, T, 2], [B] -> [B, T, D]"""
        place, seconds = rows.unbind(dim=-1)  # [B, T]
        slots = torch.arange(place.shape[1], device=place.device)
        distance = slots.unsqueeze(1) - slots  # [T, T]
        gap = (seconds.unsqueeze(2) - seconds.unsqueeze(1)).clamp(min=1)  # [B, T, T]
        bucket = (gap.log() / _BUCKET_WIDTH).long().clamp(max=TIME_BUCKETS - 1)
        visits = math.sqrt(self.config.width) * self.place(place) + self.slot(slots)  # [B, T, D]
        visits = self.dropout(visits)
        for block in self.blocks:
            visits = block(visits, distance, bucket)
        return functional.normalize(visits, dim=-1)

    def candidate_vectors(self) -> Tensor:
        """Normalised place vectors, divided by the temperature. [P + 1, D]"""
        return functional.normalize(self.place.weight, dim=-1) / self.config.temperature


def _norm(visits: Tensor) -> Tensor:
    """Layer normalisation without weights. [B, T, D] -> same"""
    return functional.layer_norm(visits, visits.shape[-1:])
