"""What a person may ask of a run: where next, after these visits, among those places?"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from castpoi.core.errors import BadInput
from castpoi.recommend.moments import instant_us

DEFAULT_K: Final = 10


@dataclass(frozen=True)
class Visit:
    """A place, by its id in the city, and when somebody was there.

    `at` is a datetime or a text; without an offset from UTC it is the wall clock of the place.
    """

    place: str
    at: datetime | str

    @classmethod
    def of(cls, visit: "Visit | Mapping[str, Any] | tuple[str, datetime | str]") -> "Visit":
        """A visit from itself, from `{"place": ..., "at": ...}` or from a pair."""
        if isinstance(visit, cls):
            return visit
        if isinstance(visit, Mapping):
            if not {"place", "at"} <= visit.keys():
                raise BadInput(
                    f"a visit of the history has {', '.join(map(str, visit)) or 'nothing'}; "
                    'it must have "place" and "at"'
                )
            return cls(str(visit["place"]), visit["at"])
        if isinstance(visit, tuple | list) and len(visit) == 2:
            return cls(str(visit[0]), visit[1])
        raise BadInput(
            f"a visit of the history is a {type(visit).__name__}; it must be a Visit, a pair of "
            'place and time, or an object with "place" and "at"'
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """One question to a recommender; refuses what makes no sense.

    Exactly one of `history` and `user` is given; an empty history is a history.
    """

    history: tuple[Visit, ...] | None = None
    """Visits in any order; the recommender sorts them by time."""
    user: str | None = None
    """Somebody whose visits the recommender knows."""
    k: int = DEFAULT_K
    """How many places at most."""
    at: datetime | str | None = None
    """The moment of asking, with an offset; else the last visit, or now for a model that knows
    the time. Later visits are left out."""
    near: tuple[float, float] | None = None
    """Where the person is: lat, lon in degrees."""
    within_km: float | None = None
    """Only places this near to `near`, or to the last visit if `near` is not given."""
    categories: tuple[str, ...] | None = None
    """Only places of these categories; small and capital letters are the same."""
    exclude_visited: bool = False
    """Only places that the history never visits."""
    new_only: bool = False
    """Only new places: not among the last 512 visits."""
    candidates: tuple[str, ...] | None = None
    """Only these places, by id."""
    explain: bool = False
    """Whether to give reasons: terms, visits and what would be without them."""

    def __post_init__(self) -> None:
        if (self.history is None) == (self.user is None):
            raise BadInput("give either a history (which may be empty) or a user, and not both")
        if type(self.k) is not int or self.k < 1:  # neither True nor 2.5
            raise BadInput(f"k={self.k} is not valid; it must be a whole number of at least 1")
        if self.at is not None:
            instant_us(self.at, what="at")
        if self.near is not None:
            _check_point(self.near)
        if self.within_km is not None and not (_is_number(self.within_km) and self.within_km > 0):
            raise BadInput(f"within_km={self.within_km} is not valid; it must be above 0")

    @classmethod
    def of(
        cls,
        *,
        history: Iterable[Visit | Mapping[str, Any] | tuple[str, datetime | str]] | None = None,
        categories: Iterable[str] | None = None,
        candidates: Iterable[str] | None = None,
        near: Iterable[float] | None = None,
        **others: Any,
    ) -> "Request":
        """A request from plain lists, pairs and mappings."""
        return cls(
            history=None if history is None else tuple(Visit.of(visit) for visit in history),
            categories=_texts(categories, "categories"),
            candidates=_texts(candidates, "candidates"),
            near=None if near is None else _pair(near),
            **others,
        )


def _pair(near: Iterable[float]) -> tuple[float, float]:
    numbers = tuple(near)
    if len(numbers) != 2:
        raise BadInput(f"near has {len(numbers)} parts; it must be a latitude and a longitude")
    return numbers[0], numbers[1]


def _texts(texts: Iterable[str] | None, what: str) -> tuple[str, ...] | None:
    if texts is None:
        return None
    if isinstance(texts, str):
        raise BadInput(f"{what} is one text; give a list of texts")
    return tuple(map(str, texts))


def _check_point(near: tuple[float, float]) -> None:
    # whoever asks for a place is somewhere: the error names the rule, never the coordinate
    for name, degrees, most in zip(("latitude", "longitude"), near, (90, 180), strict=True):
        if not _is_number(degrees) or abs(degrees) > most:
            raise BadInput(
                f"near: the {name} is not a number from -{most} to {most}; "
                "the order is latitude, longitude"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
