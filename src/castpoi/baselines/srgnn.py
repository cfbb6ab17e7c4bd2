"""SR-GNN: a history is a small graph of places that exchange messages with their neighbours.

Wu et al., "Session-based Recommendation with Graph Neural Networks", AAAI 2019. A visit to one
place after another is an edge, which counts once however often it occurs.

    visits  3 7 3 9      edges  3 -> 7, 7 -> 3, 3 -> 9

Every place receives the mean of the places before it and the mean of the places after it, and is
updated by a gated recurrent unit. The state is a sum of all visits, weighted by the last one.

A graph has one node per place of a history, not per slot of a window (15 places in 50 visits on
NYC), and the nodes of a whole batch are laid end to end: no loop and no padding.

Shapes: B histories, T slots, V visits, N nodes and E edges of a batch, D width.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import (
    Preset,
    SequenceConfig,
    SequenceModel,
    real_slots,
    zero_where_empty,
)
from castpoi.core.config import Layers, Share
from castpoi.model.layers import Dropout


@dataclass(frozen=True, kw_only=True)
class SrGnnConfig(SequenceConfig):
    """The settings of SR-GNN."""

    tuned: ClassVar[Preset] = {"width": 128, "dropout": 0.2}

    steps: Layers = 1
    """Number of exchanges between neighbours."""
    dropout: Share = 0.0
    """Share of place vectors and of the input of the last layer dropped in training; RecBole has
    none."""


@dataclass(frozen=True, kw_only=True)
class VisitGraph:
    """The graphs of a batch of histories, their nodes end to end."""

    row: Tensor  # row of each node's place [N]
    owner: Tensor  # history of each node, ascending [N]
    visits: Tensor  # number of visits at each node [N]
    last: Tensor  # node of the last visit of each history; any node for an empty one [B]
    before: "Neighbours"  # places from which each node was reached
    after: "Neighbours"  # places reached from each node

    @classmethod
    def of(cls, rows: Tensor, lengths: Tensor) -> "VisitGraph":
        """The graphs of right-padded windows. [B, T], [B]"""
        is_real = real_slots(rows, lengths)  # [B, T]
        table = int(rows.max()) + 1
        owners = torch.arange(len(rows), device=rows.device).unsqueeze(1)  # [B, 1]
        keys = (owners * table + rows)[is_real]  # [V]
        # [N], [V], [N]
        nodes, node, visits = torch.unique(keys, return_inverse=True, return_counts=True)
        owner = nodes // table  # [N]
        begin, end = node[:-1], node[1:]
        is_move = owner[begin] == owner[end]  # not from one history into the next
        begin, end = begin[is_move], end[is_move]
        last = (lengths.cumsum(0) - 1).clamp(min=0)  # [B]
        return cls(
            row=nodes % table,
            owner=owner,
            visits=visits,
            last=node[last],
            before=Neighbours.of(end, begin, nodes=len(nodes)),
            after=Neighbours.of(begin, end, nodes=len(nodes)),
        )


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The neighbours of every node on one side, each once."""

    node: Tensor  # neighbours of node 0, then of node 1, and so on [E]
    starts: Tensor  # index of the first neighbour of each node [N]

    @classmethod
    def of(cls, receiver: Tensor, neighbour: Tensor, *, nodes: int) -> "Neighbours":
        """Create the graph of pairs of nodes, in any order and with repetitions."""
        pairs = torch.unique(receiver * nodes + neighbour)  # sorted by receiver first
        every = torch.arange(nodes, device=pairs.device)
        return cls(node=pairs % nodes, starts=torch.searchsorted(pairs, every * nodes))

    def mean(self, vectors: Tensor) -> Tensor:
        """The mean vector of each node's neighbours, zero if it has none. [N, D] -> [N, D]"""
        return functional.embedding_bag(self.node, vectors, self.starts, mode="mean")


class SrGnn(SequenceModel):
    """Ranks places by the graph of a history and its last visit."""

    config_class: ClassVar[type[SrGnnConfig]] = SrGnnConfig
    config: SrGnnConfig

    def __init__(self, *, config: SrGnnConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        width = config.width
        self.from_before = nn.Linear(width, width)
        self.from_after = nn.Linear(width, width)
        self.bias_before = nn.Parameter(torch.empty(width))
        self.bias_after = nn.Parameter(torch.empty(width))
        self.update = nn.GRUCell(2 * width, width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.weight = nn.Linear(width, 1, bias=False)
        self.out = nn.Linear(2 * width, width)
        self.dropout = Dropout(config.dropout)
        bound = 1 / math.sqrt(width)
        for weight in self.parameters():
            nn.init.uniform_(weight, -bound, bound)
        self.clear_padding()

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero for an empty history. [B, T], [B] -> [B, D]"""
        if not lengths.any():
            return self.place.weight.new_zeros(len(rows), self.place.embedding_dim)
        graph = VisitGraph.of(rows, lengths)
        vectors = self.dropout(self.place(graph.row))  # [N, D]
        for _ in range(self.config.steps):
            vectors = self._exchange(vectors, graph)
        last = vectors[graph.last]  # [B, D]
        both = torch.cat([self._whole(vectors, last, graph), last], dim=1)  # [B, 2 D]
        return zero_where_empty(self.out(self.dropout(both)), lengths)

    def _exchange(self, vectors: Tensor, graph: VisitGraph) -> Tensor:
        """Update each node from its neighbours. [N, D] -> [N, D]"""
        before = graph.before.mean(self.from_before(vectors)) + self.bias_before
        after = graph.after.mean(self.from_after(vectors)) + self.bias_after
        return self.update(torch.cat([before, after], dim=1), vectors)

    def _whole(self, vectors: Tensor, last: Tensor, graph: VisitGraph) -> Tensor:
        """All visits of each history, weighted by its last one. [N, D], [B, D] -> [B, D]"""
        query = self.query(last)[graph.owner]  # [N, D]
        weight = self.weight(torch.sigmoid(query + self.key(vectors)))  # [N, 1]
        weighted = weight * graph.visits.unsqueeze(1) * vectors  # [N, D]
        return torch.zeros_like(last).index_add(0, graph.owner, weighted)
