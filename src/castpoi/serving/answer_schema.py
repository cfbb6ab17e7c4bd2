"""What the service answers, for its OpenAPI page and for whoever checks answers against it."""

from pydantic import BaseModel, ConfigDict, Field

from castpoi.recommend.recommendation import VisitsBy


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Terms(_Answer):
    """The terms whose sum is the score: four always, others where the model has them."""

    base: float
    popularity: float
    reader: float
    revisit: float
    distance: float = Field(0.0, description="Only from models with a distance gate.")


class ReasonVisit(_Answer):
    """A past visit that is named as a reason for a candidate."""

    place: str
    name: str | None
    category: str | None
    at: str
    hours_ago: float
    weight: float
    distance_km: float
    score_without: float


class RecommendedPlace(_Answer):
    """One place, how likely it is next, and why."""

    place: str
    name: str | None
    category: str | None
    lat: float
    lon: float
    score: float
    probability: float
    distance_km: float | None
    visited: bool
    sentence: str
    terms: Terms | None
    visits: list[ReasonVisit] | None


class RecommendAnswer(_Answer):
    """Places, likeliest first."""

    recommendations: list[RecommendedPlace]
    model: str
    seconds: float
    remarks: list[str]
    visits_by: VisitsBy | None
    """What the weights of visits are; None unless visits are asked for and can be told."""


class VisitsReceipt(_Answer):
    """What became of posted visits."""

    stored: int
    repeated: int
    unknown_places: list[str]


class UserVisit(_Answer):
    """A visit of a user; what is known of its place, if the model knows it."""

    place: str
    at: str
    name: str | None
    category: str | None
    lat: float | None
    lon: float | None


class UserVisitsAnswer(_Answer):
    """The latest visits of a user, oldest first."""

    visits: list[UserVisit]


class UserCount(_Answer):
    """A user and how many visits they have."""

    user: str
    visits: int


class UsersAnswer(_Answer):
    """Users of the store by id."""

    users: list[UserCount]


class Erased(_Answer):
    """How many visits are gone."""

    erased: int


class DeletedVisit(_Answer):
    """How many visits were deleted: one, or none if there is no such visit."""

    deleted: int


class Place(_Answer):
    """A place the model knows."""

    place: str
    name: str | None
    category: str | None
    lat: float
    lon: float


class PlacesAnswer(_Answer):
    """Places of a box or a name."""

    places: list[Place]


class ShortlistCard(_Answer):
    """For how many places the reader reads, and how well that agrees with reading for all."""

    size: int | None
    """None: for all."""
    size_new: int | None
    """The same where no visited place may be recommended."""
    why: str
    agreement: dict[str, float]
    """Size -> share of the exact ten best places that it finds."""
    agreement_new: dict[str, float]
    histories: int
    of: str | None


class ModelCard(_Answer):
    """Which model answers, and where it comes from."""

    model: str
    method: str
    seed: int
    fingerprint: str
    model_sha256: str
    places: int
    private_categories: list[str]
    private_places: int
    """Places of these categories: recommended only to those who have been there."""
    shortlist: ShortlistCard
    visits_by: VisitsBy | None
    """What the weights of visits are; None if the method cannot tell visits."""
    known_time: bool
    """Whether `at`, else the service's clock, is taken for the moment of the next visit."""
    settings: dict[str, object]
    trained_utc: str | None
    versions: dict[str, str]
    commit: str | None
    metrics: dict[str, float | None] | None
    """Of the test part, where a result of this run is known."""


class Health(_Answer):
    """Whether the service lives, or is ready."""

    status: str


class WrongField(_Answer):
    """A field and what is wrong with it."""

    field: str
    problem: str


class ErrorAnswer(_Answer):
    """What went wrong, in a sentence."""

    error: str
    fields: list[WrongField] | None = None
