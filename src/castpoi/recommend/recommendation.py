"""Answers of a recommender: ranked places with explanations.

These dataclasses are also the response models of the HTTP API: FastAPI reads their fields and the
text below each field.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal

WeighedBy = Literal["attention", "counterfactual"]
"""Meaning of the weight of a visit: its share of the attention, or of what the score would lose."""


class Answer:
    """A dataclass that pydantic reads as a response model."""

    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True, "extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
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
    score would lose without each of the last visits. The weights of all visits sum to 1."""
    distance_km: float
    """From the visited place to the recommended one."""
    score_without: float
    """Score of the recommended place if the visit had not happened."""

    def to_dict(self) -> dict[str, Any]:
        """The visit as JSON of the API."""
        return {**vars(self), "at": self.at.isoformat()}


@dataclass(frozen=True, kw_only=True)
class Recommendation(Answer):
    """A recommended place, its probability and its explanation."""

    place: str
    """Id of the place."""
    name: str | None
    category: str | None
    lat: float
    lon: float
    score: float
    probability: float
    """Softmax of the scores of all places, independent of the filters."""
    distance_km: float | None
    """From `near`, or else from the last visit; null if there is neither."""
    visited: bool
    """Whether the history visits the place."""
    sentence: str
    """A reason in plain words."""
    terms: dict[str, float] | None
    """The terms whose sum is the score, by name; null unless `explain`, and for methods whose
    scores have no terms."""
    visits: tuple[ContributingVisit, ...] | None
    """The visits that contribute most, highest weight first; null unless `explain`."""

    def to_dict(self) -> dict[str, Any]:
        """The recommendation as JSON of the API."""
        visits = None if self.visits is None else [each.to_dict() for each in self.visits]
        return {**vars(self), "visits": visits}


@dataclass(frozen=True, kw_only=True)
class Recommendations(Answer):
    """The recommended places of one request, best first."""

    recommendations: tuple[Recommendation, ...]
    model: str
    """Method and first characters of the SHA-256 of the model."""
    seconds: float = field(compare=False)
    """Time of the batch in which the request was answered."""
    remarks: tuple[str, ...]
    """What was left out or assumed, in sentences."""
    visits_by: WeighedBy | None
    """Meaning of the weights of visits; null unless `explain`."""

    def __iter__(self) -> Iterator[Recommendation]:
        return iter(self.recommendations)

    def __len__(self) -> int:
        return len(self.recommendations)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON of the API."""
        return {
            "recommendations": [each.to_dict() for each in self.recommendations],
            "model": self.model,
            "seconds": self.seconds,
            "remarks": list(self.remarks),
            "visits_by": self.visits_by,
        }
