"""BERT4Rec: visits look both ways, and the model guesses the ones that are masked.

Sun et al., "BERT4Rec: Sequential Recommendation with Bidirectional Encoder Representations from
Transformer", CIKM 2019. In training some visits of a window are masked (see
`training/cloze_objective.py`); to foretell the next place, a mask is put after the last visit.

    history   3 7 3        read   3 7 3 mask        state: what the mask has become

The last block is computed for masked slots only: what becomes of all others is never asked.

Shapes: B windows, T slots, m masked slots of a window, M of a batch, P places, D width, H heads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.sequence import (
    SequenceModel,
    real_slots,
    zero_where_empty,
)
from castpoi.baselines.transformer import (
    INITIAL_SPREAD,
    NORM_EPSILON,
    PostNormBlock,
    TransformerConfig,
    init_normal,
)
from castpoi.model.dropout import Dropout


@dataclass(frozen=True, kw_only=True)
class Bert4RecConfig(TransformerConfig):
    """The shape of one BERT4Rec, and how its visits are masked in training."""

    dropout: float = 0.2
    """Share of activations dropped in training."""
    attention_dropout: float = 0.2
    """Share of attention weights dropped in training."""
    mask_share: float = 0.2
    """Chance of a visit to be masked in training."""
    last_only_share: float = 0.5
    """Chance of a step to mask the last visit of each window and no other, as a ranking does."""
    window_step: int = 5
    """Visits from the end of one window of training to the next; epochs take turns until a window
    has ended everywhere. RecBole ends one at every visit in every epoch (1)."""
    forgets_first_visit: bool = False
    """Whether a ranking reads every history without its first visit, however short, as RecBole's
    does. Ours leaves it out only where a full window has to make room for the mask; histories that
    fill the window are read alike."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""
        return {
            "paper": cls(),
            "tuned": cls(width=128, heads=4, feed_forward_width=512, dropout=0.1),
        }


class MaskedBlock(PostNormBlock):
    """A block of the transformer whose outcome is asked of masked slots alone."""

    def masked(self, visits: Tensor, is_visible: Tensor, is_masked: Tensor) -> Tensor:
        """Let masked slots look at all once. [B, T, D], [B, 1, 1, T], [B, T] -> [M, D]"""
        most = max(is_masked.sum(dim=1).tolist(), default=0)
        # masked slots first, in their order, then others up to the most masks of a window
        slots = is_masked.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # [B, m]
        asking = visits.gather(1, slots.unsqueeze(2).expand(-1, -1, visits.shape[2]))  # [B, m, D]
        is_asked = is_masked.gather(1, slots)  # [B, m]
        found = self.attention.look(asking, visits, is_visible)[is_asked]  # [M, D]
        masked = visits[is_masked] + self.dropout(self.attention.mix(found))
        masked = self.attention_norm(masked)
        said = self.dropout(self.feed_forward(masked))
        normed: Tensor = self.feed_forward_norm(masked + said)
        return normed


class Bert4Rec(SequenceModel):
    """Ranks places by what a mask after the last visit turns into."""

    config_class: ClassVar[type[Bert4RecConfig]] = Bert4RecConfig
    objective: ClassVar[Literal["next", "cloze"]] = "cloze"

    def __init__(self, *, config: Bert4RecConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        width = config.width
        self.window = config.window
        self.forgets_first_visit = config.forgets_first_visit
        self.mask = nn.Parameter(torch.empty(width))
        self.slot = nn.Embedding(config.window, width)
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(PostNormBlock(config=config) for _ in range(config.layers - 1))
        self.last_block = MaskedBlock(config=config)
        self.conclude = nn.Linear(width, width)
        self.last_norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.bias = nn.Parameter(torch.zeros(places + 1))
        self.apply(init_normal)
        nn.init.normal_(self.mask, 0.0, INITIAL_SPREAD)
        self.clear_padding()

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero where there is none. [B, T], [B] -> [B, D]"""
        most = self.window - 1  # beside the mask
        kept = (lengths - 1).clamp(min=0) if self.forgets_first_visit else lengths.clamp(max=most)
        slots = torch.arange(min(rows.shape[1] + 1, self.window), device=rows.device)
        # shifted to the left by the visits that are not kept
        source = (slots + (lengths - kept).unsqueeze(1)).clamp(max=rows.shape[1] - 1)  # [B, T]
        is_masked = slots == kept.unsqueeze(1)  # [B, T], once in every row
        states = self.masked_states(rows.gather(1, source), kept + 1, is_masked)  # [B, D]
        return zero_where_empty(states, lengths)

    def masked_states(self, rows: Tensor, lengths: Tensor, is_masked: Tensor) -> Tensor:
        """The states of masked slots, row by row. [B, T], [B], [B, T] -> [M, D]"""
        slots = torch.arange(rows.shape[1], device=rows.device)
        vectors = torch.where(is_masked.unsqueeze(2), self.mask, self.place(rows))  # [B, T, D]
        visits: Tensor = self.dropout(self.norm(vectors + self.slot(slots)))
        is_visible = real_slots(rows, lengths)[:, None, None]  # [B, 1, 1, T]
        for block in self.blocks:
            visits = block(visits, is_visible)
        masked = self.last_block.masked(visits, is_visible, is_masked)  # [M, D]
        concluded: Tensor = self.last_norm(functional.gelu(self.conclude(masked)))
        return concluded

    def candidate_bias(self) -> Tensor:
        """How likely each place is whatever the history. [P + 1]"""
        return self.bias
