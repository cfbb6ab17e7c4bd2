"""Reasons: the terms of a score, where the reader looked, and what if it had not.

The weight of a visit is the reader's attention, mean over heads and layers. A weight says where
the reader looked, not what came of it; the *counterfactual* does: the score of the candidate
after the same history without the visit, encoded and scored anew.

Shapes: B histories, C candidates, T slots of the reader's window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.model.castpoi import Terms
from castpoi.model.ranker import CastPoiRanker
from castpoi.serving.history import History, end_to_end
from castpoi.serving.place_book import PlaceBook
from castpoi.serving.recommendation import TermValues

VISITS_SHOWN: Final = 5
"""Visits that explain one recommendation at most."""

_AT_ONCE: Final = 64  # histories without one of their visits; bounds memory


@dataclass(frozen=True, kw_only=True)
class Attended:
    """A visit the reader looked at for a candidate."""

    visit: int
    """Which visit of the history, oldest 0."""
    weight: float
    score_without: float


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a candidate has its score."""

    terms: TermValues
    visits: tuple[Attended, ...]
    """Heaviest first."""


@dataclass(frozen=True)
class _Pair:
    """A history without one visit: whose, and which."""

    history: int
    visit: int


class Reasoner:
    """Explains the scores of a CaST-POI model."""

    def __init__(
        self, ranker: CastPoiRanker, places: PlaceBook, *, shown: int = VISITS_SHOWN
    ) -> None:
        self.ranker = ranker
        self.places = places
        self.shown = shown

    @property
    def term_names(self) -> tuple[str, ...]:
        """The terms that every score of its model has."""
        return self.ranker.model.config.terms

    def reasons(
        self,
        histories: Sequence[History],
        chosen: Sequence[NDArray[np.int64]],
        scores: Sequence[NDArray[np.float32]],
    ) -> list[list[Reason]]:
        """Why each history's chosen places, at least one each, have their scores. B, B of [C]"""
        terms = self._terms(histories, chosen)
        looked = list(self._looked(terms, histories, chosen))
        without = self._without(histories, chosen, looked)
        return [
            [
                Reason(
                    terms=self._values(terms, each, column, float(scores[each][column])),
                    visits=tuple(
                        Attended(
                            visit=visit,
                            weight=weight,
                            score_without=without[_Pair(each, visit)][column],
                        )
                        for visit, weight in looked[each][column]
                    ),
                )
                for column in range(len(chosen[each]))
            ]
            for each in range(len(histories))
        ]

    @torch.inference_mode()
    def _terms(self, histories: Sequence[History], chosen: Sequence[NDArray[np.int64]]) -> Terms:
        encoded = self.ranker.encode(end_to_end(histories))
        rows = torch.from_numpy(_beside(chosen) + 1).to(encoded.state.device)  # [B, C]
        return self.ranker.model.terms(encoded, rows)

    def _values(self, terms: Terms, each: int, column: int, score: float) -> TermValues:
        """The terms of one score; what rounding leaves between sum and score falls to the base."""
        values = {name: float(getattr(terms, name)[each, column]) for name in self.term_names}
        others = sum(value for name, value in values.items() if name != "base")
        return TermValues(**values | {"base": score - others})

    def _looked(
        self, terms: Terms, histories: Sequence[History], chosen: Sequence[NDArray[np.int64]]
    ) -> Iterator[list[list[tuple[int, float]]]]:
        """Visits and weights for every candidate of every history, heaviest first."""
        attention = terms.attention_by_visit.cpu().numpy()  # [B, C, T]
        has_reader = len(terms.attention) > 0
        for each, history in enumerate(histories):
            seen = min(len(history), attention.shape[2]) if has_reader else 0
            weights = attention[each, :, attention.shape[2] - seen :]  # [C, seen]
            first = len(history) - seen
            by_candidate = []
            for weight in weights[: len(chosen[each])]:
                order = np.lexsort((-np.arange(seen), -weight))[: self.shown]  # the later at a tie
                by_candidate.append([(first + int(v), float(weight[v])) for v in order])
            yield by_candidate

    def _without(
        self,
        histories: Sequence[History],
        chosen: Sequence[NDArray[np.int64]],
        looked: Sequence[Sequence[Sequence[tuple[int, float]]]],
    ) -> dict[_Pair, list[float]]:
        """The scores of all chosen places after every history without every visit looked at."""
        pairs = [
            _Pair(each, visit)
            for each, by_candidate in enumerate(looked)
            for visit in sorted({visit for visits in by_candidate for visit, _ in visits})
        ]
        found: dict[_Pair, list[float]] = {}
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            fewer = [histories[pair.history].without(pair.visit) for pair in part]
            places = [chosen[pair.history] for pair in part]
            found.update(zip(part, self._rescore(fewer, places), strict=True))
        return found

    def _rescore(
        self, histories: Sequence[History], places: Sequence[NDArray[np.int64]]
    ) -> Iterator[list[float]]:
        encoded = self.ranker.encode(end_to_end(histories))
        scores = self.ranker.score(encoded, _beside(places))  # [B, C]
        for history, own, score in zip(histories, places, scores, strict=True):
            # as everywhere in serving, nothing left to read leaves the popularity of the place
            kept = score[: len(own)] if len(history) else self.places.log_popularity[own]
            yield kept.astype(np.float64).tolist()


def _beside(places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Lists of places side by side, the shorter ones filled up with their first. -> [B, C]"""
    longest = max(map(len, places))
    return np.stack([np.append(own, np.repeat(own[:1], longest - len(own))) for own in places])
