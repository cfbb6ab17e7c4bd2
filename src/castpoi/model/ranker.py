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
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, Encoded, new_model
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
    def known_time(self) -> bool:
        """Whether histories must tell the moment of the visit to come."""
        return self.model.config.known_time

    @property
    def most_visits(self) -> int:
        """Last visits of a history that can change its scores."""
        return self.model.config.most_visits

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
        outside = (candidates < 0) | (candidates >= self.places)
        if outside.any():
            raise BadInput(
                f"candidate {candidates[outside][0]} is no place of the city; "
                f"its places are 0 to {self.places - 1}"
            )
        rows = torch.from_numpy(candidates + 1).to(self.model.popularity.device)
        return self._as_numpy(self.scorer.score(encoded, rows))

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
