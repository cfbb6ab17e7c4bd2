"""The reader: every candidate place attends to the visits of the trajectory.

    CCAttn = softmax( Q K^T / sqrt(d_h) + B + M' ) V           queries of candidates, keys of visits
    U~     = LN_1( U + CCAttn(U, X, X; B, M) )
    U'     = LN_2( U~ + FFN(U~) )                              U^(0) are the candidates' vectors
    r      = MLP [ z ; e_c ; z * e_c ]                         z is the last U'
    term   = gamma r

This is the reader of the paper, equation by equation, but for null attention (below);
`reader_fast.py` computes the same for all places of a city with far less work. With relative
positions the states do not show which of them is the last, so the reader adds a learned vector to
each state, by the number of visits since.

B has two biases: how old a visit is, and how far it is from the candidate. Each is one learned
scalar a bucket, shared by heads and layers: the same family of functions as the paper's embedding
of a bucket projected to a scalar. From zero, training is as likely to attend to far visits as to
near ones, since the head can use either; the bias of distance may therefore start by preferring
near visits (`ModelConfig.spatial_start`).

A softmax over visits compares distances only with one another: a candidate near all visits attends
like one far from all. With null attention (`null_attention`, ours), an extra key of value zero, the
attention that a candidate gives to any visit distinguishes the two.

Shapes: B histories, C candidates, T slots, D width, H heads, N layers, Q prefixes, L window.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import Tensor, nn

from castpoi.checkins.record import HOUR_US
from castpoi.geo.distance import SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS
from castpoi.model.attention import MASKED, attend
from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.layers import Dropout, FeedForward, has_float64
from castpoi.model.terms.base import Encoded

_NULL_LOGIT: Final = 2.5  # of null attention at the start: as much as twelve visits of no bias


class TemporalBias(nn.Module):
    """One scalar for each bucket of a visit's age; the same for every candidate."""

    edges_us: Tensor

    def __init__(self, *, edges_hours: tuple[float, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(len(edges_hours) + 1))
        edges = torch.tensor([round(hours * HOUR_US) for hours in edges_hours])
        self.register_buffer("edges_us", edges, persistent=False)

    def forward(self, age_us: Tensor) -> Tensor:
        """The bias of visits of this age; an edge belongs to the bucket above. [...] -> [...]"""
        # whole microseconds, so that no rounding moves a visit over an edge
        return self.weight[torch.bucketize(age_us.contiguous(), self.edges_us, right=True)]


class SpatialBias(nn.Module):
    """One scalar for each bucket of the distance between a visit and a candidate."""

    def __init__(self, *, edges_km: tuple[float, ...], nearest: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(nearest, -nearest, len(edges_km) + 1))

    def forward(self, bucket: Tensor) -> Tensor:
        """The bias of pairs in these buckets. [...] -> [...]"""
        look_up: Callable[[Tensor, Tensor], Tensor] = _LookUp.apply
        return look_up(self.weight, bucket)


class _LookUp(torch.autograd.Function):
    """weight[bucket] with a gradient that is summed in one pass."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bucket: Tensor) -> Tensor:
        ctx.save_for_backward(bucket)
        ctx.buckets = len(weight)
        return weight.index_select(0, bucket.reshape(-1).int()).view(bucket.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,) = grads
        (bucket,) = ctx.saved_tensors
        # a running sum of millions of small numbers: in float64, where the device has it
        summands = grad.flatten().to(torch.float64 if has_float64(grad.device) else torch.float32)
        exact = torch.bincount(bucket.flatten(), summands, minlength=ctx.buckets)
        return exact.to(grad.dtype), None


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Keys and values of visits in one layer; the values of empty slots are zero."""

    key: Tensor  # divided by sqrt(d_h) [B, T, D]
    value: Tensor  # [B, T, D]


class CandidateAttention(nn.Module):
    """Attention with queries of candidates, and keys and values of visits."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        # a bias would add the same to every logit of a row, which a softmax over visits cancels;
        # with null attention it would matter, and is left out all the same
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Linear(config.width, config.width)
        self.null = nn.Parameter(torch.tensor(_NULL_LOGIT)) if config.null_attention else None

    def keys(self, visits: Tensor) -> Tensor:
        """K / sqrt(d_h); there are fewer visits than pairs to divide. [..., D] -> [..., D]"""
        keys: Tensor = self.key(visits)
        return keys / math.sqrt(keys.shape[-1] // self.heads)

    def forward(self, candidates: Tensor, memory: Memory, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Attended values, and attention weights.

        [B, C, D], memory of T visits, [B, C, T] -> [B, C, D], [B, H, C, T]
        """
        query = self.query(candidates)  # [B, C, D]
        found, attention = attend(
            query, memory.key, memory.value, bias, self.null, heads=self.heads
        )
        return self.mix(found), attention


class ReaderBlock(nn.Module):
    """Attention and a feed-forward layer, each added and normalised."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.attention = CandidateAttention(config=config)
        self.attention_norm = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(
            width=config.width, inner_width=config.feed_forward_width, dropout=config.dropout
        )
        self.feed_forward_norm = nn.LayerNorm(config.width)

    def forward(self, candidates: Tensor, memory: Memory, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Candidates after one layer, and attention weights; shapes as in the attention."""
        found, attention = self.attention(candidates, memory, bias)
        candidates = self.attention_norm(candidates + found)
        return self.feed_forward_norm(candidates + self.feed_forward(candidates)), attention


class ReaderLayers(nn.Module):
    """Layers in which candidates attend to the same visits."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ReaderBlock(config=config) for _ in range(config.reader_layers))
        self.offset = None  # a vector for each number of visits since, the last visit's last [L, D]
        if config.positions == "relative":
            self.offset = nn.Parameter(torch.empty(config.window, config.width))
            nn.init.normal_(self.offset, std=0.02)

    def __iter__(self) -> Any:
        return iter(self.blocks)

    def with_offsets(self, visits: Tensor) -> Tensor:
        """States of visits with the vectors of their offsets. [..., T, D] -> [..., T, D]"""
        return visits if self.offset is None else visits + self.offset[-visits.shape[-2] :]

    def memories(self, visits: Tensor, is_real: Tensor) -> list[Memory]:
        """Keys and values of visits, one memory a layer. [B, T, D], [B, T] -> memories"""
        visits, is_real = self.with_offsets(visits), is_real.unsqueeze(-1)
        attentions = [block.attention for block in self]
        return [
            Memory(key=each.keys(visits), value=each.value(visits) * is_real) for each in attentions
        ]

    def memories_of_prefixes(self, visits: Tensor, slots: Tensor) -> list[Memory]:
        """Keys and values of the last visits of many prefixes, each prefix given by its slots.

        They are computed once for each visit, however many prefixes contain it. Slots are counted
        through all windows; empty ones must be masked.
        [B, T, D], [Q, L] -> memories of Q prefixes, L visits each
        """
        memories = []
        for attention in (block.attention for block in self):
            key, value = (
                each.flatten(0, 1).index_select(0, slots.flatten()).view(*slots.shape, -1)
                for each in (attention.keys(visits), attention.value(visits))
            )  # [Q, L, D]
            if self.offset is not None:
                key = key + attention.keys(self.offset)
                value = value + self.offset @ attention.value.weight.mT
            memories.append(Memory(key=key, value=value))
        return memories


class ReaderHead(nn.Module):
    """Two layers over the candidate's view of the user, the candidate, and their product."""

    def __init__(self, *, width: int, dropout: float) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * width, width)
        self.activation = nn.GELU()
        self.dropout = Dropout(dropout)
        self.last = nn.Linear(width, 1)

    def forward(self, views: Tensor, candidates: Tensor) -> Tensor:
        """One number for each candidate. [B, C, D], [B, C, D] -> [B, C]"""
        signals = torch.cat([views, candidates, views * candidates], dim=-1)  # [B, C, 3 D]
        return self.last(self.dropout(self.activation(self.mix(signals)))).squeeze(-1)


