"""Cleaning: steps that keep or drop check-ins, and recipes, which are fixed lists of steps.

A step reads what it needs of all check-ins, such as counts, and returns a function that receives
some of them in canonical order (user, instant, place) and returns a mask of those to keep. Three
recipes are the paper's. The paper starts from the published STHGCN / LLM4POI files: NYC is already
split and cut into trajectories by GETNext. TKY and CA are filtered to places and users with ten
check-ins (CA twice), isolated check-ins are dropped, sessions are cut at gaps of 24 hours, and the
split is 80/10/10 in time; later rows with a new user or place are dropped.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.record import HOUR_US, MINUTE_US
from castpoi.checkins.split import time_cuts
from castpoi.checkins.tables import Mask, Tables
from castpoi.core.arrays import Numbers
from castpoi.core.config import Config, Count, Positive
from castpoi.core.errors import BadInput, TooFewCheckins

Codes = NDArray[np.uint32]
CoreRounds = Literal["once", "twice", "iterate"]
Keep = Callable[[pl.DataFrame], Mask]
"""Which check-ins of a part to keep."""
Step = Callable[[Tables], Keep]


@dataclass(frozen=True, kw_only=True)
class Recipe(Config):
    """The cleaning steps of one preparation; each of them is optional."""

    name: str = "custom"
    keep_duplicates: bool = False
    """Keep rows with the same user, place and instant."""
    repeat_minutes: Positive | None = None
    """Drop a check-in that repeats the user's last one at the place within this time."""
    core: CoreRounds | None = None
    """Keep only places, then users, with enough check-ins: one round, two, or until stable."""
    min_place_checkins: Count = 10
    """With core: fewest check-ins of a place."""
    min_user_checkins: Count = 10
    """With core: fewest check-ins of a user."""
    drop_isolated_hours: Positive | None = None
    """Drop check-ins that are further than this from both neighbours."""
    session_gap_hours: Positive = 24.0
    """A longer gap between two check-ins of a user begins a new session."""
    min_session: Count = 1
    """Drop sessions with fewer check-ins."""
    published_sessions: bool = False
    """Use the trajectories of the source as sessions."""
    published_split: bool = False
    """Drop validation and test rows whose user or place is not in the published train part."""
    time_split: bool = False
    """The same for an 80/10/10 split in time."""

    @property
    def needs_published(self) -> bool:
        """Whether the source must have its published split and trajectories."""
        return self.published_sessions or self.published_split


NYC: Final = Recipe(
    name="nyc", keep_duplicates=True, published_sessions=True, min_session=2, published_split=True
)
TKY: Final = Recipe(
    name="tky",
    keep_duplicates=True,
    core="once",
    drop_isolated_hours=24.0,
    min_session=2,
    time_split=True,
)
CA: Final = replace(TKY, name="ca", core="twice")
RECIPES: Final = {recipe.name: recipe for recipe in (NYC, TKY, CA)}

PUBLISHED: Final = Recipe(name="published", keep_duplicates=True, published_split=True)
"""For files that were published with all steps but the last applied."""


@dataclass(frozen=True)
class StepCount:
    """The counts before and after a step."""

    step: str
    checkins_before: int
    checkins_after: int
    users_after: int
    places_after: int


def count_step(step: str, before: int, kept: Tables) -> StepCount:
    """The counts of a step whose result is known."""
    users, places = (
        int(np.count_nonzero(kept.codes_in(name))) for name in (record.USER, record.PLACE)
    )
    return StepCount(step, before, kept.height, users, places)


def clean(checkins: Tables, recipe: Recipe) -> tuple[Tables, list[StepCount]]:
    """Apply the steps of a recipe to check-ins in canonical order."""
    counts: list[StepCount] = []
    if recipe.needs_published:
        for table in checkins:
            _require_published(table, recipe)
    for name, step in _steps(recipe):
        before = checkins.height
        checkins = checkins.map(partial(_kept, step(checkins)))
        counts.append(count_step(name, before, checkins))
        if not checkins.height:
            raise TooFewCheckins(
                f"no check-in is left after the step '{name}' ({before:,} before it); relax it"
            )
    return checkins, counts


