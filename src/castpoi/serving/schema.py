"""Responses of the API besides recommendations; these dataclasses are the response models."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import JSONResponse

from castpoi.recommend.recommendation import Answer, WeighedBy


class VisitsReceipt(Answer):
    """The outcome of posted visits."""

    stored: int
    repeated: int
    unknown_places: list[str]


class UserVisit(Answer):
    """A visit of a user; details of the place only if the model has it."""

    place: str
    at: str
    name: str | None
    category: str | None
    lat: float | None
    lon: float | None


class UserVisits(Answer):
    """The latest visits of a user, oldest first."""

    visits: list[UserVisit]
    next: str | None
    """For `after` of the next page; null on the last one."""


class UserCount(Answer):
    """A user and the number of their visits."""

    user: str
    visits: int


class Users(Answer):
    """Users of the store by id."""

    users: list[UserCount]
    next: str | None
    """For `after` of the next page; null on the last one."""


class Erased(Answer):
    """The number of erased visits."""

    erased: int


class Deleted(Answer):
    """The number of deleted visits, 0 if there was no such visit."""

    deleted: int


class Place(Answer):
    """A place of the model."""

    place: str
    name: str | None
    category: str | None
    lat: float
    lon: float


class Places(Answer):
    """Places in a box or with a name."""

    places: list[Place]
    next: str | None
    """For `after` of the next page; null on the last one."""


class Category(Answer):
    """A category and its number of places."""

    category: str
    places: int


class Categories(Answer):
    """The categories of the model's places."""

    categories: list[Category]


class ModelCard(Answer):
    """The model and where it comes from."""

    model: str
    method: str
    seed: int
    fingerprint: str
    model_sha256: str
    city: str | None
    """Name of the city, by its folder; null if the run does not record one."""
    zone: str
    """IANA time zone with the most check-ins."""
    places: int
    private_categories: list[str]
    private_places: int
    """Places of these categories: shown and recommended only to people who have visited them."""
    shortlist: int | None
    """Number of places that the reader scores for a request; null: all places are scored."""
    terms: dict[str, str]
    """Name and meaning of each term of a score; empty for methods whose scores have no terms."""
    visits_by: WeighedBy
    """Meaning of the weights of visits in explanations."""
    known_time: bool
    """Whether the model predicts for the time `at`, by default the current time."""
    settings: dict[str, Any]
    trained_utc: str | None
    versions: dict[str, str]
    commit: str | None
    metrics: dict[str, float | None] | None
    """Test metrics, if a result of this run is known."""
    runs: dict[str, float]
    """Shares of users of the runs of this service, by name; empty if it has only one."""


class Health(Answer):
    """Whether the service is alive, or ready."""

    status: str


class WrongField(Answer):
    """A field and its problem."""

    field: str
    problem: str


class Error(Answer):
    """The problem in a sentence, and the wrong fields if there are any."""

    error: str
    fields: list[WrongField] | None = None


def error_answer(
    status: int,
    sentence: str,
    *,
    fields: Sequence[WrongField] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """A response with an error."""
    content: dict[str, Any] = {"error": sentence}
    if fields:
        content["fields"] = [vars(field) for field in fields]
    return JSONResponse(content, status_code=status, headers=dict(headers or {}))
