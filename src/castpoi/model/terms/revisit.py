"""The revisit gate: the weight of past visits to a candidate, given the state of the user.

    rho_u(c) = w(h_u) . f                             f = [ log(1 + visits), recency, visited ]
             + MLP( A f + B h_u + C e_c )             with deep layers (ours), f with all habits

The features (`features/known.py`) are counted, not learned; they are zero for all places but the
known ones, so only those are kept. The gate of the paper weighs each feature separately: many
visits long ago and few visits lately cannot mean more together than separately, and they mean the
same at any place. The deep layers combine the features with each other and with the place.

Shapes: B histories (or any positions), E (history, known place) pairs, F features, P places, D
width, W inner width.
"""

from collections.abc import Iterable
from typing import ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.features.known import FEATURES
from castpoi.model.layers import gate_layers
from castpoi.model.terms.base import ScoreInputs, Term

_DEEP_WIDTH: Final = 64


class RevisitGate(Term):
    """Weighs return against discovery; one value for each known place."""

    meaning: ClassVar[str] = "How often and how recently this person went to this place"

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets | None = None) -> None:
        super().__init__(config=config)
        features = FEATURES[config.revisit_features]
        self.weigh = gate_layers(width=config.width, weights=features)
        self.deep = _DeepLayers(config=config) if config.deep_revisits else None

    def compact(self, inputs: ScoreInputs) -> Tensor:
        """The term of each known place. -> [E]"""
        known, weights = inputs.known, self.weigh(inputs.state)  # [B, F]
        values = (weights[known.owner] * known.features).sum(dim=-1)  # [E]
        return values if self.deep is None else values + self.deep(inputs)

    def index(self, inputs: ScoreInputs) -> Tensor:
        """The flat position of each known place in the matrix of scores. -> [E]"""
        return inputs.known.owner * len(inputs.table) + inputs.known.place

    def split(
        self, compact: Tensor, index: Tensor, size: int, scores: torch.Size
    ) -> Iterable[tuple[Tensor, Tensor]]:
        """See `Term`; the pairs of a history are adjacent."""
        step = size * scores[1]
        block = index // step  # [E]
        sizes = block.bincount(minlength=-(-scores[0] // size)).tolist()
        return zip(compact.split(sizes), (index - block * step).split(sizes), strict=True)

    def add_to_(self, scores: Tensor, compact: Tensor, index: Tensor) -> None:
        """See `Term`. [B, P], [E], [E]"""
        scores.view(-1).index_add_(0, index, compact)

    def reduce(self, grad: Tensor, compact: Tensor, index: Tensor) -> Tensor:
        """See `Term`. [B, P], [E], [E] -> [E]"""
        return grad.view(-1)[index]


class _DeepLayers(nn.Module):
    """Combines the features of a pair, the user and the place."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.features = nn.Linear(FEATURES[config.revisit_features], _DEEP_WIDTH)
        self.user = nn.Linear(config.width, _DEEP_WIDTH, bias=False)
        self.place = nn.Linear(config.width, _DEEP_WIDTH, bias=False)
        self.mix = nn.Linear(_DEEP_WIDTH, _DEEP_WIDTH)
        self.last = nn.Linear(_DEEP_WIDTH, 1, bias=False)
        nn.init.zeros_(self.last.weight)  # starts as the gate of the paper

    def forward(self, inputs: ScoreInputs) -> Tensor:
        """The deep part of each known place. -> [E]"""
        known, vectors, row = inputs.known, inputs.table.vectors, inputs.known.place + 1
        inner = self.features(known.features) + self.user(inputs.state)[known.owner]  # [E, W]
        # a request has fewer pairs than the city has places; training keeps one order of sums
        few = not self.training and len(row) < len(vectors)
        of_place = self.place(vectors[row]) if few else self.place(vectors)[row]  # [E, W]
        inner = functional.gelu(inner + of_place)
        return self.last(functional.gelu(self.mix(inner))).squeeze(1)  # [E]
