"""Filters: which places a request allows, decided before any place is scored.

They narrow one after the other, so that the one that leaves nothing can be named.

Shapes: P places.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.errors import BadInput, NoCandidateLeft
from castpoi.recommend.history import History
from castpoi.recommend.place_book import PlaceBook, Point
from castpoi.recommend.request import Request

NEARBY: Final = 100
"""With an empty history, so many places around a person are near enough to be told apart by
popularity."""


class Candidates:
    """The places still allowed."""

    def __init__(self, places: int) -> None:
        self.is_allowed = np.ones(places, dtype=np.bool_)

    def keep(self, is_kept: NDArray[np.bool_], *, which: str, way_out: str) -> None:
        """Allow only places that are kept, or tell that none is. [P]"""
        before = int(self.is_allowed.sum())
        self.is_allowed &= is_kept
        if not self.is_allowed.any():
            raise NoCandidateLeft(
                f"no place is left to recommend: of {before:,} none {which}; {way_out}"
            )


def allowed_places(
    request: Request,
    places: PlaceBook,
    history: History,
    origin: Point | None,
    is_private: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which places may be recommended; raises NoCandidateLeft if there are none. -> [P]

    Private places are for those who have been there, whatever is asked for. is_private: [P]
    """
    candidates = Candidates(len(places))
    _keep_what_is_asked_for(candidates, request, places, origin)
    _keep_unvisited(candidates, request, places, history)
    candidates.keep(
        ~is_private | _is_among(history.place, places),
        which="is public or known to the history (private places)",
        way_out="ask for places of other categories",
    )
    if request.near is not None and request.within_km is None and not len(history):
        _keep_nearest(candidates, places, request.near, max(NEARBY, request.k))
    return candidates.is_allowed


def _keep_what_is_asked_for(
    candidates: Candidates, request: Request, places: PlaceBook, origin: Point | None
) -> None:
    if request.candidates is not None:
        candidates.keep(
            _is_listed(request.candidates, places),
            which="is among the candidates given",
            way_out="give ids of places that the run knows",
        )
    if request.categories is not None:
        candidates.keep(
            places.is_of_category(request.categories),
            which=f"has the category {' or '.join(map(repr, request.categories))}",
            way_out="give other categories",
        )
    if request.within_km is not None:
        _keep_within(candidates, request.within_km, request, places, origin)


def _keep_unvisited(
    candidates: Candidates, request: Request, places: PlaceBook, history: History
) -> None:
    if request.exclude_visited:
        candidates.keep(
            ~_is_among(history.place, places),
            which="is unvisited (exclude_visited)",
            way_out="widen the other filters or allow visited places",
        )
    if request.new_only:
        candidates.keep(
            ~_is_among(history.place[-REVISIT_WINDOW:], places),
            which=f"is new, that is not among the last {REVISIT_WINDOW} visits (new_only)",
            way_out="widen the other filters or allow places visited before",
        )


def _keep_within(
    candidates: Candidates, km: float, request: Request, places: PlaceBook, origin: Point | None
) -> None:
    if origin is None:
        raise BadInput(
            f"within_km={km:g} has nothing to be measured from: the history is "
            "empty; say where with near"
        )
    whence = "the last visit" if request.near is None else "near"
    candidates.keep(
        places.km_from(origin, slice(None)) <= km,
        which=f"lies within {km:g} km of {whence} (within_km)",
        way_out="widen within_km",
    )


def _keep_nearest(candidates: Candidates, places: PlaceBook, near: Point, most: int) -> None:
    numbers = np.flatnonzero(candidates.is_allowed)
    order = np.argsort(places.km_from(near, numbers), kind="stable")
    candidates.is_allowed[numbers[order[most:]]] = False


def _is_listed(ids: tuple[str, ...], places: PlaceBook) -> NDArray[np.bool_]:
    known = [places.number_of[place] for place in ids if place in places.number_of]
    return _is_among(np.array(known, dtype=np.int64), places)


def _is_among(numbers: NDArray[np.int64], places: PlaceBook) -> NDArray[np.bool_]:
    """Whether each place is one of these. [P]"""
    among = np.zeros(len(places), dtype=np.bool_)
    among[numbers] = True
    return among
