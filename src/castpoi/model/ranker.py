"""CaST-POI as a ranking method: numpy in, numpy out.

A run stores the config, the weights by name, and the coordinates of the places, so it ranks without
its city.

Shapes: B histories, P places, C candidates, T slots.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.checkins.trajectory import Histories
from castpoi.geo.distance import unit_vectors
from castpoi.methods.ranker import Abilities, Found, check_candidates
from castpoi.model.castpoi import MEANINGS, CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.index import PlaceIndex, queries_of
from castpoi.model.layers import fill
from castpoi.model.places import WEIGHTS_OF_PLACES
from castpoi.model.terms.base import Encoded, cheap_scores
from castpoi.model.terms.reader_fast import FastReader, cores_for
from castpoi.model.windows import BatchBuilder

INDEX_FROM: Final = 50_000
"""Models of more places find the best ones with an index instead of scoring all."""

_LAT: Final = "places.lat"
_LON: Final = "places.lon"
CHUNK: Final = 1024
"""Candidates scored at once."""


class ExactScorer:
    """Scores places with the present weights of a model.

    It caches what does not depend on the user: create a new scorer after further training.
    """

    def __init__(self, model: CastPoi, *, chunk: int = CHUNK) -> None:
        self.model = model
        self.chunk = chunk
        with torch.no_grad():
            self.table = model.table().detach()
        self.reader = None if model.reader is None else FastReader(model.reader, self.table)

    @torch.inference_mode()
    def score(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """Score all places, or candidates, shared or each history's own. [C] or [B, C] -> [B, C]"""
        with cores_for(len(encoded)):
            scores = self.cheap(encoded, candidates)
            if self.reader is None or not scores.numel():
                return scores
            if candidates is None:
                candidates = torch.arange(self.model.place_count, device=scores.device)
            if candidates.ndim == 1:
                self.reader.add_shared_(scores, encoded, candidates, chunk=self.chunk)
            else:
                self.reader.add_own_(scores, encoded, candidates)
            return scores

    @torch.inference_mode()
    def cheap(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """The score without the reader. [C] or [B, C] -> [B, C] or [B, P]"""
        vectors, popularity = self.table.vectors[1:], self.table.popularity[1:]
        if candidates is not None and candidates.ndim == 1:
            scores = torch.addmm(popularity[candidates], encoded.state, vectors[candidates].mT)
            for _, term in self.model.named_terms():
                scores.add_(term.at(encoded, candidates))
            return scores
        # scoring all places is cheaper than copying the vectors of each history's own candidates
        spreads = self.model.spreads(encoded)
        scores = cheap_scores(encoded.state, vectors, popularity, spreads)  # [B, P]
        return scores if candidates is None else scores.gather(1, candidates)

    @torch.inference_mode()
    def forecast(self, encoded: Encoded) -> Tensor:
        """The score of every place with the forecast in place of the reader. -> [B, P]"""
        with cores_for(len(encoded)):
            scores = self.cheap(encoded)
            forecast = self.model.forecast
            return (
                scores if forecast is None else scores.add_(forecast(encoded, encoded.is_known()))
            )

    @torch.inference_mode()
    def shortlisted(self, encoded: Encoded, size: int) -> Tensor:
        """Exact scores of the best places by forecast; all others are below, by forecast. [B, P]"""
        scores = self.forecast(encoded)
        shortlist = scores.topk(min(size, scores.shape[1]), dim=1, sorted=False).indices  # [B, M]
        exact = self.score(encoded, shortlist)
        # scores with and without the reader cannot be compared, only their differences: all other
        # places come after the shortlist, in their own order
        below = exact.amin(dim=1, keepdim=True) - scores.amax(dim=1, keepdim=True) - 1
        return scores.add_(below).scatter_(1, shortlist, exact)


class CastPoiRanker:
    """Ranks places with a trained CaST-POI model."""

    def __init__(
        self,
        model: CastPoi,
        builder: BatchBuilder,
        *,
        chunk: int = CHUNK,
        shortlist: int | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        """With a shortlist, the reader's term is computed for the best places by forecast only."""
        self.model = model.eval()
        self.builder = builder
        self.shortlist = shortlist
        self.training = dict(training or {})  # summary of the training, for the record
        self.scorer = ExactScorer(model, chunk=chunk)

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return self.model.place_count

    @property
    def abilities(self) -> Abilities:
        """Needs and abilities of the model, from its settings."""
        config = self.model.config
        return Abilities(
            needs_next_time=config.known_time,
            max_visits=config.max_visits,
            has_reader=config.candidate_conditioning,
            takes_new_places=True,
            has_index=not config.candidate_conditioning and self.places > INDEX_FROM,
        )

    @property
    def terms(self) -> Mapping[str, str]:
        """The terms of the score by name, each with its description."""
        return {name: MEANINGS[name] for name in self.model.config.terms}

    @torch.inference_mode()
    def encode(self, histories: Histories) -> Encoded:
        """Encode a batch of histories, before any place is scored."""
        batch = self.builder.build(histories).to(self.model.popularity.device)
        with cores_for(len(batch)):
            return self.model.encode(batch, self.scorer.table)

    def score(
        self, encoded: Encoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or candidates shared or each history's own. [B, P] or [B, C]"""
        if candidates is not None:
            return self._as_numpy(self.scorer.score(encoded, self._checked(candidates)))
        if self.shortlist is not None:
            return self._as_numpy(self.scorer.shortlisted(encoded, self.shortlist))
        return self._as_numpy(self.scorer.score(encoded))

    @torch.inference_mode()
    def term_values(
        self, encoded: Encoded, candidates: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float32]]:
        """Each term of the score of each candidate. [C] or [B, C] -> [B, C] each"""
        values = self.model.term_values(encoded, self._checked(candidates))
        return {name: self._as_numpy(value) for name, value in values.items()}

    @torch.inference_mode()
    def attention(
        self, encoded: Encoded, candidates: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """Attention to each visit, mean over heads and layers. [C] or [B, C] -> [B, C, T]"""
        if self.model.reader is None:
            return None
        _, attention = self.model.reader(encoded, self._checked(candidates))  # [N, B, H, C, T]
        return self._as_numpy(attention.mean(dim=2).sum(dim=0) / len(attention))

    def forecast(self, encoded: Encoded) -> NDArray[np.float32]:
        """The score of every place with the forecast in place of the reader. [B, P]"""
        return self._as_numpy(self.scorer.forecast(encoded))

    @torch.inference_mode()
    def best(self, encoded: Encoded, is_allowed: NDArray[np.bool_], k: int) -> list[Found]:
        """The k best allowed places of each history, without a reader. [B, P]"""
        with cores_for(1):
            queries = queries_of(self.model, encoded)
            return [
                self.index.best(query, k, allowed)
                for query, allowed in zip(queries, is_allowed, strict=True)
            ]

    def build_index(self) -> None:
        """Build the index for `best`."""
        _ = self.index

    @cached_property
    def index(self) -> PlaceIndex:
        """Finds the best of many places."""
        table, builder = self.scorer.table, self.builder
        points = unit_vectors(builder.lat, builder.lon)  # [P, 3]
        return PlaceIndex(table.vectors[1:], table.popularity[1:], points)

    def place_vectors(self) -> NDArray[np.float32]:
        """The vector of each place. [P, D]"""
        return self._as_numpy(self.scorer.table.vectors[1:])

    def with_places(
        self, lat: NDArray[np.float64], lon: NDArray[np.float64], like: NDArray[np.int64]
    ) -> Self:
        """The same ranker with places after its own, each with the weights of the place `like`."""
        arrays = self.arrays
        added: dict[str, NDArray[np.generic]] = {_LAT: lat, _LON: lon}
        for name in WEIGHTS_OF_PLACES & arrays.keys():
            added[name] = arrays[name][-self.places :][like]
        more = {name: np.concatenate([arrays[name], rows]) for name, rows in added.items()}
        return self.restore(self.config, arrays | more)

    @property
    def config(self) -> dict[str, Any]:
        """The settings of its model and the summary of its training, for JSON."""
        return {"model": self.model.config.to_dict(), "training": self.training}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its weights, and the coordinates of its places."""
        weights: dict[str, NDArray[np.generic]] = {
            name: weight.detach().cpu().numpy() for name, weight in self.model.state_dict().items()
        }
        return weights | {_LAT: self.builder.lat, _LON: self.builder.lon}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker with these settings and arrays; it scores the same."""
        settings = dict(config["model"])
        if settings.get("shared_vectors") is False:  # a run of castpoi 0.2, which had that setting
            del settings["shared_vectors"]
        model_config = ModelConfig.from_dict(settings)
        lat, lon = arrays[_LAT], arrays[_LON]
        model = new_model(config=model_config, lat=lat, lon=lon, seed=0)
        fill(model.state_dict(), arrays, besides=(_LAT, _LON))
        builder = BatchBuilder(config=model_config, lat=lat, lon=lon)
        return cls(model, builder, training=config.get("training"))

    def _checked(self, candidates: NDArray[np.int64]) -> torch.Tensor:
        """Candidates as a tensor; rejects numbers that are not a place of the city."""
        check_candidates(candidates, places=self.places)
        return torch.from_numpy(candidates).to(self.model.popularity.device)

    @staticmethod
    def _as_numpy(scores: torch.Tensor) -> NDArray[np.float32]:
        return scores.float().cpu().numpy()
