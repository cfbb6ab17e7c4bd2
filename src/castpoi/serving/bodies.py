"""Input of the API: ids, times, and request bodies by field.

Bodies are checked before anything is done: unknown fields are rejected, and "10" is not a number.
Ids may be whole numbers, and times epochs.
"""

import math
from datetime import datetime
from typing import Annotated, Any, Final, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
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
from castpoi.recommend.request import DEFAULT_K, Moment, Request, Visits, moment_of
from castpoi.serving.settings import (
    MAX_CANDIDATES,
    MAX_CATEGORIES,
    MAX_CORNERS,
    MAX_HISTORY,
    MAX_RECOMMENDATIONS,
    MAX_REQUESTS,
    MAX_VISITS,
)

_DATE_ONLY: Final = len("2012-04-03")
_HALF_AROUND_THE_EARTH_KM: Final = math.ceil(math.pi * EARTH_RADIUS_KM)
_AT: Final = "2012-04-03T18:00:09-04:00"
_TIME_SCHEMA: Final = WithJsonSchema(
    {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}], "examples": [_AT]}
)


def _read_time(at: object) -> Moment:
    is_text = isinstance(at, str) and _DATE_ONLY < len(at) <= 40
    if isinstance(at, bool) or not (is_text or isinstance(at, int | float)):
        raise ValueError(f"write a time as {_AT}, or as an epoch")
    try:
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        return moment_of(cast("datetime | float", time), what="the time")
    except (ValueError, OverflowError) as problem:
        raise ValueError(f"not a time; write it as {_AT}") from problem
    except BadInput as problem:
        raise ValueError("not between the years 1980 and 2100") from problem


def _read_instant(at: object) -> Moment:
    moment = _read_time(at)
    if moment.is_naive:
        raise ValueError(
            "no offset from UTC; write it as 2012-04-03T18:00:09-04:00, or with Z for UTC"
        )
    return moment


def _text_of_number(identity: object) -> object:
    return str(identity) if isinstance(identity, int) and identity is not True else identity


def _check_reachable(identity: str) -> str:
    if identity in (".", ".."):  # a path cannot contain it, so it could never be erased
        raise ValueError("'.' and '..' are not valid ids")
    return identity


