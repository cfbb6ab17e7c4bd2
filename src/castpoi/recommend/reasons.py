"""Reasons: the terms of a score, the visits named for it, and what if they were not.

The weight of a visit is the reader's attention, mean over heads and layers. A weight says where
the reader looked, not what came of it; the *counterfactual* does: the score of the candidate
after the same history without the visit, encoded and scored anew. Where a model has no reader, the
weight is made of counterfactuals: the visit's share of what the score would lose.

Shapes: B histories, C candidates, T slots of the reader's window.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.model.castpoi import Terms
from castpoi.model.ranker import CastPoiRanker
from castpoi.recommend.history import History, end_to_end
from castpoi.recommend.missed_visits import left_out, most_missed
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.recommendation import TermValues, VisitsBy

VISITS_SHOWN: Final = 5
"""Visits that explain one recommendation at most."""

_AT_ONCE: Final = 64  # histories without one of their visits; bounds memory

_Named = list[list[tuple[int, float]]]  # visits and weights for every candidate, heaviest first
_Without = list[dict[int, list[float]]]  # of every history: visit -> score of every candidate


@dataclass(frozen=True, kw_only=True)
class Witness:
    """A visit that is named as a reason for a candidate."""

    visit: int
    """Which visit of the history, oldest 0."""
    weight: float
    score_without: float


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a candidate has its score."""

    terms: TermValues
    visits: tuple[Witness, ...]
    """Heaviest first."""


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

    @property
    def visits_by(self) -> VisitsBy:
        """How visits are found and weighed: where the reader looks, or by what is missed."""
        return "counterfactual" if self.ranker.scorer.reader is None else "attention"

    def reasons(
        self,
        histories: Sequence[History],
        chosen: Sequence[NDArray[np.int64]],
        scores: Sequence[NDArray[np.float32]],
    ) -> list[list[Reason]]:
        """Why each history's chosen places, at least one each, have their scores. B, B of [C]"""
        terms = self._terms(histories, chosen)
        if self.visits_by == "attention":
            named = list(self._looked(terms, histories, chosen))
            without = self._without(histories, chosen, [_visits_of(each) for each in named])
        else:
            by_turns = [left_out(len(history)) for history in histories]
            without = self._without(histories, chosen, by_turns)
            named = list(self._missed(scores, without))
        return [
            [
                Reason(
                    terms=self._values(terms, each, column, float(scores[each][column])),
                    visits=tuple(
                        Witness(
                            visit=visit,
                            weight=weight,
                            score_without=without[each][visit][column],
                        )
                        for visit, weight in named[each][column]
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
    ) -> Iterator[_Named]:
        """The visits that the reader looked at most, for the candidates of each history."""
        attention = terms.attention_by_visit.cpu().numpy()  # [B, C, T]
        for each, history in enumerate(histories):
            seen = min(len(history), attention.shape[2])
            weights = attention[each, :, attention.shape[2] - seen :]  # [C, seen]
            given = weights.sum(axis=1, keepdims=True)  # less than 1 where it looked away
            weights = weights / np.maximum(given, np.finfo(weights.dtype).tiny)
            first = len(history) - seen
            by_candidate = []
            for weight in weights[: len(chosen[each])]:
                order = np.lexsort((-np.arange(seen), -weight))[: self.shown]  # the later at a tie
                by_candidate.append([(first + int(v), float(weight[v])) for v in order])
            yield by_candidate

    def _missed(self, scores: Sequence[NDArray[np.float32]], without: _Without) -> Iterator[_Named]:
        """The visits whose absence lowers the score most, for the candidates of each history."""
        for own, by_visit in zip(scores, without, strict=True):
            yield [
                most_missed(
                    score, {visit: lower[column] for visit, lower in by_visit.items()}, self.shown
                )
                for column, score in enumerate(own.tolist())
            ]

    def _without(
        self,
        histories: Sequence[History],
        chosen: Sequence[NDArray[np.int64]],
        visits: Sequence[Iterable[int]],
    ) -> _Without:
        """The scores of all chosen places after every history without each of these visits."""
        pairs = [(each, visit) for each, own in enumerate(visits) for visit in own]
        found: _Without = [{} for _ in histories]
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            fewer = [histories[each].without(visit) for each, visit in part]
            places = [chosen[each] for each, _ in part]
            for (each, visit), scores in zip(part, self._rescore(fewer, places), strict=True):
                found[each][visit] = scores
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


def _visits_of(named: _Named) -> list[int]:
    """The visits named for any candidate of a history, oldest first."""
    return sorted({visit for visits in named for visit, _ in visits})


def _beside(places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Lists of places side by side, the shorter ones filled up with their first. -> [B, C]"""
    longest = max(map(len, places))
    return np.stack([np.append(own, np.repeat(own[:1], longest - len(own))) for own in places])
