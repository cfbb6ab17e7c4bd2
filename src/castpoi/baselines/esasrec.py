"""eSASRec: SASRec with what later replications found to matter (arXiv 2508.06450).

Against SASRec: normalise before each part instead of after it, let a gate decide how much a part
adds (LiGR layers), and learn against many rivals instead of one. We take the softmax over all
places, of which the sampled softmax of that work is an estimate: a city is small enough for it.
No binary cross-entropy, hence no overconfidence to mend as gSASRec does (arXiv 2308.07192).
We leave out their SwiGLU and keep the gelu of our SASRec, so that the layers alone differ.

It is not among the paper's baselines; `paper` here means the size of the paper's SASRec.

Shapes: B histories, T slots, P places, D width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from castpoi.baselines.sequence import SequenceModel
from castpoi.baselines.transformer import GatedPreNormBlock, TransformerConfig, init_normal
from castpoi.model.dropout import Dropout


@dataclass(frozen=True, kw_only=True)
class ESasRecConfig(TransformerConfig):
    """The shape of one eSASRec."""

    dropout: float = 0.2
    """Share of activations dropped in training."""
    attention_dropout: float = 0.2
    """Share of attention weights dropped in training."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""
        return {"paper": cls(), "tuned": cls(width=128, heads=4, feed_forward_width=512)}


class ESasRec(SequenceModel):
    """Ranks places by what the last visit finds when it looks back through gates."""

    config_class: ClassVar[type[ESasRecConfig]] = ESasRecConfig
    all_positions: ClassVar[bool] = True

    def __init__(self, *, config: ESasRecConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.slot = nn.Embedding(config.window, config.width)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(GatedPreNormBlock(config=config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.apply(init_normal)
        self.clear_padding()

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]"""
        slots = torch.arange(rows.shape[1], device=rows.device)
        visits: Tensor = self.dropout(self.place(rows) + self.slot(slots))  # [B, T, D]
        for block in self.blocks:
            visits = block(visits)
        normed: Tensor = self.norm(visits)
        return normed
