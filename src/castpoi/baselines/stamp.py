"""STAMP: the mean of the visits and the last visit, which together weigh the visits again.

    weight of visit j after visit t = w . sigmoid(A x_j + B x_t + C mean_t + b)
    memory_t = mean_t + sum over j <= t of weight * x_j
    state_t  = tanh(M memory_t) * tanh(N x_t)

x are place vectors, mean_t is the mean of x_1 .. x_t. Nothing tells the order of visits but which
is the last. A prefix needs its own mean and its own T weights: cumulative sums give the means of
all prefixes of a window, and a T x T term the weights.

RecBole's STAMP does not tell padding from visits: the free slots of a short window are as many
visits to row 0, in the sum of the mean (but not in its count) and among the weighed. With
`reads_padding` ours does the same, for any prefix: free slots are alike, so one of them is weighed
and counted as often as it occurs. Row 0 differs from zero only where the loss has a class for it.

Liu et al., "STAMP: Short-Term Attention/Memory Priority Model for Session-based Recommendation",
KDD 2018; as in RecBole 1.2.1, that is without the sigmoid around the scores.

Shapes: B histories, T slots, D width; ... is B or B, T.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from castpoi.baselines.prefix_weights import prefix_weights
from castpoi.baselines.sequence import (
    PADDING,
    SequenceModel,
    last_of,
    real_slots,
    zero_where_empty,
)
from castpoi.baselines.sequence_config import SequenceConfig
from castpoi.model.dropout import Dropout

_PLACE_SPREAD, _LAYER_SPREAD = 0.002, 0.05
"""Standard deviations of the first place vectors and of the first weights of layers."""


@dataclass(frozen=True, kw_only=True)
class StampConfig(SequenceConfig):
    """The shape of one STAMP; refuses what cannot be built."""

    place_dropout: float = 0.0
    """Share of the entries of the visits' place vectors dropped in training; RecBole has none."""
    reads_padding: bool = False
    """Whether the free slots of a short window are read as visits to row 0, as in RecBole."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """RecBole's defaults, and a STAMP as wide as CaST-POI that reads visits only."""
        return {
            "paper": cls(padding_class=True, reads_padding=True),
            "tuned": cls(width=128, place_dropout=0.1),
        }


class Stamp(SequenceModel):
    """Attention over the visits, led by their mean and the last of them."""

    config_class: ClassVar[type[StampConfig]] = StampConfig
    all_positions: ClassVar[bool] = True
    config: StampConfig

    def __init__(self, *, config: StampConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        width = config.width
        self.place_dropout = Dropout(config.place_dropout)
        self.key = nn.Linear(width, width, bias=False)
        self.last_query = nn.Linear(width, width, bias=False)
        self.mean_query = nn.Linear(width, width, bias=False)
        self.query_bias = nn.Parameter(torch.zeros(width))
        self.weigh = nn.Linear(width, 1, bias=False)
        self.memory_out = nn.Linear(width, width)
        self.last_out = nn.Linear(width, width)
        self.apply(_initialise)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        visits = self.place_dropout(self.place(rows))  # [B, T, D]
        count = torch.arange(1, rows.shape[1] + 1, device=rows.device).unsqueeze(1)  # [T, 1]
        mean = self._mean(visits.cumsum(dim=1), count)  # [B, T, D]
        query = self._query(visits, mean)  # [B, T, D]
        weights = prefix_weights(query, self.key(visits), self.weigh.weight)  # [B, T, T]
        memory = mean + weights @ visits + self._of_padding(query, count)
        return self._out(memory, visits)

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, without those before it. [B, T], [B] -> [B, D]"""
        is_real = real_slots(rows, lengths).unsqueeze(2)  # [B, T, 1]
        visits = self.place_dropout(self.place(rows)) * is_real  # [B, T, D]
        last = last_of(visits, lengths)  # [B, D]
        count = lengths.clamp(min=1).unsqueeze(1)  # [B, 1]
        mean = self._mean(visits.sum(dim=1), count)  # [B, D]
        query = self._query(last, mean)  # [B, D]
        weights = self.weigh((query.unsqueeze(1) + self.key(visits)).sigmoid())  # [B, T, 1]
        memory = mean + (weights * visits).sum(dim=1) + self._of_padding(query, count)  # [B, D]
        return zero_where_empty(self._out(memory, last), lengths)

    @property
    def _padding(self) -> Tensor:
        """What a free slot holds; as a class it learns, as a visit it does not. [D]"""
        row = self.place.weight[PADDING].detach()
        return row if self.config.reads_padding else torch.zeros_like(row)

    def _mean(self, total: Tensor, count: Tensor) -> Tensor:
        """The mean of so many visits with this sum. [..., D], [..., 1] -> [..., D]"""
        return (total + (self.config.window - count) * self._padding) / count

    def _query(self, last: Tensor, mean: Tensor) -> Tensor:
        """What visits are weighed by. [..., D] -> same"""
        query: Tensor = self.last_query(last) + self.mean_query(mean) + self.query_bias
        return query

    def _of_padding(self, query: Tensor, count: Tensor) -> Tensor:
        """The weighed sum of all free slots, which are alike. [..., D], [..., 1] -> [..., D]"""
        weight = self.weigh((query + self.key(self._padding)).sigmoid())  # [..., 1]
        of_padding: Tensor = (self.config.window - count) * weight * self._padding  # [..., D]
        return of_padding

    def _out(self, memory: Tensor, last: Tensor) -> Tensor:
        """The state. [..., D], [..., D] -> same"""
        state: Tensor = self.memory_out(memory).tanh() * self.last_out(last).tanh()
        return state


@torch.no_grad()
def _initialise(part: nn.Module) -> None:
    if isinstance(part, nn.Embedding):
        part.weight.normal_(0.0, _PLACE_SPREAD)
    elif isinstance(part, nn.Linear):
        part.weight.normal_(0.0, _LAYER_SPREAD)
        if part.bias is not None:
            part.bias.zero_()
