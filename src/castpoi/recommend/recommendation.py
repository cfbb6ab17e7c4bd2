"""Answers of a recommender: ranked places with explanations and a reason in a sentence.

The dataclasses are also the response models of the HTTP API: FastAPI reads their fields and the
text below each field.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, dataclass_transform

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins.record import HOUR_US, MINUTE_US
from castpoi.core.notebook import html_table
from castpoi.core.quantities import counted
from castpoi.methods.ranker import Found
from castpoi.recommend.explain import Explanation, VisitContribution
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.request import local_datetime
from castpoi.recommend.resolve import ResolvedRequest

WeighedBy = Literal["attention", "counterfactual"]
"""Meaning of the weight of a visit: its share of the attention, or of what the score would lose."""

_RECENT: Final = 20  # last visits that count as recent
_CLOSE_KM: Final = 1.0  # recent visits within this distance of a place are mentioned
_FAR_KM: Final = 50.0  # places this far from the last visit are called far away
_DAY_PARTS: Final = ("night", "morning", "afternoon", "evening")
_DAY_PART_MINUTES: Final = 24 * 60 // len(_DAY_PARTS)
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_STEP_METRES: Final = 50
_UNITS: Final = (  # unit, minutes, and the count from which it is used
    ("year", 365 * 24 * 60, 2),
    ("month", 30 * 24 * 60, 2),
    ("week", 7 * 24 * 60, 2),
    ("day", 24 * 60, 1),
    ("hour", 60, 1),
    ("minute", 1, 1),
)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Answer:
    """Base of answers: frozen dataclasses that pydantic reads as response models."""

    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True, "extra": "forbid"}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class ContributingVisit(Answer):
    """A past visit that contributes to the score of a recommended place."""

    place: str
    """Id of the visited place."""
    name: str | None
    category: str | None
    at: datetime
    """Local time of the visited place, with its offset from UTC."""
    hours_ago: float
    """Hours from the visit to the time of the request."""
    weight: float
    """Share of the attention to all visits or, for methods without attention, share of what the
    score would lose without each of a few visits. The weights of all visits sum to 1."""
    distance_km: float
    """Distance from the visited place to the recommended one."""
    score_without: float
    """Score of the recommended place if the visit had not happened."""

    def to_dict(self) -> dict[str, Any]:
        """The visit as JSON of the API."""
        return {**vars(self), "at": self.at.isoformat()}


class Recommendation(Answer):
    """A recommended place, its probability and its explanation."""

    place: str
    """Id of the place."""
    name: str | None
    category: str | None
    lat: float
    lon: float
    rank: int | None
    """Rank among all places that pass the filters, whatever the `candidates`; null if these are
    given and not all places are scored exactly."""
    score: float
    probability: float
    """Softmax of the scores of all places, independent of the filters."""
    distance_km: float | None
    """Distance from `near`, otherwise from the last visit; null if there is neither."""
    visited: bool
    """Whether the history visits the place."""
    sentence: str
    """A reason in plain words."""
    terms: dict[str, float] | None
    """The terms whose sum is the score, by name; null unless `explain`, and for methods whose
    scores have no terms."""
    visits: tuple[ContributingVisit, ...] | None
    """The visits that contribute most, highest weight first; null unless `explain`."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Recommendation":
        """A recommendation from JSON of the API."""
        visits = tuple(
            ContributingVisit(**{**each, "at": datetime.fromisoformat(each["at"])})
            for each in row["visits"] or ()
        )
        return cls(**{**row, "visits": None if row["visits"] is None else visits})

    def to_dict(self) -> dict[str, Any]:
        """The recommendation as JSON of the API."""
        visits = None if self.visits is None else [each.to_dict() for each in self.visits]
        return {**vars(self), "visits": visits}


