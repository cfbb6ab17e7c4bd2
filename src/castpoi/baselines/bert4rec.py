"""BERT4Rec: bidirectional self-attention that predicts masked visits.

Sun et al., "BERT4Rec: Sequential Recommendation with Bidirectional Encoder Representations from
Transformer", CIKM 2019. In training some visits of a window are masked (see
`training/objectives/cloze.py`); to predict the next place, a mask is put after the last visit.

    history   3 7 3        input   3 7 3 mask        state: the output at the mask

The last block is computed for masked slots only, since no other output is used.

Shapes: B windows, T slots, m masked slots of a window, M of a batch, P places, D width, H heads.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import Preset, SequenceModel, real_slots, zero_where_empty
from castpoi.baselines.transformer import (
    INITIAL_SPREAD,
    NORM_EPSILON,
    PostNormBlock,
    TransformerConfig,
    init_normal,
)
from castpoi.core.config import Share, Size
from castpoi.model.layers import Dropout


@dataclass(frozen=True, kw_only=True)
class Bert4RecConfig(TransformerConfig):
    """The settings of BERT4Rec, and of its masks in training."""

    tuned: ClassVar[Preset] = {"width": 128, "heads": 4, "feed_forward_width": 512, "dropout": 0.1}

    dropout: Share = 0.2
    """Share of activations dropped in training."""
    attention_dropout: Share = 0.2
    """Share of attention weights dropped in training."""
    mask_share: Share = 0.2
    """Probability that a visit is masked in training."""
    last_only_share: Share = 0.5
    """Probability that a step masks only the last visit of each window, as a ranking does."""
    window_step: Size = 5
    """Visits from the end of one training window to the next; epochs rotate through the others.
    In RecBole a window ends at every visit in every epoch (1)."""
    forgets_first_visit: bool = False
    """Whether ranking always leaves out the first visit, as in RecBole. Otherwise it is left out
    only if a full window needs space for the mask."""


class MaskedBlock(PostNormBlock):
    """A block of the transformer whose output is computed for masked slots only."""

    def masked(self, visits: Tensor, is_visible: Tensor, is_masked: Tensor) -> Tensor:
        """The output at masked slots. [B, T, D], [B, 1, 1, T], [B, T] -> [M, D]"""
        most = max(is_masked.sum(dim=1).tolist(), default=0)
        # masked slots first, in their order, then others up to the most masks of a window
        slots = is_masked.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # [B, m]
        queries = visits.gather(1, slots.unsqueeze(2).expand(-1, -1, visits.shape[2]))  # [B, m, D]
        is_query = is_masked.gather(1, slots)  # [B, m]
        attended = self.attention.attend(queries, visits, is_visible)[is_query]  # [M, D]
        masked = visits[is_masked] + self.dropout(self.attention.mix(attended))
        masked = self.attention_norm(masked)
        return self.feed_forward_norm(masked + self.dropout(self.feed_forward(masked)))


class Bert4Rec(SequenceModel):
    """Ranks places by the output at a mask after the last visit."""

    config_class: ClassVar[type[Bert4RecConfig]] = Bert4RecConfig
    config: Bert4RecConfig
    objective: ClassVar[Literal["next", "cloze"]] = "cloze"

    def __init__(self, *, config: Bert4RecConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        width = config.width
        self.mask = nn.Parameter(torch.empty(width))
        self.slot = nn.Embedding(config.window, width)
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(PostNormBlock(config=config) for _ in range(config.layers - 1))
        self.last_block = MaskedBlock(config=config)
        self.out = nn.Linear(width, width)
        self.out_norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.bias = nn.Parameter(torch.zeros(places + 1))
        self.apply(init_normal)
        nn.init.normal_(self.mask, 0.0, INITIAL_SPREAD)
        self.clear_padding()

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero for an empty history. [B, T], [B] -> [B, D]"""
        window, forgets = self.config.window, self.config.forgets_first_visit
        # a slot is for the mask
        kept = (lengths - 1).clamp(min=0) if forgets else lengths.clamp(max=window - 1)
        slots = torch.arange(min(rows.shape[1] + 1, window), device=rows.device)
        # shifted to the left by the number of visits left out
        source = (slots + (lengths - kept).unsqueeze(1)).clamp(max=rows.shape[1] - 1)  # [B, T]
        is_masked = slots == kept.unsqueeze(1)  # [B, T], once in every row
        states = self.masked_states(rows.gather(1, source), kept + 1, is_masked)  # [B, D]
        return zero_where_empty(states, lengths)

    def masked_states(self, rows: Tensor, lengths: Tensor, is_masked: Tensor) -> Tensor:
        """The states at masked slots, row by row. [B, T], [B], [B, T] -> [M, D]"""
        slots = torch.arange(rows.shape[1], device=rows.device)
        vectors = torch.where(is_masked.unsqueeze(2), self.mask, self.place(rows))  # [B, T, D]
        visits = self.dropout(self.norm(vectors + self.slot(slots)))
        is_visible = real_slots(rows, lengths)[:, None, None]  # [B, 1, 1, T]
        for block in self.blocks:
            visits = block(visits, is_visible)
        masked = self.last_block.masked(visits, is_visible, is_masked)  # [M, D]
        return self.out_norm(functional.gelu(self.out(masked)))

    def candidate_bias(self) -> Tensor:
        """The score of each place independent of the history. [P + 1]"""
        return self.bias
