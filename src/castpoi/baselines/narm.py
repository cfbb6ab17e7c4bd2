"""NARM: a GRU over the visits, and attention from its last output to all outputs.

The last output of the GRU summarises the order of visits (global); a sum of all outputs, weighted
by their match with the last one, summarises their content (local):

    weight of visit j after visit t = v . sigmoid(A h_j + B h_t)
    local_t  = sum over j <= t of weight * h_j
    state_t  = C [local_t, h_t]

The weights are no softmax: they may be negative and need not sum to one. Outputs of a GRU depend on
no later visit, so one pass serves all prefixes of a window, and only the T x T weights are extra.
In training all prefixes of a window therefore share one dropout mask of their place vectors.

Li et al., "Neural Attentive Session-based Recommendation", CIKM 2017; as in RecBole 1.2.1.

Shapes: B histories, T slots, Q prefixes, H size of the memory, D width.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from castpoi.baselines.prefix_weights import prefix_weights
from castpoi.baselines.sequence import (
    Preset,
    SequenceConfig,
    SequenceModel,
    last_of,
    real_slots,
    zero_where_empty,
)
from castpoi.core.config import Layers, Share, Size
from castpoi.model.layers import Dropout


@dataclass(frozen=True, kw_only=True)
class NarmConfig(SequenceConfig):
    """The settings of NARM."""

    tuned: ClassVar[Preset] = {"width": 128, "place_dropout": 0.1}

    memory_width: Size = 128
    """Size of the GRU's output."""
    layers: Layers = 1
    """Layers of the GRU."""
    place_dropout: Share = 0.25
    """Share of the entries of place vectors dropped in training."""
    state_dropout: Share = 0.5
    """Share of the entries of local and global memory dropped in training."""


class Narm(SequenceModel):
    """A GRU over the visits, and attention from the last output to all of them."""

    config_class: ClassVar[type[NarmConfig]] = NarmConfig
    all_positions: ClassVar[bool] = True
    config: NarmConfig

    def __init__(self, *, config: NarmConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        memory = config.memory_width
        self.place_dropout = Dropout(config.place_dropout)
        self.gru = nn.GRU(config.width, memory, config.layers, bias=False, batch_first=True)
        self.key = nn.Linear(memory, memory, bias=False)
        self.query = nn.Linear(memory, memory, bias=False)
        self.weight = nn.Linear(memory, 1, bias=False)
        self.state_dropout = Dropout(config.state_dropout)
        self.out = nn.Linear(2 * memory, config.width, bias=False)
        for part in (self.place, self.key, self.query, self.weight, self.out):
            nn.init.xavier_normal_(part.weight)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        memory = self._memory(rows)  # [B, T, H]
        weights = prefix_weights(self.query(memory), self.key(memory), self.weight.weight)
        return self._out(memory, weights, memory)

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, without those before it. [B, T], [B] -> [B, D]"""
        memory = self._memory(rows)  # [B, T, H]
        last = last_of(memory, lengths).unsqueeze(1)  # [B, 1, H]
        weights = self.weight((self.query(last) + self.key(memory)).sigmoid()).mT  # [B, 1, T]
        weights = weights * real_slots(rows, lengths).unsqueeze(1)
        return zero_where_empty(self._out(memory, weights, last).squeeze(1), lengths)  # [B, D]

    def _memory(self, rows: Tensor) -> Tensor:
        """The GRU's output after every visit. [B, T] -> [B, T, H]"""
        return self.gru(self.place_dropout(self.place(rows)))[0]

    def _out(self, memory: Tensor, weights: Tensor, last: Tensor) -> Tensor:
        """States after Q visits. [B, T, H], [B, Q, T], [B, Q, H] -> [B, Q, D]"""
        both = torch.cat([weights @ memory, last], dim=2)  # [B, Q, 2 H]
        return self.out(self.state_dropout(both))  # [B, Q, D]