Text = Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""Any characters but control characters, which a database may reject."""
Id = Annotated[
    Text,
    Field(min_length=1),
    AfterValidator(_check_reachable),
    BeforeValidator(_text_of_number, json_schema_input_type=str | int),
]
"""Id of a user or place, or the key of a visit; a whole number is read as text."""
Time = Annotated[Moment, PlainValidator(_read_time), _TIME_SCHEMA]
"""An ISO time, or an epoch; without an offset from UTC it is the local time of the place."""
Instant = Annotated[Moment, PlainValidator(_read_instant), _TIME_SCHEMA]
"""An ISO time with an offset from UTC, or an epoch."""
QueryTime = Annotated[Any, PlainValidator(_read_time), _TIME_SCHEMA]
"""A `Time` in a query, where FastAPI takes no dataclass."""


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def _with_examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class Point(_Strict):
    """A position in degrees."""

    lat: float = Field(ge=-90, le=90)
    lon: float = Field(ge=-180, le=180)


class BoxBody(_Strict):
    """A box in degrees; west above east crosses the date line."""

    south: float = Field(ge=-90, le=90)
    west: float = Field(ge=-180, le=180)
    north: float = Field(ge=-90, le=90)
    east: float = Field(ge=-180, le=180)

    @model_validator(mode="after")
    def _south_is_below_north(self) -> "BoxBody":
        if self.south > self.north:
            raise ValueError("south must not be above north")
        return self


class HistoryVisit(_Strict):
    """One visit of a history: a place and a time."""

    place: Id
    at: Time


class RecommendBody(_Strict):
    """A request for the next places of a user, or after a history."""

    model_config = _with_examples(
        {"history": [{"place": "cafe", "at": _AT}], "k": 5},
        {"user": "470", "near": {"lat": 40.73, "lon": -73.99}, "within_km": 2, "explain": True},
    )

    user: Id | None = None
    """A user whose visits are in the store."""
    history: list[HistoryVisit] | None = Field(None, max_length=MAX_HISTORY)
    """Visits in any order; may be empty."""
    k: int = Field(DEFAULT_K, ge=1, le=MAX_RECOMMENDATIONS)
    """Maximal number of places."""
    at: Instant | None = None
    """Time of the request, with an offset; later visits are left out. By default the last visit, or
    now for a model with known time."""
    near: Point | None = None
    """Position of the person."""
    within_km: float | None = Field(None, gt=0, le=_HALF_AROUND_THE_EARTH_KM)
    """Only places within this distance of `near`, or else of the last visit."""
    box: BoxBody | None = None
    """Only places in this box."""
    polygon: list[Point] | None = Field(None, min_length=3, max_length=MAX_CORNERS)
    """Only places in this polygon, by its corners in order."""
    categories: list[Id] | None = Field(None, min_length=1, max_length=MAX_CATEGORIES)
    """Only these categories."""
    max_per_category: int | None = Field(None, ge=1)
    """At most this many places of one category."""
    exclude: list[Id] | None = Field(None, max_length=MAX_CANDIDATES)
    """Never these places, by id."""
    exclude_visited: bool = False
    """Only places that the history never visits."""
    new_only: bool = Field(
        False, description=f"Only places not among the last {REVISIT_WINDOW} visits."
    )
    candidates: list[Id] | None = Field(None, min_length=1, max_length=MAX_CANDIDATES)
    """Only these places, by id."""
    explain: bool = False
    """Whether to return terms, visits, counterfactuals."""
    run: Id | None = None
    """Name of the run that answers, if the service has several; by default that of the user's
    share."""

    @model_validator(mode="after")
    def _one_history(self) -> "RecommendBody":
        if (self.user is None) == (self.history is None):
            raise ValueError("give either 'user' or 'history' (which may be empty), and not both")
        return self

    @property
    def request(self) -> Request:
        """The request to the recommender."""
        given = {name: _plain(value) for name, value in self if name not in {"run", "history"}}
        visits = self.history or []
        history = Visits.at_moments([each.place for each in visits], [each.at for each in visits])
        return Request.of(**given, history=None if self.history is None else history)


def _plain(value: Any) -> Any:
    """Positions and boxes as tuples of their fields."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return tuple(vars(value).values()) if isinstance(value, _Strict) else value


class BatchBody(_Strict):
    """Requests that are answered one per line."""

    model_config = _with_examples({"requests": [{"user": "470", "k": 3}, {"history": [], "k": 3}]})

    requests: list[RecommendBody] = Field(min_length=1, max_length=MAX_REQUESTS)


class PostedVisit(_Strict):
    """A visit of a user to a place."""

    model_config = _with_examples({"user": "470", "place": "cafe", "at": _AT, "key": "visit-1"})

    user: Id
    place: Id
    at: Time
    key: Id | None = None
    """Your name for this visit: sent again with the same key, it is stored once. Without a key,
    place and time identify the visit."""


class PostedVisits(_Strict):
    """Many visits, of which all or none are stored."""

    visits: list[PostedVisit] = Field(min_length=1, max_length=MAX_VISITS)


ONE: Final = "one visit"
MANY: Final = "many visits"


def _one_or_many(body: Any) -> str:
    is_many = isinstance(body, PostedVisits) or (isinstance(body, dict) and "visits" in body)
    return MANY if is_many else ONE


VisitsBody = Annotated[
    Annotated[PostedVisit, Tag(ONE)] | Annotated[PostedVisits, Tag(MANY)],
    Discriminator(_one_or_many),
]


def field_names() -> set[str]:
    """The names of the fields of all bodies."""
    return {name for body in _Strict.__subclasses__() for name in body.model_fields}