class Recommendations(Answer):
    """The recommended places of one request, best first."""

    recommendations: tuple[Recommendation, ...]
    model: str
    """Method and first characters of the SHA-256 of the model."""
    seconds: float = field(compare=False)
    """Time of the batch in which the request was answered."""
    remarks: tuple[str, ...]
    """Sentences about input that was left out or assumed."""
    visits_by: WeighedBy | None
    """Meaning of the weights of visits; null unless `explain`."""
    user_known: bool | None = None
    """Whether a service has visits of the user; null without a user."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Recommendations":
        """An answer from JSON of the API."""
        rows = tuple(map(Recommendation.of, answer["recommendations"]))
        return cls(**{**answer, "recommendations": rows, "remarks": tuple(answer["remarks"])})

    def __iter__(self) -> Iterator[Recommendation]:
        return iter(self.recommendations)

    def __len__(self) -> int:
        return len(self.recommendations)

    def __repr__(self) -> str:
        best = ", ".join(
            f"{each.name or each.place} {each.probability:.1%}" for each in self.recommendations[:3]
        )
        return f"{len(self)} recommendations of {self.model}: {best}{', …' * (len(self) > 3)}"

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{rank}. {each.name or each.place}",
                each.category or "",
                "" if each.distance_km is None else f"{each.distance_km:.1f}",
                f"{100 * each.probability:.1f}",
                each.sentence,
            ]
            for rank, each in enumerate(self, start=1)
        ]
        return html_table(
            ["place", "category", "km", "%", "why"],
            rows,
            caption=" ".join([self.model, *(f"({remark})" for remark in self.remarks)]),
            points=[(each.lat, each.lon) for each in self],
        )

    def to_geojson(self) -> dict[str, Any]:
        """The answer as a GeoJSON FeatureCollection."""
        return feature_collection(self.to_dict(), "recommendations")

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON of the API."""
        rows = [each.to_dict() for each in self.recommendations]
        return {**vars(self), "recommendations": rows, "remarks": list(self.remarks)}


def recommendations_of(
    request: ResolvedRequest,
    found: Found,
    explanations: Sequence[Explanation | None],
    places: PlaceBook,
) -> Iterator[Recommendation]:
    """The best places of a request, in their order. [K]"""
    probability = found.probability
    ranks: Sequence[int | None] = range(1, len(found.place) + 1)
    if request.is_rival is not None:
        ranks = [None] * len(found.place)
        if found.rank is not None:
            ranks = [rank or None for rank in found.rank.tolist()]
    km = None if request.origin is None else places.km_from(request.origin, found.place)
    visited = np.isin(found.place, request.history.place)
    for number, (place, why) in enumerate(zip(found.place.tolist(), explanations, strict=True)):
        yield Recommendation(
            **places.details(place),
            rank=ranks[number],
            score=float(found.score[number]),
            probability=float(probability[number]),
            distance_km=None if km is None else float(km[number]),
            visited=bool(visited[number]),
            sentence=sentence_of(place, request, places),
            terms=why and why.terms,
            visits=why and _contributing_visits(why.visits, place, request, places),
        )


def _contributing_visits(
    contributions: Sequence[VisitContribution],
    place: int,
    request: ResolvedRequest,
    places: PlaceBook,
) -> tuple[ContributingVisit, ...]:
    """The visits that contribute to the score of a place, with their details."""
    history = request.history
    visits = np.array([each.visit for each in contributions], dtype=np.int64)
    visited, at_us = history.place[visits], history.at_us[visits].tolist()
    km = places.km_from(places.point(place), visited).tolist()
    return tuple(
        ContributingVisit(
            place=places.ids[there],
            name=places.names[there],
            category=places.categories[there],
            at=local_datetime(at_us[row], int(history.offset_minutes[visits[row]])),
            hours_ago=(request.at_us - at_us[row]) / HOUR_US,
            weight=contributions[row].weight,
            distance_km=km[row],
            score_without=contributions[row].score_without,
        )
        for row, there in enumerate(visited.tolist())
    )


def sentence_of(place: int, request: ResolvedRequest, places: PlaceBook) -> str:
    """The reason for a place in one plain sentence, from visits and distances alone.

        You were here 14 times, last 2 days ago; within 300 m of three of your recent evening visits
        New to you; 2.3 km from your last visit

    It states facts about the place and the history, without coordinates; what moved the model is
    in the terms and visits of the explanation.
    """
    if request.has_visits:
        clauses = [_own_visits(place, request), *_closeness(place, request, places)]
    elif checkins := int(places.checkins[place]):
        clauses = [f"Popular: {counted(checkins, 'check-in')} by everybody"]
    else:
        clauses = ["No check-ins here yet"]
    if request.near is not None:
        km = float(places.km_from(request.near, np.array([place]))[0])
        clauses.append(f"{distance_words(km)} from you")
    return "; ".join(clauses)


