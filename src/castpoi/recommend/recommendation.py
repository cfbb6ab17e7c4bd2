"""What a recommender answers: places, best first, and why, also in the words of the API."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

VisitsBy = Literal["attention", "counterfactual"]
"""What a visit's weight is: the reader's attention, or a share of what a score would lose."""


@dataclass(frozen=True, kw_only=True)
class TermValues:
    """The terms of a score; they sum to it. What a model has beyond the first four may be None."""

    base: float
    """What the state after the last visit says of the place."""
    popularity: float
    """What the place is worth to anybody."""
    reader: float
    """What the place found when it read the history."""
    revisit: float
    """What past visits to the place count."""
    distance: float | None = None
    """What nearness to the user's anchors counts; None if the model has no distance gate."""

    @property
    def total(self) -> float:
        """The score."""
        return sum(self.to_dict().values())

    def to_dict(self) -> dict[str, float]:
        """The terms that the model has, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class VisitReason:
    """A past visit that is named as a reason for a candidate."""

    place: str
    """Id of the visited place."""
    name: str | None
    category: str | None
    at: datetime
    """When, on the clock of the visited place, with its offset from UTC."""
    hours_ago: float
    """Hours from the visit to the moment of asking."""
    weight: float
    """Share of the attention that the reader gave to visits; without a reader, of what the score
    would lose without one of the last visits. All visits sum to 1, those named to less."""
    distance_km: float
    """From the visited place to the candidate."""
    score_without: float
    """The candidate's score had the visit not been made."""

    def to_dict(self) -> dict[str, Any]:
        """The visit in the words of the API."""
        return {**vars(self), "at": self.at.isoformat()}


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One place, how likely it is next, and why."""

    place: str
    """Its id."""
    name: str | None
    category: str | None
    lat: float
    lon: float
    score: float
    probability: float
    """Softmax of the scores of ALL places of the vocabulary, whatever the filters."""
    distance_km: float | None
    """From `near`, or else from the last visit; None where there is neither."""
    visited: bool
    """Whether the history visits it."""
    sentence: str
    """The reason in plain words."""
    terms: TermValues | None = None
    """None unless asked for, and for methods whose score has no terms."""
    visits: tuple[VisitReason, ...] | None = None
    """The visits named as reasons, heaviest first; None as the terms."""

    def to_dict(self) -> dict[str, Any]:
        """The recommendation in the words of the API."""
        return {
            **vars(self),
            "terms": None if self.terms is None else self.terms.to_dict(),
            "visits": None if self.visits is None else [each.to_dict() for each in self.visits],
        }


@dataclass(frozen=True, kw_only=True)
class Recommendations:
    """Places for one request, best first."""

    recommendations: tuple[Recommendation, ...]
    model: str
    """Method and beginning of the model's SHA-256."""
    seconds: float = field(compare=False)
    """Wall time of the answer, and of all that were given with it."""
    remarks: tuple[str, ...] = ()
    """What was left out or assumed, in sentences."""
    visits_by: VisitsBy | None = None
    """What the weights of visits mean; None where no visits are asked for or can be told."""

    def __iter__(self) -> Iterator[Recommendation]:
        return iter(self.recommendations)

    def __len__(self) -> int:
        return len(self.recommendations)

    def to_dict(self) -> dict[str, Any]:
        """The answer in the words of the API."""
        return {
            "recommendations": [each.to_dict() for each in self.recommendations],
            "model": self.model,
            "seconds": self.seconds,
            "remarks": list(self.remarks),
            "visits_by": self.visits_by,
        }
