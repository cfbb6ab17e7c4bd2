"""STAMP: attention over the visits, with the mean of the visits and the last visit as the query.

    weight of visit j after visit t = w . sigmoid(A x_j + B x_t + C mean_t + b)
    memory_t = mean_t + sum over j <= t of weight * x_j
    state_t  = tanh(M memory_t) * tanh(N x_t)

x are place vectors, mean_t is the mean of x_1 .. x_t. Apart from the last visit, their order has no
effect. A prefix needs its own mean and its own T weights: cumulative sums give the means of all
prefixes of a window, and a T x T term the weights.

RecBole's STAMP does not separate padding from visits: the empty slots of a short window are visits
to row 0, in the sum of the mean (but not in its count) and in the attention. With `reads_padding`
ours does the same for any prefix: empty slots are alike, so one of them is weighted and multiplied
by their number. Row 0 differs from zero only if the loss has a class for it.

Liu et al., "STAMP: Short-Term Attention/Memory Priority Model for Session-based Recommendation",
KDD 2018; as in RecBole 1.2.1, that is without the sigmoid around the scores.

Shapes: B histories, T slots, D width; ... is B or B, T.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from castpoi.baselines.prefix_weights import prefix_weights
from castpoi.baselines.sequence import (
    PADDING,
    Preset,
    SequenceConfig,
    SequenceModel,
    last_of,
    real_slots,
    zero_where_empty,
)
from castpoi.core.config import Share
from castpoi.model.layers import Dropout

_PLACE_SPREAD, _LAYER_SPREAD = 0.002, 0.05
"""Standard deviations of the initial place vectors and of the initial weights of layers."""


@dataclass(frozen=True, kw_only=True)
class StampConfig(SequenceConfig):
    """The settings of STAMP."""

    paper: ClassVar[Preset] = {"padding_class": True, "reads_padding": True}
    tuned: ClassVar[Preset] = {"width": 128, "place_dropout": 0.1}

    place_dropout: Share = 0.0
    """Share of the entries of place vectors dropped in training; RecBole has none."""
    reads_padding: bool = False
    """Whether the empty slots of a short window are read as visits to row 0, as in RecBole."""


class Stamp(SequenceModel):
    """Attention over the visits; the query is their mean and the last of them."""

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
        self.weight = nn.Linear(width, 1, bias=False)
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
        weights = prefix_weights(query, self.key(visits), self.weight.weight)  # [B, T, T]
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
        weights = self.weight((query.unsqueeze(1) + self.key(visits)).sigmoid())  # [B, T, 1]
        memory = mean + (weights * visits).sum(dim=1) + self._of_padding(query, count)  # [B, D]
        return zero_where_empty(self._out(memory, last), lengths)

    @property
    def _padding(self) -> Tensor:
        """Vector of an empty slot; it is trained as a class, not as a visit. [D]"""
        row = self.place.weight[PADDING].detach()
        return row if self.config.reads_padding else torch.zeros_like(row)

    def _mean(self, total: Tensor, count: Tensor) -> Tensor:
        """The mean of `count` visits with this sum. [..., D], [..., 1] -> [..., D]"""
        return (total + (self.config.window - count) * self._padding) / count

    def _query(self, last: Tensor, mean: Tensor) -> Tensor:
        """[..., D] -> same"""
        return self.last_query(last) + self.mean_query(mean) + self.query_bias

    def _of_padding(self, query: Tensor, count: Tensor) -> Tensor:
        """The weighted sum of all empty slots, which are alike. [..., D], [..., 1] -> [..., D]"""
        weight = self.weight((query + self.key(self._padding)).sigmoid())  # [..., 1]
        return (self.config.window - count) * weight * self._padding  # [..., D]

    def _out(self, memory: Tensor, last: Tensor) -> Tensor:
        """The state. [..., D], [..., D] -> same"""
        return self.memory_out(memory).tanh() * self.last_out(last).tanh()


@torch.no_grad()
def _initialise(part: nn.Module) -> None:
    if isinstance(part, nn.Embedding):
        part.weight.normal_(0.0, _PLACE_SPREAD)
    elif isinstance(part, nn.Linear):
        part.weight.normal_(0.0, _LAYER_SPREAD)
        if part.bias is not None:
            part.bias.zero_()
