"""CaST-POI, the whole: a score of named terms, four of the paper's and two of ours.

    s(u, c) = h_u . e_c    base         the state after the last visit meets the candidate
            + beta_c       popularity   what the place is worth to anybody
            + gamma r      reader       what the candidate finds when it reads the trajectory
            + rho_u(c)     revisit      what past visits to the candidate count
            + delta_u(c)   distance     how far it is from the user's anchors (ours; may be off)

    tokens ──▶ backbone ──▶ states ──▶ h_u, the last one ──▶ base, revisit, distance
                              └──────▶ the last `window` ──▶ reader ──▶ head

A forecast of the reader (`forecast.py`) may stand beside them; the score does not know it.

Candidates are given as rows of the place table (number + 1; row 0 is padding).

Shapes: B histories, T slots, C candidates, P places, D width, H heads, N reader layers,
A anchors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.geo.distance import (
    DISTANCE_GATE_EDGES_KM,
    SPATIAL_BIAS_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
)
from castpoi.model.backbone import MASKED, Backbone
from castpoi.model.batch import PADDING, HistoryBatch, Windows
from castpoi.model.biases import SpatialBias, TemporalBias
from castpoi.model.config import ModelConfig
from castpoi.model.distance_buckets import DistanceBuckets
from castpoi.model.distance_gate import DistanceGate
from castpoi.model.forecast import ReaderForecast
from castpoi.model.head import RefinementHead
from castpoi.model.reader import CandidateReader, Memory
from castpoi.model.revisit_gate import RevisitGate
from castpoi.model.revisits import Revisits
from castpoi.model.shared_vectors import FORGOTTEN_PLACES, PlaceTable, SharedVectors
from castpoi.model.tokens import TokenEncoder
from castpoi.model.traits import PlaceTraits

_AT_ONCE: Final = 256  # windows; bounds the memory of the backbone's attention

MEANINGS: Final[Mapping[str, str]] = {
    "base": "How well the place fits the latest visits",
    "popularity": "How popular the place is with everybody",
    "reader": "How well the place fits the visits that it attends to",
    "revisit": "How often and how recently this person went to this place",
    "distance": "How near the place is to the last visit and to the most visited place",
}
"""What each term of the score measures."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Histories read once, before any place is scored."""

    state: Tensor
    """State after the last visit; zero where the history is empty. [B, D]"""
    visits: Tensor
    """States that the reader reads; zero in empty slots. [B, T, D]"""
    row: Tensor
    """Row of the visited place. [B, T]"""
    age_us: Tensor
    """Microseconds from the visit to the last one. [B, T]"""
    is_real: Tensor
    """Whether a visit stands in the slot. [B, T]"""
    revisits: Revisits
    """Counts for the revisit gate."""
    anchors: Tensor
    """Rows of the places from which distances are measured; 0 for none. [B, A]"""
    places: PlaceTable
    """The places as they were when the histories were read."""

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of the score, zero where the model has no such part; where the reader looked."""

    base: Tensor
    """[B, C]"""
    popularity: Tensor
    """[B, C]"""
    reader: Tensor
    """[B, C]"""
    revisit: Tensor
    """[B, C]"""
    distance: Tensor
    """[B, C]"""
    attention: Tensor
    """Weight of each visit in each reader layer and head; over visits they sum to 1, or to less
    where candidates may look away. [N, B, H, C, T]"""

    @property
    def score(self) -> Tensor:
        """The sum of all terms. [B, C]"""
        paper = self.base + self.popularity + self.reader + self.revisit
        return paper + self.distance

    @property
    def attention_by_layer(self) -> Tensor:
        """Weight of each visit in each reader layer, mean over heads. [N, B, C, T]"""
        return self.attention.mean(dim=2)

    @property
    def attention_by_visit(self) -> Tensor:
        """Weight of each visit, mean over heads and layers; zero without a reader. [B, C, T]"""
        return self.attention_by_layer.sum(dim=0) / max(1, len(self.attention))


class CastPoi(nn.Module):
    """Scores places as the next visit after a history; higher is likelier."""

    def __init__(
        self,
        *,
        config: ModelConfig,
        distances: DistanceBuckets,
        anchor_distances: DistanceBuckets | None = None,
        traits: PlaceTraits | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.distances = distances
        self.place_count = distances.places
        self.place = nn.Embedding(self.place_count + 1, config.width, padding_idx=PADDING)
        nn.init.xavier_uniform_(self.place.weight)
        nn.init.zeros_(self.place.weight[PADDING].detach())
        self.popularity = nn.Parameter(torch.zeros(self.place_count + 1))
        self.tokens = TokenEncoder(config=config)
        self.backbone = Backbone(config=config) if config.backbone else None
        self.refinement = Refinement(config=config) if config.candidate_conditioning else None
        self.revisit_gate = RevisitGate(config=config) if config.revisit_gate else None
        # after all of the paper's parts, whose first weights are thus the same with and without
        self.distance_gate: DistanceGate | None = None
        self.forecast: ReaderForecast | None = None
        if anchor_distances is not None and config.distance_gate:
            self.distance_gate = DistanceGate(config=config, distances=anchor_distances)
        if anchor_distances is not None and config.has_forecast:
            self.forecast = ReaderForecast(config=config, distances=anchor_distances)
        self.shared = (
            None
            if traits is None
            else SharedVectors(places=traits, width=config.width, forgotten=FORGOTTEN_PLACES)
        )

    def forward(self, batch: HistoryBatch, candidates: Tensor) -> Tensor:
        """Score candidates, shared or each history's own. batch, [C] or [B, C] -> [B, C]"""
        return self.terms(self.encode(batch), candidates).score

    def table(self) -> PlaceTable:
        """All places as they are now; once a step, and once a model that learns no more."""
        own = PlaceTable(vectors=self.place.weight, popularity=self.popularity)
        if self.shared is None:
            return own
        table: PlaceTable = self.shared(own)
        return table

    def states(self, windows: Windows, places: PlaceTable | None = None) -> Tensor:
        """The state after every visit, zero in empty slots. windows -> [B, T, D]

        `places` are those of `table`, where it has been asked for already.
        """
        places = places or self.table()
        tokens: Tensor = self.tokens(places.of(windows.row), windows)
        if self.backbone is None:
            return tokens
        states: Tensor = self.backbone(tokens, windows.is_real)
        return states

    def encode(self, batch: HistoryBatch, places: PlaceTable | None = None) -> Encoded:
        """Read a batch of histories once, before any place is scored; `places` as in `states`."""
        places = places or self.table()
        windows, read = batch.windows, slice(-self.config.window, None)
        visits = torch.cat([self.states(part, places)[:, read] for part in windows.split(_AT_ONCE)])
        return Encoded(
            state=visits[:, -1],
            visits=visits,
            row=windows.row[:, read],
            age_us=windows.age_us[:, read],
            is_real=windows.is_real[:, read],
            revisits=batch.revisits,
            anchors=batch.anchors,
            places=places,
        )

    def terms(self, encoded: Encoded, candidates: Tensor) -> Terms:
        """The terms for candidates, shared or each history's own. [C] or [B, C] -> terms"""
        candidates = candidates.expand(len(encoded), -1)  # [B, C]
        vectors = encoded.places.of(candidates)  # [B, C, D]
        base = (vectors @ encoded.state.unsqueeze(-1)).squeeze(-1)  # [B, C]
        reader, attention = torch.zeros_like(base), self._no_attention(encoded, candidates)
        if self.refinement is not None:
            buckets = self.distances(encoded.row, candidates)  # [B, C, T]
            reader, attention = self.refinement(vectors, encoded, buckets)
        return Terms(
            base=base,
            popularity=encoded.places.popularity[candidates],
            reader=reader,
            revisit=self.revisit(encoded).gather(1, candidates),
            distance=self.distance(encoded, candidates),
            attention=attention,
        )

    def revisit(self, encoded: Encoded) -> Tensor:
        """The revisit term of every row. [B, P + 1]"""
        if self.revisit_gate is None:
            return encoded.state.new_zeros(len(encoded), self.place_count + 1)
        return self.revisit_gate.spread(encoded.state, encoded.revisits, encoded.places.vectors)

    def distance(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """The distance term of candidates or of every place. [C] or [B, C] -> [B, C] or [B, P]"""
        if self.distance_gate is None:
            count = self.place_count if candidates is None else candidates.shape[-1]
            return encoded.state.new_zeros(len(encoded), count)
        term: Tensor = self.distance_gate(encoded.state, encoded.anchors, candidates)
        return term

    def foretell(
        self,
        places: PlaceTable,
        state: Tensor,
        anchors: Tensor,
        is_known: Tensor,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """A guess at the reader's term of every place, or of places; zero without a forecast.

        [B, D], [B, A], [B, P], [B, C] numbers of places -> [B, P] or [B, C]
        """
        if self.forecast is None:
            return torch.zeros_like(
                is_known if candidates is None else is_known.gather(1, candidates)
            )
        place = places.vectors[1:].detach()  # it learns from the reader, no place from it
        guess: Tensor = self.forecast(state, anchors, is_known, place, candidates)
        return guess

    def _no_attention(self, encoded: Encoded, candidates: Tensor) -> Tensor:
        return encoded.state.new_zeros(
            0, len(encoded), self.config.heads, candidates.shape[1], encoded.visits.shape[1]
        )


class Refinement(nn.Module):
    """The candidate-conditioned term: biases, reader, head and gamma."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.temporal_bias = (
            TemporalBias(edges_hours=TEMPORAL_BIAS_EDGES_HOURS) if config.temporal_bias else None
        )
        nearest = 1.0 if config.spatial_start == "near" else 0.0
        self.spatial_bias = (
            SpatialBias(edges_km=SPATIAL_BIAS_EDGES_KM, nearest=nearest)
            if config.spatial_bias
            else None
        )
        self.reader = CandidateReader(config=config)
        self.head = RefinementHead(width=config.width, dropout=config.dropout)
        self.gamma = nn.Parameter(torch.tensor(0.0 if config.gamma_start == "zero" else 1.0))
        if config.gamma_start == "one":
            nn.init.zeros_(self.head.last.weight)
            nn.init.zeros_(self.head.last.bias)

    def forward(
        self, candidates: Tensor, encoded: Encoded, buckets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The reader's term, and where it looked.

        [B, C, D], B histories, [B, C, T] bytes -> [B, C], [N, B, H, C, T]
        """
        memories = self.reader.remember(encoded.visits, encoded.is_real)
        bias = self.bias(encoded.age_us, encoded.is_real, buckets)
        term, attentions = self.read(candidates, memories, bias)
        # an empty history has attention to nothing
        return term, torch.stack(attentions) * encoded.is_real[:, None, None, :]

    def bias(self, age_us: Tensor, is_seen: Tensor, buckets: Tensor) -> Tensor:
        """What age and distance add to the attention; MASKED where a visit must not be seen.

        [B, T], [B, T], [B, C, T] bytes -> [B, C, T]
        """
        bias = torch.where(is_seen, 0.0, MASKED)  # [B, T]
        if self.temporal_bias is not None:
            bias = bias + self.temporal_bias(age_us)
        if self.spatial_bias is None:
            return bias.unsqueeze(1).expand(buckets.shape)
        by_distance: Tensor = self.spatial_bias(buckets)
        return by_distance + bias.unsqueeze(1)  # [B, C, T]

    def read(
        self, candidates: Tensor, memories: list[Memory], bias: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """The term from what the visits answer. [B, C, D], memories, [B, C, T] -> [B, C], ..."""
        reading, attentions = self.reader(candidates, memories, bias)
        return self.gamma * self.head(reading, candidates), attentions


def new_model(
    *,
    config: ModelConfig,
    lat: NDArray[np.float64],
    lon: NDArray[np.float64],
    seed: int,
    traits: PlaceTraits | None = None,
) -> CastPoi:
    """An untrained model for the places at these coordinates; the same seed, the same weights.

    `traits` say what the places have in common, which a model with shared vectors needs to know.
    """
    assert config.shared_vectors == (traits is not None)
    distances = DistanceBuckets(lat=lat, lon=lon, edges_km=SPATIAL_BIAS_EDGES_KM)
    anchor_distances = (
        DistanceBuckets(lat=lat, lon=lon, edges_km=DISTANCE_GATE_EDGES_KM)
        if config.has_anchors
        else None
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return CastPoi(
            config=config, distances=distances, anchor_distances=anchor_distances, traits=traits
        )
