"""The candidates of a history, and the features from which the trees score each of them.

Candidates are the places of the history's last visits, the places nearest to its last place, those
that other users visit most often after that place, and those that they visit most. Training and
serving use the same function. In the names of features, *here* is the last place.

Shapes: B histories, P places, N nearest places, M moves, S counted (history, place) pairs,
E (history, candidate) pairs, F features.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.counting import count_pairs
from castpoi.baselines.moves import Counts, Moves, moves_leaving
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Numbers, ranges
from castpoi.geo.distance import EARTH_RADIUS_KM, unit_vectors
from castpoi.model.features.habits import HABITS
from castpoi.model.features.known import KnownPairs, known_at_the_end

NEAR: Final = 40
NEXT: Final = 40
POPULAR: Final = 20
"""Numbers of candidates: nearest places, usual next places, popular places."""

_OF_HISTORY: Final = 4  # visit-pattern features, the last, that depend on the history alone
_BLOCK: Final = 1024  # places whose distances to all others are held at once

Features = NDArray[np.float32]


class Feature(NamedTuple):
    """A feature, and the term of the score to which its contribution is added."""

    name: str
    term: str


TERMS: Final[Mapping[str, str]] = {
    "base": "The mean score of candidates; popularity for all other places",
    "own_visits": "How often and how recently the place was visited",
    "own_times": "At which hours and days the place was visited",
    "own_moves": "How often the place came after the last places",
    "distance": "How near the place is to the last place, to home and to other places of the user",
    "crowd_moves": "Where other users go from the last places",
    "popularity": "How many other users visit the place, and how often",
    "category": "How often places of this category were visited",
    "history": "How many visits and places the history has",
}
"""The terms of the score, in the order of the sum."""

_TERM_OF_HABIT: Final = (
    *["own_visits"] * 4, *["own_times"] * 2, *["own_moves"] * 6, *["own_times"] * 4,
    *["own_moves"] * 2, "distance", "own_times", "own_visits", *["history"] * _OF_HISTORY,
)  # fmt: skip
FEATURES: Final = (
    Feature("visits", "own_visits"),
    Feature("recency", "own_visits"),
    *(Feature(habit.name, term) for habit, term in zip(HABITS, _TERM_OF_HABIT, strict=True)),
    Feature("others' moves from here", "crowd_moves"),
    Feature("share of others' moves from here", "crowd_moves"),
    Feature("others' visits two after the place before here", "crowd_moves"),
    Feature("share of others' visits two after the place before here", "crowd_moves"),
    Feature("others' visits", "popularity"),
    Feature("other people", "popularity"),
    Feature("km to the last place", "distance"),
    Feature("km to home", "distance"),
    Feature("km to the nearest own place", "distance"),
    Feature("share of visits to the category", "category"),
)
"""The columns of the features; those of own visits are NaN for a place without one."""
_FROM_HISTORY: Final = 2 + len(HABITS) - _OF_HISTORY
_FROM_CROWD: Final = 2 + len(HABITS)


GAPS: Final = (1, 2)
"""Visits between the ends of a move: 1 from the last place, 2 from the place before it."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Counts of all users' visits, from which the visits of one user can be subtracted.

    Counts that include a user's own later visits would leak the target into the features. So a
    training example subtracts all visits of its user (*leave one user out*), and a request
    subtracts its history: for a user of train, this leaves the visits of the other users.
    """

    visits: Numbers  # at each place [P]
    people: Numbers  # who were at each place [P]
    move_bounds: Numbers  # of the two gaps [2, P + 1]
    move_to: Numbers  # moves of the first gap, then of the second [M]
    move_count: Numbers  # [M]

    @classmethod
    def of(cls, visits: Histories, *, places: int) -> Self:
        """Count the visits of all users, one history each."""
        moves = [Moves.of(visits.owner, visits.place, gap=gap, places=places) for gap in GAPS]
        first = len(moves[0].to)
        place = count_pairs(visits.owner, visits.place, places=places)[1]
        return cls(
            visits=np.bincount(visits.place, minlength=places),
            people=np.bincount(place, minlength=places),
            move_bounds=np.stack([moves[0].bounds, moves[1].bounds + first]),  # [2, P + 1]
            move_to=np.concatenate([each.to for each in moves]),
            move_count=np.concatenate([each.times for each in moves]),
        )

    @property
    def places(self) -> int:
        """Number of places, P."""
        return len(self.visits)

    def moves_without(self, own: Histories, origin: Numbers, *, gap: int) -> Counts:
        """Moves of the other users from a place of each history. [B] -> [S]"""
        moves = Moves(self.move_bounds[gap - 1], self.move_to, self.move_count)
        own_moves = moves_leaving(own, origin, gap=gap, places=self.places)
        return moves.leaving(origin).minus(own_moves)


def own_visits(own: Histories, *, places: int) -> Counts:
    """The visits of each history to each of its places."""
    return Counts(*count_pairs(own.owner, own.place, places=places), places)


@dataclass(frozen=True, kw_only=True)
class Places:
    """The places of a city as candidates."""

    points: NDArray[np.float64]  # on the unit sphere [P, 3]
    near: Numbers  # the nearest other places of each [P, N]
    category: Numbers  # number of the category; -1 for none [P]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Candidates of histories, ordered by history, then by place."""

    histories: int  # B
    owner: Numbers  # [E]
    place: Numbers  # [E]
    features: Features  # [E, F]


