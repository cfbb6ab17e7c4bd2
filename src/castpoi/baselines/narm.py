"""NARM: a recurrent memory of the visits, read again with the last one in mind.

A GRU walks over the visits. Its last output tells where the history has come to (global); a sum
of all outputs, each weighed by how it meets the last one, tells what it has been about (local):

    weight of visit j after visit t = v . sigmoid(A h_j + B h_t)
    local_t  = sum over j <= t of weight * h_j
    state_t  = C [local_t, h_t]

The weights are no softmax: they may be negative and need not sum to one. Outputs of a GRU see no
later visit, so one walk serves all prefixes of a window, and only the T x T weights are new work.
In training all prefixes of a window thereby share which entries of its place vectors are dropped.

Li et al., "Neural Attentive Session-based Recommendation", CIKM 2017; as in RecBole 1.2.1.

Shapes: B histories, T slots, Q prefixes, H size of the memory, D width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from castpoi.baselines.prefix_weights import prefix_weights
from castpoi.baselines.sequence import (
    SequenceModel,
    last_of,
    real_slots,
    zero_where_empty,
)
from castpoi.baselines.sequence_config import SequenceConfig
from castpoi.model.dropout import Dropout


@dataclass(frozen=True, kw_only=True)
class NarmConfig(SequenceConfig):
    """The shape of one NARM; refuses what cannot be built."""

    memory_width: int = 128
    """Size of the GRU's output."""
    layers: int = 1
    """Layers of the GRU."""
    place_dropout: float = 0.25
    """Share of the entries of the visits' place vectors dropped in training."""
    state_dropout: float = 0.5
    """Share of the entries of local and global memory dropped in training."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """RecBole's defaults, and a NARM as wide as CaST-POI."""
        return {"paper": cls(), "tuned": cls(width=128, place_dropout=0.1)}


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
        self.weigh = nn.Linear(memory, 1, bias=False)
        self.state_dropout = Dropout(config.state_dropout)
        self.out = nn.Linear(2 * memory, config.width, bias=False)
        for part in (self.place, self.key, self.query, self.weigh, self.out):
            nn.init.xavier_normal_(part.weight)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        memory = self._memory(rows)  # [B, T, H]
        weights = prefix_weights(self.query(memory), self.key(memory), self.weigh.weight)
        return self._read(memory, weights, memory)

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, without those before it. [B, T], [B] -> [B, D]"""
        memory = self._memory(rows)  # [B, T, H]
        last = last_of(memory, lengths).unsqueeze(1)  # [B, 1, H]
        weights = self.weigh((self.query(last) + self.key(memory)).sigmoid()).mT  # [B, 1, T]
        weights = weights * real_slots(rows, lengths).unsqueeze(1)
        return zero_where_empty(self._read(memory, weights, last).squeeze(1), lengths)  # [B, D]

    def _memory(self, rows: Tensor) -> Tensor:
        """The GRU's output after every visit. [B, T] -> [B, T, H]"""
        memory: Tensor = self.gru(self.place_dropout(self.place(rows)))[0]
        return memory

    def _read(self, memory: Tensor, weights: Tensor, last: Tensor) -> Tensor:
        """States after Q visits. [B, T, H], [B, Q, T], [B, Q, H] -> [B, Q, D]"""
        both = torch.cat([weights @ memory, last], dim=2)  # [B, Q, 2 H]
        state: Tensor = self.out(self.state_dropout(both))  # [B, Q, D]
        return state
