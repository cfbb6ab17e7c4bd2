"""PPM (prediction by partial matching): Markov chains of order k, blended by escape probabilities.

A context is the last j places. After a context that was followed n times, by d distinct places, a
place that followed it c times has the probability

    p_j(place) = (c + escape d p_shorter(place)) / (n + escape d)

where p_shorter is that of the context without its oldest place (PPM with escape method C, where
`escape` is 1). The shortest context of all is the popularity of places. The contexts of all users
up to `order` follow, then those of the history itself: order 0, which counts its visits, up to
`own_order`.

Contexts of all orders have one numbering. A context of one place is the number of the place; a
longer one is found by the key (code of the context without its oldest place) x P + oldest place.

Shapes: P places, X contexts, M distinct moves, L longer contexts, T visits.
"""

from dataclasses import asdict, dataclass
from typing import ClassVar, Self

import numpy as np

from castpoi.baselines.counting import count_pairs
from castpoi.baselines.learned_counts import LearnedCounts
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.config import Config, Count, NotNegative, Positive


@dataclass(frozen=True, kw_only=True)
class PpmConfig(Config):
    """The settings of PPM."""

    order: Count = 2
    """Longest context of all users."""
    own_order: Count = 1
    """Longest context of the history itself."""
    escape: Positive = 10.0
    """Weight of shorter contexts of all users."""
    own_escape: NotNegative = 2.0
    """Weight of shorter contexts of the history, and of the contexts of all users."""


@dataclass(frozen=True, kw_only=True)
class Ppm(LearnedCounts):
    """Ranks places by blended Markov chains of all users and of the history."""

    config_class: ClassVar = PpmConfig

    popularity: Numbers  # visits of all users to each place [P]
    keys: Numbers  # of contexts of two and more places, ascending [L]
    bounds: Numbers  # moves after context x are bounds[x]:bounds[x + 1] [X + 1]
    move_to: Numbers  # [M]
    move_count: Numbers  # [M]

    @classmethod
    def learn(cls, visits: Histories, *, places: int, config: PpmConfig) -> Self:
        """Count the moves after all contexts of the train split."""
        place, owner = visits.place, visits.owner
        at, code = np.arange(len(place)), place
        keys: list[Numbers] = []
        origins, targets = [], []
        for length in range(1, config.order + 1):
            if length > 1:
                reaches = at - length + 1 >= visits.starts[at]
                at, code = at[reaches], code[reaches]
                key, number = np.unique(code * places + place[at - length + 1], return_inverse=True)
                code = places + sum(map(len, keys)) + number
                keys.append(key)
            moves = (at + 1 < len(place)) & (owner[np.minimum(at + 1, len(owner) - 1)] == owner[at])
            origins.append(code[moves])
            targets.append(place[at[moves] + 1])
        origin, to, count = count_pairs(
            np.concatenate(origins), np.concatenate(targets), places=places
        )
        longer = np.concatenate([np.empty(0, np.int64), *keys])
        return cls(
            places=places,
            settings=asdict(config),
            popularity=np.bincount(place, minlength=places),
            keys=longer,
            bounds=np.searchsorted(origin, np.arange(places + len(longer) + 1)),
            move_to=to,
            move_count=count,
        )

    def scores_of(self, history: Histories) -> Floats:
        """The logarithm of the probability of every place after one history. [P]"""
        config, place = self._config, history.place
        probability = (self.popularity + 1) / (self.popularity.sum() + self.places)
        for code in self._codes(place):
            moves = slice(self.bounds[code], self.bounds[code + 1])
            _blend(probability, self.move_to[moves], self.move_count[moves], config.escape)
        follows = np.arange(len(place))  # visits that followed the context
        for length in range(config.own_order + 1):
            if length:
                follows = follows[follows >= length]
                follows = follows[place[follows - length] == place[-length]]
            to, count = np.unique(place[follows], return_counts=True)
            _blend(probability, to, count, config.own_escape)
            if length == len(place):
                break
        return np.log(np.maximum(probability, np.finfo(np.float32).tiny))

    def _codes(self, place: Numbers) -> list[int]:
        """Codes of the contexts at the end of a history, shortest first, until one is unseen."""
        codes = [int(place[-1])]
        for length in range(2, min(self._config.order, len(place)) + 1):
            key = codes[-1] * self.places + int(place[-length])
            at = int(np.searchsorted(self.keys, key))
            if at == len(self.keys) or self.keys[at] != key:
                break
            codes.append(self.places + at)
        return codes


def _blend(probability: Floats, to: Numbers, count: Numbers, escape: float) -> None:
    """Replace the probabilities of a context by those of a longer one, in place. [P]"""
    if not len(to):
        return
    total = count.sum() + escape * len(to)
    probability *= escape * len(to) / total
    probability[to] += count / total
