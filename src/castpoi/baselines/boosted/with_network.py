"""The network and boosted trees together: the weighted sum of their scores.

    s(u, c) = (1 - w) network(u, c) + w trees(u, c)

The two make different mistakes, so the sum ranks better than either; two networks or two sets of
trees do not (docs/experiments/peers.md). Terms of the same name are added, so an explanation has
the terms of both.

Shapes: B histories, P places, C candidates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.boosted.ranker import BoostedRanker, ScoredPairs
from castpoi.checkins.trajectory import Histories
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.terms.base import Encoded

_NETWORK: Final = "network."
_TREES: Final = "trees."


class BothEncoded(NamedTuple):
    """Histories as each of the two rankers encodes them."""

    network: Encoded
    trees: ScoredPairs


@dataclass(frozen=True, kw_only=True)
class NetworkAndTrees:
    """Ranks places by the weighted sum of the scores of a network and of boosted trees."""

    network: CastPoiRanker
    trees: BoostedRanker
    weight: float  # of the trees, from 0 to 1

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return self.network.places

    @property
    def terms(self) -> Mapping[str, str]:
        """The terms of the score by name, each with its description; first the network's."""
        return {**self.trees.terms, **self.network.terms}

    def encode(self, histories: Histories) -> BothEncoded:
        """Encode a batch of histories with both."""
        recent = histories.tail(self.network.model.config.max_visits)
        return BothEncoded(self.network.encode(recent), self.trees.encode(histories))

    def score(
        self, encoded: BothEncoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or candidates shared or each history's own. [B, P] or [B, C]"""
        network = self.network.score(encoded.network, candidates)
        trees = self.trees.score(encoded.trees, candidates)
        return (1 - self.weight) * network + self.weight * trees

    def term_values(
        self, encoded: BothEncoded, candidates: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float32]]:
        """The terms of the score of each candidate. [C] or [B, C] -> [B, C] each"""
        own = candidates.shape[-1]
        values = {
            name: np.zeros((encoded.trees.histories, own), dtype=np.float32) for name in self.terms
        }
        for name, value in self.network.term_values(encoded.network, candidates).items():
            values[name] += (1 - self.weight) * value
        for name, value in self.trees.term_values(encoded.trees, candidates).items():
            values[name] += self.weight * value
        return values

    def attention(self, encoded: BothEncoded, candidates: NDArray[np.int64]) -> None:
        """None: neither has attention to visits."""

    def place_vectors(self) -> NDArray[np.float32]:
        """The vector of each place in the network. [P, D]"""
        return self.network.place_vectors()

    @property
    def config(self) -> dict[str, Any]:
        """Their settings and trainings, for JSON."""
        return {**self.network.config, "trees": self.trees.config, "weight": self.weight}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Their weights and counts."""
        parts = {_NETWORK: self.network.arrays, _TREES: self.trees.arrays}
        return {prefix + name: each for prefix, own in parts.items() for name, each in own.items()}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker with these settings and arrays; it scores the same."""
        own: dict[str, dict[str, NDArray[Any]]] = {_NETWORK: {}, _TREES: {}}
        for name, each in arrays.items():
            prefix, _, rest = name.partition(".")
            own[f"{prefix}."][rest] = each
        return cls(
            network=CastPoiRanker.restore(config, own[_NETWORK]),
            trees=BoostedRanker.restore(config["trees"], own[_TREES]),
            weight=config["weight"],
        )