class Reader(nn.Module):
    """The candidate-conditioned term: biases, layers, head and gamma."""

    meaning: ClassVar[str] = "How well the place fits the visits that it attends to"

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets) -> None:
        super().__init__()
        self.distances = distances
        self.temporal_bias = (
            TemporalBias(edges_hours=TEMPORAL_BIAS_EDGES_HOURS) if config.temporal_bias else None
        )
        nearest = 1.0 if config.spatial_start == "near" else 0.0
        self.spatial_bias = (
            SpatialBias(edges_km=SPATIAL_BIAS_EDGES_KM, nearest=nearest)
            if config.spatial_bias
            else None
        )
        self.layers = ReaderLayers(config=config)
        self.head = ReaderHead(width=config.width, dropout=config.dropout)
        self.gamma = nn.Parameter(torch.tensor(0.0 if config.gamma_start == "zero" else 1.0))
        if config.gamma_start == "one":
            nn.init.zeros_(self.head.last.weight)
            nn.init.zeros_(self.head.last.bias)

    def forward(self, encoded: Encoded, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """The term of candidates, shared or each history's own, and the attention weights.

        Of each layer and head; over visits they sum to 1, or to less with null attention, or to 0
        if the history is empty. [C] or [B, C] -> [B, C], [N, B, H, C, T]
        """
        buckets = self.distances(encoded.place, candidates.expand(len(encoded), -1))  # [B, C, T]
        vectors = encoded.table.of(candidates).expand(len(encoded), -1, -1)  # [B, C, D]
        memories = self.layers.memories(encoded.visits, encoded.is_real)
        bias = self.bias(encoded.age_us, encoded.is_real, buckets)
        term, attentions = self.read(vectors, memories, bias)
        return term, torch.stack(attentions) * encoded.is_real[:, None, None, :]

    def bias(self, age_us: Tensor, is_visible: Tensor, buckets: Tensor) -> Tensor:
        """The bias of the attention by age and distance; MASKED if a visit is not visible.

        [B, T], [B, T], [B, C, T] bytes -> [B, C, T]
        """
        bias = torch.where(is_visible, 0.0, MASKED)  # [B, T]
        if self.temporal_bias is not None:
            bias = bias + self.temporal_bias(age_us)
        if self.spatial_bias is None:
            return bias.unsqueeze(1).expand(buckets.shape)
        return self.spatial_bias(buckets) + bias.unsqueeze(1)  # [B, C, T]

    def read(
        self, candidates: Tensor, memories: list[Memory], bias: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """The term of candidate vectors, and the attention weights of each layer.

        [B, C, D], memories of T visits, [B, C, T] -> [B, C], [B, H, C, T] a layer
        """
        views, attentions = candidates, []
        for block, memory in zip(self.layers, memories, strict=True):
            views, attention = block(views, memory, bias)
            attentions.append(attention)
        return self.gamma * self.head(views, candidates), attentions
