"""What a CaST-POI model is made of: sizes, windows, bucket edges, and a switch for every part.

Three presets of the one model. `paper` is the published model to the letter. `fast`, that of
`castpoi` unless told otherwise, drops more (`dropout`) and differs in four places so that work can
be shared between the prefixes of a trajectory, that the reader learns from the first step, and that
it can tell what is near from what is far (a config that names nothing is `fast` without the last,
as older runs are):

    positions      paper: one learned vector a slot of the left-padded window
                   fast:  one learned attention bias a relative offset, head and layer;
                          one learned vector for how many visits ago, where the reader reads
    gamma_start    paper: gamma starts at 0
                   fast:  gamma starts at 1 and the last layer of the head at 0
    spatial_start  paper: the bias of every distance starts at 0
                   fast:  it falls evenly from 1 (near) to -1 (far)
    looking_away   paper: a candidate gives all of its attention to some visit
                   fast:  it may look at none of them (docs/decisions, 15)

Beside it stands a forecast of the reader, which is no part of the score (`forecast.py`).

`next` is ours: `fast` with a distance gate and a revisit gate that is told more instead of the
reader (docs/decisions, 12). `paper` and `fast` start from a reader that contributes nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args, get_origin

from castpoi.core.errors import BadInput
from castpoi.core.setting_check import (
    SHARE,
    check_known,
    check_setting,
    largest_size,
    preset_named,
    refuse_unless,
)
from castpoi.geo.buckets import (
    DISPLACEMENT_EDGES_KM,
    DISTANCE_GATE_EDGES_KM,
    SPATIAL_BIAS_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
)
from castpoi.geo.distance import EARTH_RADIUS_KM

Positions = Literal["absolute", "relative"]
GammaStart = Literal["zero", "one"]
SpatialStart = Literal["zero", "near"]
RevisitFeatures = Literal["paper", "habits"]
Anchor = Literal["last", "before_last", "home"]

PAPER_TERMS: Final = ("base", "popularity", "reader", "revisit")
"""The terms of the paper's score; one whose part is switched off is zero."""