def nearest_places(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> Numbers:
    """The nearest other places of each place. [P] -> [P, N]"""
    points = unit_vectors(lat, lon)
    count = min(NEAR, len(points) - 1)
    found = []
    for start in range(0, len(points), _BLOCK):
        similarity = points[start : start + _BLOCK] @ points.T  # [block, P]
        itself = np.arange(len(similarity))
        similarity[itself, start + itself] = -np.inf
        order = np.argpartition(-similarity, max(count - 1, 0), axis=1)
        found.append(np.sort(order[:, :count], axis=1))
    return np.concatenate(found)


def pairs_of(
    histories: Histories, own: Histories, crowd: Crowd, places: Places, *, window: int
) -> Pairs:
    """The candidates of histories and their features.

    Counts of other users are those of the crowd without `own`: without all visits of its user for a
    training example, without the history itself when serving.
    """
    known = known_at_the_end(histories, places.points, window=window)
    origins = histories.last_place, _place_before_last(histories)
    moves = [
        crowd.moves_without(own, origin, gap=gap) for origin, gap in zip(origins, GAPS, strict=True)
    ]
    visits = own_visits(own, places=crowd.places)
    owner, place = _candidates(histories, known, moves[0], visits, crowd, places)
    key = owner * crowd.places + place
    features = np.full((len(key), len(FEATURES)), np.nan, dtype=np.float32)
    is_known = _fill_own(features, owner, key, known, crowd.places)
    columns = [*_of_moves(moves[0], key, owner), *_of_moves(moves[1], key, owner)]
    mine = visits.of(key)
    columns.append(np.log1p(np.maximum(crowd.visits[place] - mine, 0)))
    columns.append(np.log1p(np.maximum(crowd.people[place] - (mine > 0), 0)))
    columns += _distances(histories, known, owner, place, is_known, places.points)
    columns.append(_category_share(histories, owner, place, places.category))
    for number, column in enumerate(columns, start=_FROM_CROWD):
        features[:, number] = column
    return Pairs(histories=len(histories), owner=owner, place=place, features=features)


def _candidates(
    histories: Histories,
    known: KnownPairs,
    moves: Counts,
    visits: Counts,
    crowd: Crowd,
    places: Places,
) -> tuple[Numbers, Numbers]:
    """The distinct candidates of each history, by place. -> [E], [E]"""
    has_visits = np.flatnonzero(histories.lengths > 0)
    near = places.near[histories.last_place[has_visits]]  # [visited, N]
    order = np.lexsort((moves.place, -moves.times, moves.owner))
    usual = order[ranges(np.bincount(moves.owner, minlength=len(histories))) < NEXT]
    popular = _popular(visits, crowd, len(histories))
    size = crowd.places
    keys = (
        known.owner * size + known.place,
        (has_visits[:, None] * size + near).ravel(),
        moves.key[usual],
        (np.arange(len(histories))[:, None] * size + popular).ravel(),
    )
    key = np.unique(np.concatenate(keys))
    return key // size, key % size


def _place_before_last(histories: Histories) -> Numbers:
    """The place before the last of each history, -1 if there is none. [B]"""
    found = np.full(len(histories), -1)
    has_two = histories.lengths > 1
    found[has_two] = histories.place[histories.bounds[1:][has_two] - 2]
    return found


def _popular(visits: Counts, crowd: Crowd, histories: int) -> Numbers:
    """The places that other users visit most. -> [B, POPULAR]"""
    counts = np.tile(crowd.visits, (histories, 1))  # [B, P]
    counts[visits.owner, visits.place] -= visits.times
    count = min(POPULAR, crowd.places)
    ranked = counts * crowd.places - np.arange(crowd.places)  # equal counts by place number
    return np.argpartition(-ranked, count - 1, axis=1)[:, :count]


def _fill_own(
    features: Features, owner: Numbers, key: Numbers, known: KnownPairs, places: int
) -> NDArray[np.bool_]:
    """Set the visit-pattern features; returns whether each candidate is known. -> [E]"""
    known_key = known.owner * places + known.place
    at = np.searchsorted(key, known_key)
    features[at, :2] = known.features[:, :2]
    features[at, 2:_FROM_CROWD] = known.features[:, 3:]  # the third is constant
    visited = np.flatnonzero(np.diff(known.bounds) > 0)
    of_history = np.full((len(known.home), _OF_HISTORY), 0.0, dtype=np.float32)
    of_history[visited] = known.features[known.bounds[visited], -_OF_HISTORY:]
    features[:, _FROM_HISTORY:_FROM_CROWD] = of_history[owner]
    is_known = np.zeros(len(key), dtype=np.bool_)
    is_known[at] = True
    return is_known


def _of_moves(moves: Counts, key: Numbers, owner: Numbers) -> list[NDArray[np.float64]]:
    """The logarithm of the moves to each candidate, and their share of all. [E] each"""
    count = moves.of(key)
    total = np.bincount(moves.owner, weights=moves.times, minlength=int(owner.max(initial=0)) + 1)
    return [np.log1p(count), count / np.maximum(total[owner], 1)]


def _distances(
    histories: Histories,
    known: KnownPairs,
    owner: Numbers,
    place: Numbers,
    is_known: NDArray[np.bool_],
    points: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Logarithm of the km from each candidate to last place, home, nearest own place. [E] each"""
    found = []
    for anchor in (histories.last_place, known.home):
        chord = np.linalg.norm(points[place] - points[anchor[owner]], axis=1)
        found.append(np.where(anchor[owner] >= 0, _log_km(chord), np.nan))
    nearest = np.full(len(place), np.nan)
    bounds = np.searchsorted(owner, np.arange(len(histories) + 1))
    for number in np.flatnonzero(np.diff(known.bounds) > 0).tolist():
        pairs = slice(bounds[number], bounds[number + 1])
        own = points[known.place[known.bounds[number] : known.bounds[number + 1]]]
        cosine = (points[place[pairs]] @ own.T).max(axis=1)
        nearest[pairs] = _log_km(np.sqrt(np.maximum(2 - 2 * cosine, 0)))
    nearest[is_known] = 0.0
    return [*found, nearest]


def _log_km(chord: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log1p(2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(chord / 2, 1)))


def _category_share(
    histories: Histories, owner: Numbers, place: Numbers, category: Numbers
) -> NDArray[np.float64]:
    """Share of the visits of the history that have the category of the candidate. [E]"""
    size = int(category.max(initial=-1)) + 1
    if not size:
        return np.full(len(place), np.nan)
    visited = category[histories.place]
    has_one = visited >= 0
    keys, counts = np.unique(histories.owner[has_one] * size + visited[has_one], return_counts=True)
    own = Counts(keys // size, keys % size, counts, size)
    share = own.of(owner * size + category[place]) / np.maximum(histories.lengths[owner], 1)
    return np.where(category[place] >= 0, share, np.nan)
