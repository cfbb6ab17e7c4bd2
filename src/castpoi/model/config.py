"""Settings of a CaST-POI model: sizes, the window, and a switch for every part.

`paper` is the published model exactly. `fast`, the default preset of `castpoi`, has more dropout
and differs in four settings, so that the prefixes of a trajectory can share work, the reader learns
from the first step, and the model can distinguish near places from far ones:

    positions        paper: one learned vector per slot of the left-padded window
                     fast:  one learned attention bias per relative offset, head and layer, and in
                            the reader one learned vector per number of visits ago
    gamma_start      paper: gamma starts at 0
                     fast:  gamma starts at 1 and the last layer of the head at 0
    spatial_start    paper: the attention bias of every distance starts at 0
                     fast:  it falls evenly from 1 (near) to -1 (far)
    null_attention   paper: the attention of a candidate sums to 1 over the visits
                     fast:  part of it may go to no visit (docs/decisions, 15)

`fast` also has a forecast of the reader, which is not part of the score (`terms/forecast.py`). In
`paper` and `fast` the reader term of an untrained model is 0. `next` is our own model: `fast` with
a distance gate and a revisit gate with more features instead of the reader (docs/decisions, 12).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from castpoi.core.config import Config, Layers, Share, Size, preset_named
from castpoi.core.errors import BadInput

Positions = Literal["absolute", "relative"]
GammaStart = Literal["zero", "one"]
SpatialStart = Literal["zero", "near"]
RevisitFeatures = Literal["paper", "habits"]

REVISIT_WINDOW: Final = 512
"""Last visits of a history in which the visits to each place are counted."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Config):
    """Settings of one CaST-POI model."""

    width: Size = 128
    """Size of the vectors of places, visits and candidates (d in the paper)."""
    heads: Size = 4
    """Attention heads of backbone and reader; must divide `width`."""
    backbone_layers: Layers = 2
    """Self-attention blocks over the history."""
    reader_layers: Layers = 2
    """Cross-attention blocks through which a candidate reads the history (N in the paper)."""
    feed_forward_width: Size = 128
    """Inner size of the feed-forward layers of every block."""
    window: Size = 50
    """Visits in the reader's window, and reach of one layer of the backbone (L in the paper)."""

    dropout: Share = 0.2
    """Dropout rate of tokens, feed-forward layers and head."""
    positions: Positions = "relative"
    """Order of visits in the backbone: `absolute`, by slot (paper), or `relative`, by offset."""
    gamma_start: GammaStart = "one"
    """Start of the reader term at 0: gamma is `zero` (paper), or `one` with a head that is 0."""
    spatial_start: SpatialStart = "near"
    """Initial attention bias of distances: `zero` (paper), or `near`, 1 (near) to -1 (far)."""

    backbone: bool = True
    """Ablation: without it, the state of a visit is its token."""
    candidate_conditioning: bool = True
    """Ablation: without it there is no reader, and so no bias and no gamma."""
    temporal_bias: bool = True
    """Ablation: without it the reader's attention ignores the age of a visit."""
    spatial_bias: bool = True
    """Ablation: without it the reader's attention ignores the distance of visit and candidate."""
    revisit_gate: bool = True
    """Ablation: without it earlier visits to the candidate add nothing."""

    null_attention: bool = False
    """Beyond the paper: attention to no visit, an extra key with a value of zero."""
    reader_forecast: bool = True
    """Beyond the paper: a cheap forecast of the reader, for training and shortlists only."""
    revisit_features: RevisitFeatures = "paper"
    """Features of the revisit gate: the `paper`'s three, or `habits`, 25 more of visit patterns."""
    deep_revisits: bool = False
    """Beyond the paper: layers that combine features, user and place in the revisit gate."""
    distance_gate: bool = False
    """Beyond the paper: a term for the distance of every place to the user's anchors."""

    known_time: bool = False
    """The time of the next visit is an input; such results form a table of their own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise BadInput(f"heads={self.heads} must divide width={self.width}")

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms of the score, in their order: the paper's four, then ours."""
        has = {
            "reader": self.candidate_conditioning,
            "revisit": self.revisit_gate,
            "distance": self.distance_gate,
        }
        return ("base", "popularity", *(name for name, is_on in has.items() if is_on))

    @property
    def has_forecast(self) -> bool:
        """Whether the model has a forecast of the reader."""
        return self.reader_forecast and self.candidate_conditioning

    @property
    def has_anchors(self) -> bool:
        """Whether the model measures distances to anchors."""
        return self.distance_gate or self.has_forecast

    @property
    def visits_read(self) -> int:
        """Number of last visits that enter the score, the counts of the revisit gate aside.

        With absolute positions it is the window. With relative positions a state depends on
        `window` visits per layer, and the reader reads the last `window` states; without a reader
        only the last state counts. (Windows of training are shorter, see `training/windows.py`.)
        """
        if self.positions == "absolute" or not self.backbone:
            return self.window
        states = self.window if self.candidate_conditioning else 1
        return states + self.backbone_layers * (self.window - 1)

    @property
    def max_visits(self) -> int:
        """Number of last visits that can change the score, with the one before the first move."""
        return max(self.visits_read + 1, REVISIT_WINDOW)

    @classmethod
    def preset(cls, name: str) -> "ModelConfig":
        """The preset `paper`, `fast` or `next`."""
        return preset_named(PRESETS, name)


PRESETS: Final[Mapping[str, ModelConfig]] = {
    "paper": ModelConfig(
        positions="absolute",
        gamma_start="zero",
        spatial_start="zero",
        reader_forecast=False,
        dropout=0.1,
    ),
    "fast": ModelConfig(null_attention=True),
    "next": ModelConfig(
        candidate_conditioning=False,
        revisit_features="habits",
        deep_revisits=True,
        distance_gate=True,
    ),
}
"""The presets of the model; those of training have the same names."""
