"""The reader: every candidate place reads the trajectory for itself.

    CCAttn = softmax( Q K^T / sqrt(d_h) + B + M' ) V           the candidate asks, visits answer
    U~     = LN_1( U + CCAttn(U, X, X; B, M) )
    U'     = LN_2( U~ + FFN(U~) )                              U^(0) are the candidate's vectors

This is the reader of the paper, term by term, but for looking away (below); `scoring.py` computes
the same for all places of a city with far less work. Where the backbone knows the order of visits
by relative positions, the states do not tell which of them is the last; the reader then adds a
learned vector to each, by how many visits ago it was. With absolute positions the states tell it
themselves.

A softmax over visits sees distances against one another only: a candidate that is near all visits
looks at them as one that is far from all. If candidates may look away (`null_attention`, ours), how
much of its attention a candidate gives at all tells the two apart.

Shapes: B histories, C candidates, T slots, D width, H heads, Q prefixes, L window.
"""

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from castpoi.model.attend import attend
from castpoi.model.config import ModelConfig
from castpoi.model.feed_forward import FeedForward

_AWAY: Final = 2.5  # logit of looking away at the start: as much as twelve visits of no bias


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What visits answer in one layer, whoever asks; empty slots answer nothing."""

    key: Tensor
    """Divided by sqrt(d_h). [B, T, D]"""
    value: Tensor
    """[B, T, D]"""


class CandidateAttention(nn.Module):
    """Candidates ask, visits answer."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        # a bias here would add the same to every logit of a row, which a softmax over visits cannot
        # see; where a candidate may look away it would be seen, and is left out all the same
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Linear(config.width, config.width)
        self.away = nn.Parameter(torch.tensor(_AWAY)) if config.null_attention else None

    def remember(self, visits: Tensor, is_real: Tensor) -> Memory:
        """What visits answer; an empty history answers with zero. [B, T, D], [B, T] -> memory"""
        return Memory(key=self.keys(visits), value=self.value(visits) * is_real.unsqueeze(-1))

    def keys(self, visits: Tensor) -> Tensor:
        """By what visits are found: K / sqrt(d_h), for visits are fewer than pairs. -> [..., D]"""
        keys: Tensor = self.key(visits)
        return keys / math.sqrt(keys.shape[-1] // self.heads)

    def forward(self, candidates: Tensor, memory: Memory, bias: Tensor) -> tuple[Tensor, Tensor]:
        """What each candidate finds, and where it looked.

        [B, C, D], memory of T visits, [B, C, T] -> [B, C, D], [B, H, C, T]
        """
        query = self.query(candidates)  # [B, C, D]
        found, attention = attend(
            query, memory.key, memory.value, bias, self.away, heads=self.heads
        )
        mixed: Tensor = self.mix(found)
        return mixed, attention


class ReaderBlock(nn.Module):
    """One reading: attention and a feed-forward part, each added and normalised."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.attention = CandidateAttention(config=config)
        self.attention_norm = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(
            width=config.width, inner_width=config.feed_forward_width, dropout=config.dropout
        )
        self.feed_forward_norm = nn.LayerNorm(config.width)

    def forward(self, candidates: Tensor, memory: Memory, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Candidates after one reading, and where they looked; shapes as in the attention."""
        found, attention = self.attention(candidates, memory, bias)
        candidates = self.attention_norm(candidates + found)
        return self.feed_forward_norm(candidates + self.feed_forward(candidates)), attention


class CandidateReader(nn.Module):
    """Reads the same visits anew for every candidate, several times over."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ReaderBlock(config=config) for _ in range(config.reader_layers))
        self.ago = None  # a vector for every number of visits ago, the last visit's last [L, D]
        if config.positions == "relative":
            self.ago = nn.Parameter(torch.empty(config.window, config.width))
            nn.init.normal_(self.ago, std=0.02)

    def attentions(self) -> list[CandidateAttention]:
        """The attention of every layer."""
        return [block.attention for block in self.blocks if isinstance(block, ReaderBlock)]

    def placed(self, visits: Tensor) -> Tensor:
        """Visits marked by how long ago they were, the last one last. [..., T, D] -> [..., T, D]"""
        return visits if self.ago is None else visits + self.ago[-visits.shape[-2] :]

    def remember(self, visits: Tensor, is_real: Tensor) -> list[Memory]:
        """What visits answer in every layer. [B, T, D], [B, T] -> memories"""
        placed = self.placed(visits)
        return [attention.remember(placed, is_real) for attention in self.attentions()]

    def remember_prefixes(self, visits: Tensor, slots: Tensor) -> list[Memory]:
        """What the last visits of many prefixes answer, each prefix given by its slots.

        Visits answer once, however many prefixes they are in. Slots are counted through all
        trajectories; those that stand for none must be masked.
        [B, T, D], [Q, L] -> memories of Q prefixes, L visits each
        """
        memories = []
        for attention in self.attentions():
            key, value = (
                answers.flatten(0, 1).index_select(0, slots.flatten()).view(*slots.shape, -1)
                for answers in (attention.keys(visits), attention.value(visits))
            )  # [Q, L, D]
            if self.ago is not None:
                key = key + attention.keys(self.ago)
                value = value + self.ago @ attention.value.weight.mT
            memories.append(Memory(key=key, value=value))
        return memories

    def forward(
        self, candidates: Tensor, memories: list[Memory], bias: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """The user as each candidate sees them, and every layer's attention.

        The bias of a visit that a candidate must not see is MASKED.
        [B, C, D], memories of T visits, [B, C, T] -> [B, C, D], [B, H, C, T] a layer
        """
        attentions = []
        for block, memory in zip(self.blocks, memories, strict=True):
            candidates, attention = block(candidates, memory, bias)
            attentions.append(attention)
        return candidates, attentions
