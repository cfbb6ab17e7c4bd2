"""Request bodies of the API, checked field by field before anything is done.

Unknown fields are rejected, and no value is converted to another type: "10" is not a number.
"""

import math
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)

from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.errors import BadInput
from castpoi.geo.distance import EARTH_RADIUS_KM
from castpoi.recommend.moments import Moment, moment_of
from castpoi.recommend.request import DEFAULT_K, Request, Visits
from castpoi.serving.settings import (
    MOST_CANDIDATES,
    MOST_CATEGORIES,
    MOST_HISTORY,
    MOST_RECOMMENDATIONS,
    MOST_VISITS,
)

_MOST_CHARACTERS: Final = 256
_DATE_ONLY: Final = len("2012-04-03")
_HALF_AROUND_THE_EARTH_KM: Final = math.ceil(math.pi * EARTH_RADIUS_KM)
_TIME_SCHEMA: Final = WithJsonSchema({"type": "string", "format": "date-time"})


def _read_time(at: object) -> Moment:
    if not isinstance(at, str) or not _DATE_ONLY < len(at) <= 40:
        raise ValueError("write a time as 2012-04-03T18:00:09-04:00")
    try:
        return moment_of(datetime.fromisoformat(at), what="the time")
    except (ValueError, OverflowError) as problem:
        raise ValueError("not a time; write it as 2012-04-03T18:00:09-04:00") from problem
    except BadInput as problem:
        raise ValueError("not between the years 1980 and 2100") from problem


def _read_instant(at: object) -> Moment:
    moment = _read_time(at)
    if moment.is_naive:
        raise ValueError(
            "no offset from UTC; write it as 2012-04-03T18:00:09-04:00, or with Z for UTC"
        )
    return moment


def _check_reachable(identity: str) -> str:
    if identity in (".", ".."):  # a path cannot contain it, so it could never be erased
        raise ValueError("'.' and '..' are not valid ids")
    return identity


Text = Annotated[str, Field(max_length=_MOST_CHARACTERS, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""Any characters but control characters, which a database may reject."""

Id = Annotated[Text, Field(min_length=1), AfterValidator(_check_reachable)]
"""Id of a user or place, or the key of a visit."""

Time = Annotated[Moment, PlainValidator(_read_time), _TIME_SCHEMA]
"""An ISO time; without an offset from UTC it is the local time of the place."""
Instant = Annotated[Moment, PlainValidator(_read_instant), _TIME_SCHEMA]
"""An ISO time with an offset from UTC."""
QueryTime = Annotated[Any, PlainValidator(_read_time), _TIME_SCHEMA]
"""A `Time` in a query, where FastAPI takes no dataclass."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Point(_Strict):
    """A position in degrees."""

    lat: float = Field(ge=-90, le=90)
    lon: float = Field(ge=-180, le=180)


class HistoryVisit(_Strict):
    """A visit of a history."""

    place: Id
    at: Time


class RecommendBody(_Strict):
    """A request for the next places of a user, or after a history."""

    user: Id | None = Field(None, description="A user whose visits are in the store.")
    history: list[HistoryVisit] | None = Field(
        None, max_length=MOST_HISTORY, description="Visits in any order; may be empty."
    )
    k: int = Field(
        DEFAULT_K, ge=1, le=MOST_RECOMMENDATIONS, description="Maximal number of places."
    )
    at: Instant | None = Field(
        None,
        description="Time of the request, with an offset; later visits are left out. By default "
        "the last visit, or now for a model with known time.",
    )
    near: Point | None = Field(None, description="Position of the person.")
    within_km: float | None = Field(
        None,
        gt=0,
        le=_HALF_AROUND_THE_EARTH_KM,
        description="Only places within this distance of `near`, or else of the last visit.",
    )
    categories: list[Id] | None = Field(
        None, min_length=1, max_length=MOST_CATEGORIES, description="Only these categories."
    )
    exclude_visited: bool = Field(False, description="Only places that the history never visits.")
    new_only: bool = Field(
        False, description=f"Only places not among the last {REVISIT_WINDOW} visits."
    )
    candidates: list[Id] | None = Field(
        None, min_length=1, max_length=MOST_CANDIDATES, description="Only these places, by id."
    )
    explain: bool = Field(False, description="Whether to return terms, visits, counterfactuals.")

    @model_validator(mode="after")
    def _one_history(self) -> "RecommendBody":
        if (self.user is None) == (self.history is None):
            raise ValueError("give either 'user' or 'history' (which may be empty), and not both")
        return self

    def request(self, *, explain: bool) -> Request:
        """The request to the recommender."""
        return Request(
            user=self.user,
            history=None if self.history is None else _visits(self.history),
            k=self.k,
            at_us=None if self.at is None else self.at.clock_us,
            near=None if self.near is None else (self.near.lat, self.near.lon),
            within_km=self.within_km,
            categories=None if self.categories is None else tuple(self.categories),
            exclude_visited=self.exclude_visited,
            new_only=self.new_only,
            candidates=None if self.candidates is None else tuple(self.candidates),
            explain=explain,
        )


def _visits(history: list[HistoryVisit]) -> Visits:
    return Visits.at_moments([each.place for each in history], [each.at for each in history])


class PostedVisit(_Strict):
    """A visit of a user to a place."""

    user: Id
    place: Id
    at: Time
    key: Id | None = Field(
        None,
        description="Your name for this visit: sent again with the same key, it is stored once. "
        "Without a key, place and time identify the visit.",
    )


class PostedVisits(_Strict):
    """Many visits, of which all or none are stored."""

    visits: list[PostedVisit] = Field(min_length=1, max_length=MOST_VISITS)


ONE: Final = "one visit"
MANY: Final = "many visits"


def _one_or_many(body: Any) -> str:
    is_many = isinstance(body, PostedVisits) or (isinstance(body, dict) and "visits" in body)
    return MANY if is_many else ONE


VisitsBody = Annotated[
    Annotated[PostedVisit, Tag(ONE)] | Annotated[PostedVisits, Tag(MANY)],
    Discriminator(_one_or_many),
]
