"""Answering: from questions to recommendations with names, distances and reasons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.record import HOUR_US
from castpoi.core.provenance import Stopwatch
from castpoi.methods.registry import Method
from castpoi.model.config import PAPER_TERMS
from castpoi.recommend.moments import local_datetime
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.question import Question
from castpoi.recommend.recommendation import (
    Recommendation,
    Recommendations,
    TermValues,
    VisitReason,
    VisitsBy,
)
from castpoi.recommend.scores import PlaceScorer, Scores
from castpoi.recommend.sentence import sentence_of

if TYPE_CHECKING:  # it needs torch, which counted methods do without
    from castpoi.recommend.reasons import Reason, Reasoner, Witness


class Answerer:
    """Answers questions, many at a time."""

    def __init__(
        self,
        scorer: PlaceScorer,
        reasoner: "Reasoner | None",
        places: PlaceBook,
        *,
        model: str,
        method: Method,
    ) -> None:
        self.scorer = scorer
        self.reasoner = reasoner
        self.places = places
        self.model = model
        self.method = method

    @property
    def visits_by(self) -> VisitsBy | None:
        """What the weights of visits mean; None for methods that cannot tell visits."""
        return None if self.reasoner is None else self.reasoner.visits_by

    def answer(self, questions: Sequence[Question], work: Stopwatch) -> list[Recommendations]:
        """One answer for each question, the same as alone up to float32 rounding of scores."""
        if not questions:
            return []
        scores = self.scorer.score(
            [question.history for question in questions],
            [question.is_allowed for question in questions],
            [question.k for question in questions],
        )
        chosen = [scores.best(each, question.k) for each, question in enumerate(questions)]
        reasons = self._reasons(questions, chosen, scores)
        answers = [
            self._recommendations(question, each, places, reasons.get(each), scores)
            for each, (question, places) in enumerate(zip(questions, chosen, strict=True))
        ]
        return [
            Recommendations(
                recommendations=found,
                model=self.model,
                seconds=work.seconds,
                remarks=(*question.remarks, *self._remarks(question)),
                visits_by=self.visits_by if question.explain else None,
            )
            for question, found in zip(questions, answers, strict=True)
        ]

    def _reasons(
        self, questions: Sequence[Question], chosen: Sequence[NDArray[np.int64]], scores: Scores
    ) -> "dict[int, list[Reason]]":
        """The reasons of every question that asks for them and has a history, by its number."""
        asked = [each for each, q in enumerate(questions) if q.explain and len(q.history)]
        if self.reasoner is None or not asked:
            return {}
        reasons = self.reasoner.reasons(
            [questions[each].history for each in asked],
            [chosen[each] for each in asked],
            [scores.score[each, chosen[each]] for each in asked],
        )
        return dict(zip(asked, reasons, strict=True))

    def _remarks(self, question: Question) -> list[str]:
        """What the method leaves open; an empty history is not answered by the method."""
        if not len(question.history):
            return []
        remarks = []
        if question.explain and self.reasoner is None:
            remarks.append(
                f"{self.method.name} has no terms and no reader, so there are no terms and no "
                "visits to show"
            )
        if not self.method.needs_training:
            remarks.append(
                f"{self.method.name} is counted, not learned: its probabilities order places, "
                "they are no chances"
            )
        return remarks

    def _recommendations(
        self,
        question: Question,
        each: int,
        chosen: NDArray[np.int64],
        reasons: "list[Reason] | None",
        scores: Scores,
    ) -> tuple[Recommendation, ...]:
        probability = scores.probability(each, chosen)
        km = None if question.origin is None else self.places.km_from(question.origin, chosen)
        visited = np.isin(chosen, question.history.place)
        found = []
        for rank, place in enumerate(chosen.tolist()):
            score = float(scores.score[each, place])
            terms, visits = self._why(question, place, score, reasons[rank] if reasons else None)
            found.append(
                Recommendation(
                    place=self.places.ids[place],
                    name=self.places.names[place],
                    category=self.places.categories[place],
                    lat=float(self.places.lat[place]),
                    lon=float(self.places.lon[place]),
                    score=score,
                    probability=float(probability[rank]),
                    distance_km=None if km is None else float(km[rank]),
                    visited=bool(visited[rank]),
                    sentence=sentence_of(place, question, self.places),
                    terms=terms,
                    visits=visits,
                )
            )
        return tuple(found)

    def _why(
        self, question: Question, place: int, score: float, reason: "Reason | None"
    ) -> tuple[TermValues | None, tuple[VisitReason, ...] | None]:
        """Terms and visits of one recommendation, where they are asked for and exist."""
        if question.explain and not len(question.history):
            return self._popularity_alone(score), ()
        if reason is None:
            return None, None
        return reason.terms, tuple(
            self._visit(question, place, witness) for witness in reason.visits
        )

    def _popularity_alone(self, score: float) -> TermValues:
        """The terms of a score after an empty history."""
        names = PAPER_TERMS if self.reasoner is None else self.reasoner.term_names
        return TermValues(**dict.fromkeys(names, 0.0) | {"popularity": score})

    def _visit(self, question: Question, place: int, witness: "Witness") -> VisitReason:
        history, visit = question.history, witness.visit
        visited, at_us = int(history.place[visit]), int(history.at_us[visit])
        km = self.places.km_from(self.places.point(place), np.array([visited]))
        return VisitReason(
            place=self.places.ids[visited],
            name=self.places.names[visited],
            category=self.places.categories[visited],
            at=local_datetime(at_us, int(history.offset_minutes[visit])),
            hours_ago=(question.at_us - at_us) / HOUR_US,
            weight=witness.weight,
            distance_km=float(km[0]),
            score_without=witness.score_without,
        )
