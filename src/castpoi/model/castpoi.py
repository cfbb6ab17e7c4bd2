"""The CaST-POI model: from histories to the score of places as the next visit.

    tokens --> backbone --> states --> h_u, the last one --> base score, cheap terms
                              `------> the last `window` --> reader

The score is the sum of its terms (`terms/base.py`): the four of the paper, and the distance gate of
our own. A forecast of the reader (`terms/forecast.py`) is part of the model and not of the score.

Candidates are place numbers, 0 to P - 1.

Shapes: B histories, T slots, C candidates, P places, D width, H heads, N reader layers.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM, SPATIAL_BIAS_EDGES_KM
from castpoi.model.attention import Backbone
from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.places import PlaceTable
from castpoi.model.terms import CHEAP_TERMS
from castpoi.model.terms.base import Encoded, ScoreInputs, Spread, Term
from castpoi.model.terms.forecast import ReaderForecast
from castpoi.model.terms.reader import Reader
from castpoi.model.tokens import TokenEncoder
from castpoi.model.windows import HistoryBatch, Windows

_AT_ONCE: Final = 64  # windows; their attention fits the cache of a core

MEANINGS: Final[Mapping[str, str]] = {
    "base": "How well the place fits the latest visits",
    "popularity": "How popular the place is with everybody",
    "reader": Reader.meaning,
} | {name: term.meaning for name, term in CHEAP_TERMS.items()}
"""The terms of the score by name, in their order, and what each measures."""


class CastPoi(nn.Module):
    """Scores places as the next visit after a history; a higher score is more likely."""

    def __init__(
        self,
        *,
        config: ModelConfig,
        lat: NDArray[np.float64],
        lon: NDArray[np.float64],
    ) -> None:
        super().__init__()
        self.config = config
        self.place_count = len(lat)
        # the order of all parts fixes the first weights and the bits of gradient clipping; parts of
        # our own come last, so that those of the paper start from the same weights without them
        self.place = nn.Embedding(self.place_count + 1, config.width, padding_idx=0)
        nn.init.xavier_uniform_(self.place.weight)
        nn.init.zeros_(self.place.weight[0].detach())
        self.popularity = nn.Parameter(torch.zeros(self.place_count + 1))
        self.tokens = TokenEncoder(config=config)
        self.backbone = Backbone(config=config) if config.backbone else None
        self.reader: Reader | None = None
        if config.candidate_conditioning:
            distances = DistanceBuckets(lat=lat, lon=lon, edges_km=SPATIAL_BIAS_EDGES_KM)
            self.reader = Reader(config=config, distances=distances)
        distances_to_anchors = (
            DistanceBuckets(lat=lat, lon=lon, edges_km=DISTANCE_GATE_EDGES_KM)
            if config.has_anchors
            else None
        )
        self.cheap_terms = nn.ModuleDict(
            {
                name: term(config=config, distances=distances_to_anchors)
                for name, term in CHEAP_TERMS.items()
                if name in config.terms
            }
        )
        self.forecast: ReaderForecast | None = None
        if config.has_forecast and distances_to_anchors is not None:
            self.forecast = ReaderForecast(config=config, distances=distances_to_anchors)

    def forward(self, batch: HistoryBatch, candidates: Tensor) -> Tensor:
        """Score candidates, shared or each history's own. batch, [C] or [B, C] -> [B, C]"""
        return torch.stack([*self.term_values(self.encode(batch), candidates).values()]).sum(dim=0)

    def table(self) -> PlaceTable:
        """The vectors and popularity of all places; needed once a step."""
        return PlaceTable(vectors=self.place.weight, popularity=self.popularity)

    def states(
        self, windows: Windows, table: PlaceTable | None = None, last: int | None = None
    ) -> Tensor:
        """The state after every visit, or after the `last` ones, zero in empty slots. [B, T, D]

        `table` is that of `table()`, if it has been computed already.
        """
        table = table or self.table()
        tokens = self.tokens(table.of(windows.place), windows)
        if self.backbone is None:
            return tokens if last is None else tokens[:, -last:]
        return self.backbone(tokens, windows.is_real, last)

    def encode(self, batch: HistoryBatch, table: PlaceTable | None = None) -> Encoded:
        """Encode a batch of histories, before any place is scored; `table` as in `states`."""
        table = table or self.table()
        most = 1 if self.reader is None else self.config.window  # states that a score depends on
        last = None if self.training else most  # else dropout would draw other numbers
        windows, read = batch.windows, slice(-most, None)
        states = (self.states(part, table, last) for part in windows.split(_AT_ONCE))
        visits = torch.cat([each[:, read] for each in states])
        return Encoded(
            state=visits[:, -1],
            visits=visits,
            place=windows.place[:, read],
            age_us=windows.age_us[:, read],
            is_real=windows.is_real[:, read],
            known=batch.known,
            anchors=batch.anchors,
            table=table,
        )

    def term_values(self, encoded: Encoded, candidates: Tensor) -> dict[str, Tensor]:
        """The terms of candidates by name, in their order. [C] or [B, C] -> [B, C] each"""
        own = candidates.expand(len(encoded), -1)  # [B, C]
        values = {
            "base": (encoded.table.of(own) @ encoded.state.unsqueeze(-1)).squeeze(-1),
            "popularity": encoded.table.popularity[own + 1],
        }
        if self.reader is not None:
            values["reader"] = self.reader(encoded, candidates)[0]
        return values | {name: term.at(encoded, own) for name, term in self.named_terms()}

    def spreads(self, inputs: ScoreInputs) -> Iterator[Spread]:
        """The cheap terms of histories, to be added to the scores of all places."""
        for _, term in self.named_terms():
            yield Spread(term, term.compact(inputs), term.index(inputs))

    def named_terms(self) -> Iterator[tuple[str, Term]]:
        """The cheap terms by name, in their order."""
        for name, term in self.cheap_terms.items():
            assert isinstance(term, Term)
            yield name, term


def new_model(
    *,
    config: ModelConfig,
    lat: NDArray[np.float64],
    lon: NDArray[np.float64],
    seed: int,
) -> CastPoi:
    """An untrained model for the places at these coordinates; equal seeds give equal weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return CastPoi(config=config, lat=lat, lon=lon)
