"""Cleaning: each step keeps or drops check-ins, and says how many it left.

Every step looks at check-ins in canonical order (user, instant, place) and answers with a mask.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.microseconds import HOUR_US, MINUTE_US

CoreRounds = Literal["once", "twice", "iterate"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class StepCount:
    """What one step left behind."""

    step: str
    checkins_before: int
    checkins_after: int
    users_after: int
    places_after: int


def run_step(
    checkins: pl.DataFrame, step: str, keep: Callable[[pl.DataFrame], Mask]
) -> tuple[pl.DataFrame, StepCount]:
    """Apply a step and count what it left."""
    mask = keep(checkins)
    kept = checkins if mask.all() else checkins.filter(pl.Series(mask))
    return kept, count_step(step, checkins.height, kept)


def count_step(step: str, before: int, kept: pl.DataFrame) -> StepCount:
    """The counts of a step that is already done."""
    return StepCount(
        step,
        before,
        kept.height,
        _distinct(kept[record.USER].to_numpy()),
        _distinct(kept[record.PLACE].to_numpy()),
    )


def _distinct(codes: NDArray[np.uint32]) -> int:
    return int(np.count_nonzero(np.bincount(codes)))


def keep_first_of_duplicates(checkins: pl.DataFrame) -> Mask:
    """One of several rows with the same user, place and instant."""
    user, place, at = _columns(checkins)
    keep = np.ones(len(user), dtype=np.bool_)
    keep[1:] = (at[1:] != at[:-1]) | (place[1:] != place[:-1]) | (user[1:] != user[:-1])
    return keep


def keep_without_repeats(checkins: pl.DataFrame, minutes: float) -> Mask:
    """Check-ins that do not follow another of the user at the same place within some minutes."""
    user, place, at = _columns(checkins)
    order = np.lexsort((at, place, user))
    again = (
        same_as_before(user[order])
        & same_as_before(place[order])
        & (np.diff(at[order]) <= minutes * MINUTE_US)
    )
    keep = np.ones(len(user), dtype=np.bool_)
    keep[order[1:][again]] = False
    return keep


def keep_core(
    checkins: pl.DataFrame, rounds: CoreRounds, least_place: int, least_user: int
) -> Mask:
    """Check-ins at places with enough check-ins, then of users with enough: a round.

    `iterate` repeats the round until every place and every user left has enough.
    """
    user, place, _ = _columns(checkins)
    keep = np.ones(len(user), dtype=np.bool_)
    most = {"once": 1, "twice": 2, "iterate": len(user) + 1}[rounds]
    for _ in range(most):
        left = len(user)
        enough = _often_enough(place, least_place)
        keep[keep], user, place = enough, user[enough], place[enough]
        enough = _often_enough(user, least_user)
        keep[keep], user, place = enough, user[enough], place[enough]
        if len(user) == left:
            break
    return keep


def _often_enough(codes: NDArray[np.integer], least: int) -> Mask:
    enough: Mask = (np.bincount(codes) >= least)[codes]
    return enough


def keep_not_isolated(checkins: pl.DataFrame, hours: float) -> Mask:
    """Check-ins within some hours of the one before or after; a missing neighbour is far."""
    user, _, at = _columns(checkins)
    near = np.zeros(len(user), dtype=np.bool_)
    linked = same_as_before(user) & (np.diff(at) <= hours * HOUR_US)
    near[1:] |= linked
    near[:-1] |= linked
    return near


def sessions_of(checkins: pl.DataFrame, gap_hours: float) -> NDArray[np.int64]:
    """Number of each check-in's session: a session ends where nothing follows within the gap."""
    user, _, at = _columns(checkins)
    starts = np.ones(len(user), dtype=np.int64)
    starts[1:] = ~same_as_before(user) | (np.diff(at) > gap_hours * HOUR_US)
    return np.cumsum(starts) - 1


def keep_long_sessions(session: NDArray[np.int64], least: int) -> Mask:
    """Check-ins of sessions with enough check-ins."""
    return _often_enough(session, least)


def keep_seen_in_train(checkins: pl.DataFrame, is_train: Mask) -> Mask:
    """Train check-ins, and later ones whose user and place both occur in train."""
    user, place, _ = _columns(checkins)
    return is_train | (_occurs(user, is_train) & _occurs(place, is_train))


def same_as_before(codes: NDArray[np.uint32]) -> Mask:
    """Whether each but the first equals the one before it; a difference would wrap around."""
    same: Mask = codes[1:] == codes[:-1]
    return same


def _occurs(codes: NDArray[np.uint32], among: Mask) -> Mask:
    if not len(codes):
        return np.zeros(0, dtype=np.bool_)
    seen = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    seen[codes[among]] = True
    occurs: Mask = seen[codes]
    return occurs


def _columns(
    checkins: pl.DataFrame,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]:
    """(user, place, instant in microseconds) of every check-in."""
    user, place, at = (
        checkins[name].to_physical().to_numpy()
        for name in (record.USER, record.PLACE, record.AT_UTC)
    )
    return user, place, at