_HALF_AROUND_THE_EARTH_KM: Final = math.pi * EARTH_RADIUS_KM
_MOST_BUCKETS: Final = 256  # a bucket number is one byte
_MOST_CELLS: Final = 4096  # combinations of buckets; each has a weight for every history


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of one CaST-POI model; refuses what cannot be built."""

    width: int = 128
    """Size of the vector of a place, a visit and a candidate (d in the paper)."""
    heads: int = 4
    """Attention heads of backbone and reader; must divide `width`."""
    backbone_layers: int = 2
    """Self-attention blocks over the history."""
    reader_layers: int = 2
    """Cross-attention blocks through which a candidate reads the history (N in the paper)."""
    feed_forward_width: int = 128
    """Inner size of the feed-forward part of every block."""
    time_slot_width: int = 16
    """Size of the vector of a part of the day."""
    move_bucket_width: int = 16
    """Size of the vector of a displacement bucket."""
    move_width: int = 32
    """Size of the two layers that read the displacement from the previous visit."""
    gate_width: int = 32
    """Inner size of the revisit gate."""

    window: int = 50
    """Visits the reader reads, and how far back one layer of the backbone looks (L)."""
    revisit_window: int = 512
    """Visits the revisit gate counts."""

    displacement_edges_km: tuple[float, ...] = DISPLACEMENT_EDGES_KM
    """Bucket edges of the move from one visit to the next."""
    spatial_edges_km: tuple[float, ...] = SPATIAL_BIAS_EDGES_KM
    """Bucket edges of the distance between a visit and a candidate."""
    temporal_edges_hours: tuple[float, ...] = TEMPORAL_BIAS_EDGES_HOURS
    """Bucket edges of the age of a visit, counted back from the last one."""

    dropout: float = 0.2
    """Share of activations dropped in training: tokens, feed-forward parts and head."""
    positions: Positions = "relative"
    """How the backbone knows the order of visits; see the module's text."""
    gamma_start: GammaStart = "one"
    """How the reader starts from contributing nothing; see the module's text."""
    spatial_start: SpatialStart = "near"
    """Whether candidates look at near visits from the start; see the module's text."""

    backbone: bool = True
    """Ablation: without it, visits are read as they are encoded."""
    candidate_conditioning: bool = True
    """Ablation: without it there is no reader, hence no bias and no gamma."""
    temporal_bias: bool = True
    """Ablation: without it the reader does not see the age of a visit."""
    spatial_bias: bool = True
    """Ablation: without it the reader does not see how far a visit is from the candidate."""
    revisit_gate: bool = True
    """Ablation: without it past visits to the candidate are not counted."""

    looking_away: bool = False
    """Beyond the paper: a candidate may look at no visit at all; see `reader.py`."""
    reader_forecast: bool = True
    """A cheap guess at what the reader says, for training and shortlists; never in the score."""
    revisit_features: RevisitFeatures = "paper"
    """What the revisit gate is told: the paper's three features, or `habits.py` as well."""
    deep_revisits: bool = False
    """Beyond the paper: layers that see what is told, the user and the place together."""
    deep_revisits_width: int = 64
    """Inner size of these layers."""
    distance_gate: bool = False
    """Beyond the paper: nearness to the user's anchors counts for every place."""
    distance_anchors: tuple[Anchor, ...] = ("last", "home")
    """From where distances are measured: the last visit, the one before, the most visited."""
    distance_gate_edges_km: tuple[float, ...] = DISTANCE_GATE_EDGES_KM
    """Bucket edges of the distance between an anchor and a candidate."""
    shared_vectors: bool = False
    """Beyond the paper: a place is also its category and its neighbourhoods; `traits.py`."""
    neighbourhoods_km: tuple[float, ...] = (1.0, 5.0)
    """Sizes of the squares that are neighbourhoods."""
    forgotten_places: float = 0.1
    """Share of places that have only their shared vectors in a step of training."""

    known_time: bool = False
    """The model is told the moment of the visit to come; its numbers stand apart. `next_time.py`"""

    crowd_gate: bool = False
    """Beyond the paper: what the crowd does counts for places that the history does not know."""
    likest_places: int = 100
    """How many of the likest places are kept for every place, for the crowd gate."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), field.type)
        if self.width % self.heads:
            raise BadInput(f"heads={self.heads} must divide width={self.width}")
        _check_last_edge("spatial_edges_km", self.spatial_edges_km)
        _check_last_edge("distance_gate_edges_km", self.distance_gate_edges_km)
        if self.distance_cells > _MOST_CELLS:
            raise BadInput(
                f"{len(self.distance_anchors)} distance_anchors with "
                f"{len(self.distance_gate_edges_km) + 1} buckets each have {self.distance_cells} "
                f"combinations, the most is {_MOST_CELLS}; give fewer of either"
            )

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms of the score: always the paper's four, then those of our parts."""
        ours = {"distance": self.distance_gate, "crowd": self.crowd_gate}
        return (*PAPER_TERMS, *(name for name, is_on in ours.items() if is_on))

    @property
    def has_forecast(self) -> bool:
        """Whether there is a forecast: without a reader there is nothing to foretell."""
        return self.reader_forecast and self.candidate_conditioning

    @property
    def anchors(self) -> tuple[Anchor, ...]:
        """The anchors that some part of the model measures distances from."""
        return self.distance_anchors if self.distance_gate or self.has_forecast else ()

    @property
    def distance_cells(self) -> int:
        """Combinations of the buckets of all anchors of the distance gate."""
        buckets: int = (len(self.distance_gate_edges_km) + 1) ** len(self.distance_anchors)
        return buckets

    @property
    def visits_read(self) -> int:
        """How many last visits decide the score, the revisit gate aside.

        With absolute positions the window is all there is. With relative positions a state looks
        back `window` visits in each layer; the oldest of the `window` states that the reader reads
        therefore reaches further back than the last. Without a reader the last state is all that is
        asked for. (Windows of training are shorter, see `training/windows.py`.)
        """
        if self.positions == "absolute" or not self.backbone:
            return self.window
        states = self.window if self.candidate_conditioning else 1
        return states + self.backbone_layers * (self.window - 1)

    @property
    def most_visits(self) -> int:
        """Last visits of a history that can change its score, the move to the first included."""
        return max(self.visits_read + 1, self.revisit_window)

    def to_dict(self) -> dict[str, Any]:
        """The config in JSON's words."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "ModelConfig":
        """A config from JSON's or TOML's words; what is left out keeps its default."""
        check_known(cls, content)
        return cls(**{name: _as_tuple(value) for name, value in content.items()})

    @classmethod
    def preset(cls, name: str) -> "ModelConfig":
        """One of the presets, `paper`, `fast` or `next`."""
        return preset_named(PRESETS, name)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check(name: str, value: Any, kind: Any) -> None:
    """Refuse a setting of the wrong kind."""
    if kind == tuple[Anchor, ...]:
        rule = f"one or more of {', '.join(get_args(Anchor))}, none of them twice"
        refuse_unless(_are_anchors(value), name, value, rule)
    elif get_origin(kind) is tuple:
        rule = f"1 to {_MOST_BUCKETS - 1} positive numbers, each above the one before"
        refuse_unless(_are_edges(value), name, value, rule)
    else:
        # the only floats are dropout and the like
        check_setting(name, value, kind, SHARE, most=largest_size(name))


def _are_anchors(value: Any) -> bool:
    """Whether the value names some anchors, each once."""
    if not isinstance(value, tuple) or not value:
        return False
    return len(set(value)) == len(value) and set(value) <= set(get_args(Anchor))


def _check_last_edge(name: str, edges_km: tuple[float, ...]) -> None:
    """Refuse an edge that no distance on Earth reaches."""
    if edges_km[-1] > _HALF_AROUND_THE_EARTH_KM:
        raise BadInput(
            f"{name} ends at {edges_km[-1]:g} km, but no two places are more than "
            f"{_HALF_AROUND_THE_EARTH_KM:.0f} km apart; lower the last edge"
        )


def _are_edges(value: Any) -> bool:
    """Whether the value cuts the line above zero into buckets that are not empty."""
    if not isinstance(value, tuple) or not 1 <= len(value) < _MOST_BUCKETS:
        return False
    if not all(isinstance(edge, int | float) and math.isfinite(edge) for edge in value):
        return False
    return all(low < high for low, high in zip((0.0, *value), value, strict=False))


PRESETS: Final[Mapping[str, ModelConfig]] = {
    "paper": ModelConfig(
        positions="absolute",
        gamma_start="zero",
        spatial_start="zero",
        reader_forecast=False,
        dropout=0.1,
    ),
    "fast": ModelConfig(looking_away=True),
    "next": ModelConfig(
        candidate_conditioning=False,
        revisit_features="habits",
        deep_revisits=True,
        distance_gate=True,
        distance_anchors=("last", "home"),
    ),
}
"""The presets of the one model."""
