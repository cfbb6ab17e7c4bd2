"""A recommendation in one plain sentence, from visits and distances alone.

    You were here 14 times, last 2 days ago; within 300 m of three of your recent evening visits
    New to you; 2.3 km from your last visit

The sentence states facts about the place and the history; what moved the model is in the terms
and visits of the explanation. It has no coordinates.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.record import MINUTE_US
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.resolve import ResolvedRequest

RECENT: Final = 20
"""Visits that count as recent."""
CLOSE_KM: Final = 1.0
"""Recent visits within this distance of a place are mentioned."""
FAR_KM: Final = 50.0
"""Places this far from the last visit are called far away."""

_DAY_PARTS: Final = ("night", "morning", "afternoon", "evening")
_DAY_PART_MINUTES: Final = 24 * 60 // len(_DAY_PARTS)
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_STEP_METRES: Final = 50
_UNITS: Final = (  # unit, minutes, and the count from which it is used
    ("year", 365 * 24 * 60, 2),
    ("month", 30 * 24 * 60, 2),
    ("week", 7 * 24 * 60, 2),
    ("day", 24 * 60, 1),
    ("hour", 60, 1),
    ("minute", 1, 1),
)


def sentence_of(place: int, request: ResolvedRequest, places: PlaceBook) -> str:
    """A reason for a place in plain words."""
    if not request.has_visits:
        clauses = [_popular(int(places.checkins[place]))]
    else:
        clauses = [_own_visits(place, request), *_closeness(place, request, places)]
    if request.near is not None:
        km = float(places.km_from(request.near, np.array([place]))[0])
        clauses.append(f"{distance_words(km)} from you")
    return "; ".join(clauses)


def ago_words(minutes: float) -> str:
    """Time since an event: `2 days ago`."""
    for unit, length, least in _UNITS:
        count = int(minutes // length)
        if count >= least:
            return f"{_counted(count, unit)} ago"
    return "a moment ago"


def distance_words(km: float) -> str:
    """A distance; metres are rounded up to fifty."""
    metres = max(1, int(np.ceil(1000 * km / _STEP_METRES))) * _STEP_METRES
    if metres < 1000:
        return f"{metres} m"
    return f"{km:.1f} km" if km < 10 else f"{km:,.0f} km"


def _popular(checkins: int) -> str:
    if not checkins:
        return "No check-ins here yet"
    return f"Popular: {_counted(checkins, 'check-in')} by everybody"


def _own_visits(place: int, request: ResolvedRequest) -> str:
    own = request.history.at_us[request.history.place == place]
    if not len(own):
        return "New to you"
    ago = ago_words((request.at_us - int(own[-1])) / MINUTE_US)
    return (
        f"You were here once, {ago}"
        if len(own) == 1
        else f"You were here {len(own)} times, last {ago}"
    )


def _closeness(place: int, request: ResolvedRequest, places: PlaceBook) -> list[str]:
    """Recent visits near the place or, without any, the distance from the last visit."""
    history = request.history
    recent = history.place[-RECENT:]
    km = places.km_from(places.point(place), recent)
    close = np.flatnonzero((recent != place) & (km <= CLOSE_KM))
    if len(close):
        minutes = history.at_us[-RECENT:] // MINUTE_US + history.offset_minutes[-RECENT:]
        return [_close_words(km[close], minutes[close])]
    if recent[-1] == place:
        return []
    far = "far away, " if km[-1] >= FAR_KM else ""
    return [f"{far}{distance_words(float(km[-1]))} from your last visit"]


def _close_words(km: NDArray[np.float64], local_minutes: NDArray[np.int64]) -> str:
    """`within 300 m of three of your recent evening visits`; the part of the day if most agree."""
    part = local_minutes % (24 * 60) // _DAY_PART_MINUTES
    counts = np.bincount(part, minlength=len(_DAY_PARTS))
    usual = int(counts.argmax())
    word = ""
    if 2 * counts[usual] > len(part):
        km, word = km[part == usual], f"{_DAY_PARTS[usual]} "
    within = distance_words(float(km.max()))
    return f"within {within} of {_number(len(km))} of your recent {word}visits"


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"
