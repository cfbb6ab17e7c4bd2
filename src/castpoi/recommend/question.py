"""A question: a request whose visits, filters and moment are resolved; it can be answered."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from castpoi.core.errors import UnknownUser
from castpoi.recommend.filters import NEARBY, allowed_places
from castpoi.recommend.history import History, history_of
from castpoi.recommend.moments import MOST_AHEAD_US, instant_us
from castpoi.recommend.place_book import PlaceBook, Point
from castpoi.recommend.request import Request
from castpoi.recommend.user_visits import UserVisits


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be answered: which of the allowed places come next after a history?"""

    history: History
    at_us: int
    """The moment of asking, from which "ago" is counted. UTC microseconds."""
    near: Point | None
    """Where the person says to be."""
    origin: Point | None
    """Where distances are measured from: `near`, or the last visit."""
    is_allowed: NDArray[np.bool_]
    """Which places may be recommended; at least one. [P]"""
    k: int
    explain: bool
    remarks: tuple[str, ...]


def put(
    request: Request,
    places: PlaceBook,
    users: UserVisits | None,
    is_private: NDArray[np.bool_] | None = None,
    *,
    now_us: int,
    known_time: bool = False,
) -> Question:
    """The question of a request, or an error that tells what is wrong with it.

    `is_private` tells places that are recommended only to those who have been there. [P]
    Without `at`, the moment of asking is the last visit; with `known_time` (the model takes it for
    the moment of the next visit) it is `now_us`, or the last visit if that is later. Visits that
    are more than a day later than `now_us` cannot have been made yet and are left out.
    """
    if is_private is None:
        is_private = np.zeros(len(places), dtype=np.bool_)
    remarks: list[str] = []
    history = _history(request, places, users, remarks)
    if request.at is not None:
        at_us = instant_us(request.at, what="at")
        history = _until(history, at_us, "later than the moment of asking", remarks)
    else:
        history = _until(history, now_us + MOST_AHEAD_US, "more than a day later than now", remarks)
        at_us = int(history.at_us[-1]) if len(history) else 0
        if known_time:
            at_us = max(at_us, now_us)
    if known_time:
        history = replace(history, next_at_us=at_us)
    _remark_on_candidates(request, places, remarks)
    _remark_on_private(request, places, history, is_private, remarks)
    origin = request.near
    if origin is None and len(history):
        origin = places.point(int(history.place[-1]))
    if not len(history):
        remarks.append(_what_an_empty_history_gets(request))
    return Question(
        history=history,
        at_us=at_us,
        near=request.near,
        origin=origin,
        is_allowed=allowed_places(request, places, history, origin, is_private),
        k=request.k,
        explain=request.explain,
        remarks=tuple(remarks),
    )


def _history(
    request: Request, places: PlaceBook, users: UserVisits | None, remarks: list[str]
) -> History:
    if request.history is not None:
        history, skipped = history_of(request.history, places)
        if skipped:
            what = "its place" if skipped == 1 else "their places"
            remarks.append(f"{_visits(skipped)} skipped: the run does not know {what}")
        return history
    if users is None or request.user is None:
        raise UnknownUser("no visits of users are kept here; give a history instead")
    return users.history_of(request.user)


def _until(history: History, at_us: int, why: str, remarks: list[str]) -> History:
    until = history.until(at_us)
    if len(until) < len(history):
        later = len(history) - len(until)
        remarks.append(f"{_visits(later)} left out: {why}")
    return until


def _remark_on_candidates(request: Request, places: PlaceBook, remarks: list[str]) -> None:
    unknown = len(set(request.candidates or ()) - places.number_of.keys())
    if unknown:
        what = "candidate was" if unknown == 1 else "candidates were"
        remarks.append(f"{unknown:,} {what} skipped: not among the places of the run")


def _remark_on_private(
    request: Request,
    places: PlaceBook,
    history: History,
    is_private: NDArray[np.bool_],
    remarks: list[str],
) -> None:
    named = {places.number_of.get(place, -1) for place in request.candidates or ()} - {-1}
    left_out = sum(bool(is_private[place]) for place in named - set(history.place.tolist()))
    if left_out:
        what = "candidate was" if left_out == 1 else "candidates were"
        remarks.append(f"{left_out:,} {what} left out: private, and not known to the history")


def _what_an_empty_history_gets(request: Request) -> str:
    where = ""
    if request.near is not None and request.within_km is None:
        where = f" among the {max(NEARBY, request.k)} nearest"
    return f"the history is empty, so these are the places most visited by everybody{where}"


def _visits(count: int) -> str:
    """So many visits, with their verb."""
    return "1 visit was" if count == 1 else f"{count:,} visits were"