def _kept(keep: Keep, table: pl.DataFrame) -> pl.DataFrame:
    mask = keep(table)
    return table if mask.all() else table.filter(pl.Series(mask))


def _require_published(checkins: pl.DataFrame, recipe: Recipe) -> None:
    needs = {record.SESSION: "trajectory_id"} if recipe.published_sessions else {}
    needs |= {record.SOURCE_PART: "split"} if recipe.published_split else {}
    for column, word in needs.items():
        if column not in checkins.columns or checkins[column].has_nulls():
            raise BadInput(
                f"the recipe '{recipe.name}' needs the published split and trajectory of every "
                f"row, but this source has no complete column '{word}'; use the GETNext or STHGCN "
                "files, or a table with such columns; for raw check-ins, --recipe tky has the same "
                "rules"
            )


def _steps(recipe: Recipe) -> Iterator[tuple[str, Step]]:
    """(name, step) of a recipe, in order."""
    if not recipe.keep_duplicates:
        yield "exact duplicates", lambda _: keep_first_of_duplicates
    if (minutes := recipe.repeat_minutes) is not None:
        name = f"repeats within {minutes:g} min"
        yield name, lambda _: partial(keep_without_repeats, minutes=minutes)
    if (rounds := recipe.core) is not None:
        least = recipe.min_place_checkins, recipe.min_user_checkins
        name = f"core {rounds}, places >= {least[0]}, users >= {least[1]}"
        yield name, lambda tables: core_of(tables, rounds, *least)
    if (hours := recipe.drop_isolated_hours) is not None:
        yield f"isolated by {hours:g} h", lambda _: partial(keep_not_isolated, hours=hours)
    if recipe.min_session > 1:
        kind = "published" if recipe.published_sessions else f"{recipe.session_gap_hours:g} h"
        yield (
            f"{kind} sessions shorter than {recipe.min_session}",
            lambda tables: _long_sessions(tables, recipe),
        )
    if recipe.published_split:
        yield "unseen in the published train", lambda tables: seen_in_train(tables, _published)
    if recipe.time_split:
        yield "unseen in the first 80 %", lambda tables: seen_in_train(tables, _first_in(tables))


def _published(checkins: pl.DataFrame) -> Mask:
    return (checkins[record.SOURCE_PART] == record.TRAIN).to_numpy()


def _first_in(tables: Tables) -> Keep:
    cut, _ = time_cuts(np.concatenate([at for (at,) in tables.arrays(record.AT_UTC)]))
    return lambda checkins: checkins[record.AT_UTC].to_physical().to_numpy() < cut


def _long_sessions(tables: Tables, recipe: Recipe) -> Keep:
    if not recipe.published_sessions:
        hours, least = recipe.session_gap_hours, recipe.min_session
        return lambda c: _often_enough(sessions_of(c, hours), least)
    sizes = np.zeros(0, dtype=np.int64)  # a session of the source may have several users
    for (session,) in tables.arrays(record.SESSION):
        sizes = _added(sizes, np.bincount(session))
    return lambda c: (sizes >= recipe.min_session)[c[record.SESSION].to_numpy()]


def keep_first_of_duplicates(checkins: pl.DataFrame) -> Mask:
    """One of several rows with the same user, place and instant."""
    user, place, at = _columns(checkins)
    keep = np.ones(len(user), dtype=np.bool_)
    keep[1:] = ~(_repeats(at) & _repeats(place) & _repeats(user))
    return keep


def keep_without_repeats(checkins: pl.DataFrame, minutes: float) -> Mask:
    """Check-ins that do not follow another of the user at the place within some minutes."""
    user, place, at = _columns(checkins)
    order = np.lexsort((at, place, user))
    is_soon = np.diff(at[order]) <= minutes * MINUTE_US
    again = _repeats(user[order]) & _repeats(place[order]) & is_soon
    keep = np.ones(len(user), dtype=np.bool_)
    keep[order[1:][again]] = False
    return keep


