"""CaST-POI behind the one protocol of every ranking method: numpy in, numpy out.

On disk it is its config, its weights by name, and the coordinates of its places: a run needs no
city to rank.

Shapes: B histories, P places, C candidates.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput
from castpoi.methods.ranker import Abilities
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import MEANINGS, CastPoi, Encoded, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.scoring import CHUNK, ExactScorer
from castpoi.model.traits import NEIGHBOURHOODS_KM, PlaceTraits, Traits
from castpoi.model.weights import fill
from castpoi.model.workers import cores_for

_LAT: Final = "places.lat"
_LON: Final = "places.lon"
_TRAITS: Final = "places.traits"
_SQUARES: Final = "traits.squares"
_CATEGORIES: Final = "categories"
_OWN: Final = {"place.weight", "popularity", "forecast.popularity"}  # a row a place


class CastPoiRanker:
    """Ranks places with a CaST-POI model whose weights no longer change."""

    def __init__(
        self,
        model: CastPoi,
        builder: BatchBuilder,
        *,
        chunk: int = CHUNK,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model.eval()
        self.builder = builder
        self.training = dict(training or {})  # how the weights came about, for the record
        self.scorer = ExactScorer(model, chunk=chunk)

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return self.model.place_count

    @property
    def abilities(self) -> Abilities:
        """What the settings of its model need and offer."""
        config = self.model.config
        return Abilities(
            needs_next_time=config.known_time,
            most_visits=config.most_visits,
            has_reader=config.candidate_conditioning,
            takes_new_places=config.shared_vectors,
        )

    @property
    def terms(self) -> Mapping[str, str]:
        """What each term of the score measures, by name."""
        config = self.model.config
        without = () if config.candidate_conditioning else ("reader",)
        return {name: MEANINGS[name] for name in config.terms if name not in without}

    @torch.inference_mode()
    def encode(self, histories: Histories) -> Encoded:
        """Read a batch of histories once, before any place is scored."""
        batch = self.builder.build(histories).to(self.model.popularity.device)
        with cores_for(len(batch)):
            return self.model.encode(batch, self.scorer.places)

    def score(
        self, encoded: Encoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or candidates shared or each history's own. [B, P] or [B, C]"""
        if candidates is None:
            return self._as_numpy(self.scorer.score(encoded))
        return self._as_numpy(self.scorer.score(encoded, self._rows(candidates)))

    @torch.inference_mode()
    def term_values(
        self, encoded: Encoded, candidates: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float32]]:
        """Each term of the score of each candidate. [C] or [B, C] -> [B, C] each"""
        terms = self.model.terms(encoded, self._rows(candidates))
        return {name: self._as_numpy(getattr(terms, name)) for name in self.terms}

    @torch.inference_mode()
    def attention(
        self, encoded: Encoded, candidates: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """Attention to each visit, mean over heads and layers. [C] or [B, C] -> [B, C, T]"""
        if self.model.refinement is None:
            return None
        terms = self.model.terms(encoded, self._rows(candidates))
        return self._as_numpy(terms.attention_by_visit)

    def forecast(self, encoded: Encoded) -> NDArray[np.float32]:
        """The score of every place with the forecast in place of the reader. [B, P]"""
        return self._as_numpy(self.scorer.foretold(encoded))

    def _rows(self, candidates: NDArray[np.int64]) -> torch.Tensor:
        """Rows of candidates in the place table; refuses numbers that are no place."""
        outside = (candidates < 0) | (candidates >= self.places)
        if outside.any():
            raise BadInput(
                f"candidate {candidates[outside][0]} is no place of the city; "
                f"its places are 0 to {self.places - 1}"
            )
        return torch.from_numpy(candidates + 1).to(self.model.popularity.device)

    def with_places(
        self,
        lat: NDArray[np.float64],
        lon: NDArray[np.float64],
        categories: Sequence[str | None],
    ) -> Self:
        """The same ranker with cold places after its own: known by what they share, no more."""
        shared, arrays = self.model.shared, self.arrays
        assert shared is not None
        added: dict[str, NDArray[np.generic]] = {
            _LAT: lat,
            _LON: lon,
            _TRAITS: shared.traits.rows_of(lat, lon, categories),
        }
        for name in _OWN & arrays.keys():
            added[name] = np.zeros((len(lat), *arrays[name].shape[1:]), arrays[name].dtype)
        more = {name: np.concatenate([arrays[name], rows]) for name, rows in added.items()}
        return self.restore(self.config, arrays | more)

    @property
    def config(self) -> dict[str, Any]:
        """The shape of its model and how it was trained, as JSON can hold them."""
        config = {"model": self.model.config.to_dict(), "training": self.training}
        if self.model.shared is None:
            return config
        return config | {_CATEGORIES: list(self.model.shared.traits.categories)}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its weights, where its places are, and what they have in common."""
        weights: dict[str, NDArray[np.generic]] = {
            name: weight.detach().cpu().numpy() for name, weight in self.model.state_dict().items()
        }
        arrays = weights | {_LAT: self.builder.lat, _LON: self.builder.lon}
        shared = self.model.shared
        if shared is None:
            return arrays
        rows = shared.rows[1:].cpu().numpy()  # [P, L]
        return arrays | {_TRAITS: rows, _SQUARES: shared.traits.squares}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker that once had these settings and arrays; it scores the same."""
        model_config = ModelConfig.from_dict(config["model"])
        lat, lon = arrays[_LAT], arrays[_LON]
        traits = _traits(config, arrays, model_config)
        model = new_model(config=model_config, lat=lat, lon=lon, seed=0, traits=traits)
        fill(model.state_dict(), arrays, besides=(_LAT, _LON, _TRAITS, _SQUARES))
        builder = BatchBuilder(config=model_config, lat=lat, lon=lon)
        return cls(model, builder, training=config.get("training"))

    @staticmethod
    def _as_numpy(scores: torch.Tensor) -> NDArray[np.float32]:
        array: NDArray[np.float32] = scores.float().cpu().numpy()
        return array


def _traits(
    config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], model: ModelConfig
) -> PlaceTraits | None:
    """What its places have in common, as it was saved."""
    if not model.shared_vectors:
        return None
    traits = Traits(
        categories=tuple(config[_CATEGORIES]),
        squares=arrays[_SQUARES],
        sizes_km=NEIGHBOURHOODS_KM,
    )
    return PlaceTraits(traits=traits, rows=arrays[_TRAITS])
