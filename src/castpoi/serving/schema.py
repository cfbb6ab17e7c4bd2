"""The words of the API: what may be asked, checked field by field before anything is done.

Unknown fields are refused, and no value is bent into another type: "10" is not a number.
"""

import math
from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.errors import BadInput
from castpoi.geo.distance import EARTH_RADIUS_KM
from castpoi.recommend.moments import moment_of
from castpoi.recommend.request import DEFAULT_K, Request, Visit
from castpoi.serving.settings import (
    MOST_CANDIDATES,
    MOST_CATEGORIES,
    MOST_HISTORY,
    MOST_RECOMMENDATIONS,
    MOST_VISITS,
)

_MOST_CHARACTERS = 256
_DATE_ONLY = len("2012-04-03")
_HALF_AROUND_THE_EARTH_KM = math.ceil(math.pi * EARTH_RADIUS_KM)


def _read_time(at: object) -> datetime:
    if not isinstance(at, str) or not _DATE_ONLY < len(at) <= 40:
        raise ValueError("write a time as 2012-04-03T18:00:09-04:00")
    try:
        read = datetime.fromisoformat(at)
        moment_of(read, what="the time")
    except (ValueError, OverflowError) as problem:
        raise ValueError("not a time; write it as 2012-04-03T18:00:09-04:00") from problem
    except BadInput as problem:
        raise ValueError("not between the years 1980 and 2100") from problem
    return read


def _check_reachable(identity: str) -> str:
    if identity in (".", ".."):  # a path cannot name it, so it could never be erased
        raise ValueError("'.' and '..' are no ids")
    return identity


Text = Annotated[str, Field(max_length=_MOST_CHARACTERS, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""Any characters but control ones, which a database may refuse."""

Id = Annotated[Text, Field(min_length=1), AfterValidator(_check_reachable)]
"""Id of a user or place, or a client's key."""

Time = Annotated[
    datetime,
    BeforeValidator(_read_time),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An ISO time; without an offset from UTC it is the wall clock of the place."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Point(_Strict):
    """Where somebody is, in degrees."""

    lat: float = Field(ge=-90, le=90)
    lon: float = Field(ge=-180, le=180)


class HistoryVisit(_Strict):
    """A visit of a history."""

    place: Id
    at: Time


class RecommendBody(_Strict):
    """Where next, after the visits of a user or of a history?"""

    user: Id | None = Field(None, description="Somebody whose visits the store keeps.")
    history: list[HistoryVisit] | None = Field(
        None, max_length=MOST_HISTORY, description="Visits in any order; may be empty."
    )
    k: int = Field(DEFAULT_K, ge=1, le=MOST_RECOMMENDATIONS, description="How many places at most.")
    at: Time | None = Field(
        None,
        description="The moment of asking, with an offset; the last visit unless told, or now if "
        "the model knows the time.",
    )
    near: Point | None = Field(None, description="Where the person is.")
    within_km: float | None = Field(
        None,
        gt=0,
        le=_HALF_AROUND_THE_EARTH_KM,
        description="Only places this near to `near`, or else to the last visit.",
    )
    categories: list[Id] | None = Field(
        None, min_length=1, max_length=MOST_CATEGORIES, description="Only places of these."
    )
    exclude_visited: bool = Field(False, description="Only places the history never visits.")
    new_only: bool = Field(
        False, description=f"Only places not among the last {REVISIT_WINDOW} visits."
    )
    candidates: list[Id] | None = Field(
        None, min_length=1, max_length=MOST_CANDIDATES, description="Only these places."
    )
    explain: bool = Field(False, description="Whether to give terms, visits and counterfactuals.")

    @model_validator(mode="after")
    def _one_past(self) -> "RecommendBody":
        if (self.user is None) == (self.history is None):
            raise ValueError("give either 'user' or 'history' (which may be empty), and not both")
        return self

    def request(self, *, explain: bool) -> Request:
        """The same in the words of the recommender."""
        history = self.history
        return Request(
            user=self.user,
            history=None
            if history is None
            else tuple(Visit(visit.place, visit.at) for visit in history),
            k=self.k,
            at=self.at,
            near=None if self.near is None else (self.near.lat, self.near.lon),
            within_km=self.within_km,
            categories=None if self.categories is None else tuple(self.categories),
            exclude_visited=self.exclude_visited,
            new_only=self.new_only,
            candidates=None if self.candidates is None else tuple(self.candidates),
            explain=explain,
        )


class PostedVisit(_Strict):
    """A user was at a place."""

    user: Id
    place: Id
    at: Time
    key: Id | None = Field(
        None,
        description="Your name for this visit: sent again, it is not stored again. Without one, "
        "place and time are its name.",
    )


class PostedVisits(_Strict):
    """Many visits, stored all or none."""

    visits: list[PostedVisit] = Field(min_length=1, max_length=MOST_VISITS)


ONE, MANY = "one visit", "many visits"


def _one_or_many(body: Any) -> str:
    is_many = isinstance(body, PostedVisits) or (isinstance(body, dict) and "visits" in body)
    return MANY if is_many else ONE


VisitsBody = Annotated[
    Annotated[PostedVisit, Tag(ONE)] | Annotated[PostedVisits, Tag(MANY)],
    Discriminator(_one_or_many),
]