def core_of(tables: Tables, rounds: CoreRounds, min_place: int, min_user: int) -> Keep:
    """Check-ins at places with enough check-ins, then of users with enough: that is one round.

    `iterate` repeats rounds until every remaining place and user has enough.
    """
    stays = {name: tables.codes_in(name) for name in (record.PLACE, record.USER)}
    most = {"once": 1, "twice": 2, "iterate": sum(map(len, stays.values()))}[rounds]
    for _ in range(most):
        dropped = 0
        for name, least in ((record.PLACE, min_place), (record.USER, min_user)):
            enough = _counts(tables, stays, name) >= least
            dropped += int(np.count_nonzero(stays[name] & ~enough))
            stays[name] &= enough
        if not dropped:
            break
    return lambda c: _all_stay(stays, c[record.USER].to_numpy(), c[record.PLACE].to_numpy())


def _counts(tables: Tables, stays: Mapping[str, Mask], name: str) -> Numbers:
    """The number of check-ins of each place or user, of those that stay."""
    counts = np.zeros(len(stays[name]), dtype=np.int64)
    for user, place in tables.arrays(record.USER, record.PLACE):
        codes = (user if name == record.USER else place)[_all_stay(stays, user, place)]
        counts += np.bincount(codes, minlength=len(counts))
    return counts


def _all_stay(stays: Mapping[str, Mask], user: Codes, place: Codes) -> Mask:
    return stays[record.USER][user] & stays[record.PLACE][place]


def keep_not_isolated(checkins: pl.DataFrame, hours: float) -> Mask:
    """Check-ins within some hours of the user's check-in before or after."""
    user, _, at = _columns(checkins)
    near = np.zeros(len(user), dtype=np.bool_)
    linked = _repeats(user) & (np.diff(at) <= hours * HOUR_US)
    near[1:] |= linked
    near[:-1] |= linked
    return near


def sessions_of(checkins: pl.DataFrame, gap_hours: float) -> Numbers:
    """Number of each check-in's session; a longer gap to the next check-in ends a session."""
    user, _, at = _columns(checkins)
    starts = np.ones(len(user), dtype=np.int64)
    starts[1:] = ~_repeats(user) | (np.diff(at) > gap_hours * HOUR_US)
    return np.cumsum(starts) - 1


def seen_in_train(tables: Tables, is_train: Keep) -> Keep:
    """Train check-ins, and later ones whose user and place are both in train."""
    stays: dict[str, Mask] = {
        name: np.zeros(len(tables.codes_in(name)), dtype=np.bool_)
        for name in (record.USER, record.PLACE)
    }
    for table in tables:
        train = is_train(table)
        for name, seen in stays.items():
            seen[table[name].to_numpy()[train]] = True
    return lambda c: (
        is_train(c) | _all_stay(stays, c[record.USER].to_numpy(), c[record.PLACE].to_numpy())
    )


def _columns(checkins: pl.DataFrame) -> tuple[Codes, Codes, Numbers]:
    """(user, place, instant in microseconds) of every check-in."""
    user, place, at = (
        checkins[name].to_physical().to_numpy()
        for name in (record.USER, record.PLACE, record.AT_UTC)
    )
    return user, place, at


def _repeats(values: NDArray[np.generic]) -> Mask:
    """Whether each value but the first equals the one before it; unsigned numbers have no diff."""
    return values[1:] == values[:-1]


def _often_enough(codes: NDArray[np.integer], least: int) -> Mask:
    return (np.bincount(codes) >= least)[codes]


def _added(counts: Numbers, more: Numbers) -> Numbers:
    """The sum of two arrays of counts, of which one may be shorter."""
    longer, shorter = (counts, more) if len(counts) >= len(more) else (more, counts)
    longer = longer.copy()
    longer[: len(shorter)] += shorter
    return longer