def ago_words(minutes: float) -> str:
    """Time since an event: `2 days ago`."""
    for unit, length, least in _UNITS:
        count = int(minutes // length)
        if count >= least:
            return f"{counted(count, unit)} ago"
    return "a moment ago"


def distance_words(km: float) -> str:
    """A distance; metres are rounded up to fifty."""
    metres = max(1, int(np.ceil(1000 * km / _STEP_METRES))) * _STEP_METRES
    if metres < 1000:
        return f"{metres} m"
    return f"{km:.1f} km" if km < 10 else f"{km:,.0f} km"


def _own_visits(place: int, request: ResolvedRequest) -> str:
    own = request.history.at_us[request.history.place == place]
    if not len(own):
        return "New to you"
    ago = ago_words((request.at_us - int(own[-1])) / MINUTE_US)
    if len(own) == 1:
        return f"You were here once, {ago}"
    return f"You were here {len(own)} times, last {ago}"


def _closeness(place: int, request: ResolvedRequest, places: PlaceBook) -> list[str]:
    """Recent visits near the place or, without any, the distance from the last visit."""
    history = request.history
    recent = history.place[-_RECENT:]
    km = places.km_from(places.point(place), recent)
    close = np.flatnonzero((recent != place) & (km <= _CLOSE_KM))
    if len(close):
        minutes = history.at_us[-_RECENT:] // MINUTE_US + history.offset_minutes[-_RECENT:]
        return [_close_words(km[close], minutes[close])]
    if recent[-1] == place:
        return []
    far = "far away, " if km[-1] >= _FAR_KM else ""
    return [f"{far}{distance_words(float(km[-1]))} from your last visit"]


def _close_words(km: NDArray[np.float64], local_minutes: NDArray[np.int64]) -> str:
    """`within 300 m of three of your recent evening visits`; the part of the day if most agree."""
    part = local_minutes % (24 * 60) // _DAY_PART_MINUTES
    counts = np.bincount(part, minlength=len(_DAY_PARTS))
    usual = int(counts.argmax())
    word = ""
    if 2 * counts[usual] > len(part):
        km, word = km[part == usual], f"{_DAY_PARTS[usual]} "
    within = distance_words(float(km.max()))
    number = _NUMBERS[len(km)] if len(km) < len(_NUMBERS) else len(km)
    return f"within {within} of {number} of your recent {word}visits"


MEDIA_TYPE: Final = "application/geo+json"


def feature(row: Mapping[str, Any]) -> dict[str, Any]:
    """A place with `lat` and `lon` as a point of GeoJSON (RFC 7946), where longitude comes first.

    The other fields are its properties.
    """
    properties = {name: value for name, value in row.items() if name not in ("lat", "lon")}
    point = {"type": "Point", "coordinates": [row["lon"], row["lat"]]}
    return {"type": "Feature", "geometry": point, "properties": properties}


def feature_collection(answer: Mapping[str, Any], rows: str) -> dict[str, Any]:
    """An answer, whose field `rows` has places, as a FeatureCollection with its other fields."""
    others = {name: value for name, value in answer.items() if name != rows}
    features = [feature(row) for row in answer[rows]]
    return {"type": "FeatureCollection", "features": features, **others}


def write_features(tables: Iterable[pl.DataFrame], path: Path) -> None:
    """Write the rows of tables, one after another, as one FeatureCollection."""
    with path.open("w", encoding="utf-8") as file:
        separator = '{"type": "FeatureCollection", "features": [\n'
        for table in tables:
            for row in table.iter_rows(named=True):
                file.write(separator + json.dumps(feature(row), ensure_ascii=False))
                separator = ",\n"
        file.write("\n]}\n" if separator == ",\n" else separator + "]}\n")
