"""Recipes: which cleaning steps run, in which order; three of them are the paper's own.

The paper starts from the published STHGCN / LLM4POI files. NYC arrives split and cut into
trajectories by GETNext; TKY and CA are filtered to places and users with ten check-ins (CA twice),
freed of isolated check-ins, cut at gaps of 24 hours, and split 80/10/10 in time, after which
later rows with an unseen user or place are dropped.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from castpoi.checkins import cleaning, record
from castpoi.checkins.cleaning import CoreRounds, Mask, StepCount
from castpoi.checkins.split import time_cuts
from castpoi.core.errors import BadInput, TooFewCheckins


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The cleaning steps of one preparation, each of them optional."""

    name: str = "custom"
    drop_duplicates: bool = True
    """One of several rows with the same user, place and instant."""
    repeat_minutes: float | None = None
    """Drop a check-in that repeats the user's last one at the place within this time."""
    core: CoreRounds | None = None
    """Rounds of filtering places, then users, by their number of check-ins."""
    least_place_checkins: int = 10
    least_user_checkins: int = 10
    isolated_hours: float | None = None
    """Drop check-ins further than this from both neighbours."""
    session_gap_hours: float = 24.0
    least_session: int = 1
    """Drop sessions with fewer check-ins."""
    published_sessions: bool = False
    """Sessions are the trajectories of the source instead of ours."""
    published_split: bool = False
    """Drop validation and test rows of the source whose user or place its train lacks."""
    time_split: bool = False
    """The same for a split 80/10/10 in time that we make."""

    def __post_init__(self) -> None:
        limits = {
            "--min-place-checkins": self.least_place_checkins,
            "--min-user-checkins": self.least_user_checkins,
            "--min-session": self.least_session,
        }
        for option, value in limits.items():
            if value < 1:
                raise BadInput(f"{option} is {value}; it must be 1 or more")
        lengths = {
            "--repeat-minutes": self.repeat_minutes,
            "--drop-isolated-hours": self.isolated_hours,
            "--session-gap-hours": self.session_gap_hours,
        }
        for option, length in lengths.items():
            if length is not None and not length > 0:  # nan is not
                raise BadInput(f"{option} is {length:g}; it must be above 0")

    @property
    def needs_published(self) -> bool:
        """Whether the source must carry its published split and trajectories."""
        return self.published_sessions or self.published_split


NYC: Final = Recipe(
    name="nyc",
    drop_duplicates=False,
    published_sessions=True,
    least_session=2,
    published_split=True,
)
TKY: Final = Recipe(
    name="tky",
    drop_duplicates=False,
    core="once",
    isolated_hours=24.0,
    least_session=2,
    time_split=True,
)
CA: Final = replace(TKY, name="ca", core="twice")
RECIPES: Final = {recipe.name: recipe for recipe in (NYC, TKY, CA)}

BAKED_IN: Final = Recipe(name="published", drop_duplicates=False, published_split=True)
"""For STHGCN files, in which every step but the last is done already."""


def clean(checkins: pl.DataFrame, recipe: Recipe) -> tuple[pl.DataFrame, list[StepCount]]:
    """Run the steps of a recipe over check-ins in canonical order."""
    counts: list[StepCount] = []
    for step, keep in _steps(checkins, recipe):
        checkins, count = cleaning.run_step(checkins, step, keep)
        counts.append(count)
        if checkins.is_empty():
            raise TooFewCheckins(
                f"no check-in is left after the step '{step}' "
                f"({count.checkins_before:,} before it); loosen it"
            )
    return checkins, counts


def _steps(
    checkins: pl.DataFrame, recipe: Recipe
) -> list[tuple[str, Callable[[pl.DataFrame], Mask]]]:
    if recipe.needs_published:
        _require_published(checkins, recipe)
    steps: list[tuple[str, Callable[[pl.DataFrame], Mask]]] = []
    if recipe.drop_duplicates:
        steps.append(("exact duplicates", cleaning.keep_first_of_duplicates))
    if (minutes := recipe.repeat_minutes) is not None:
        steps.append(
            (f"repeats within {minutes:g} min", lambda c: cleaning.keep_without_repeats(c, minutes))
        )
    if (rounds := recipe.core) is not None:
        least = recipe.least_place_checkins, recipe.least_user_checkins
        name = f"core {rounds}, places >= {least[0]}, users >= {least[1]}"
        steps.append((name, lambda c: cleaning.keep_core(c, rounds, *least)))
    if (hours := recipe.isolated_hours) is not None:
        steps.append((f"isolated by {hours:g} h", lambda c: cleaning.keep_not_isolated(c, hours)))
    if recipe.least_session > 1:
        kind = "published" if recipe.published_sessions else f"{recipe.session_gap_hours:g} h"
        name = f"{kind} sessions shorter than {recipe.least_session}"
        steps.append((name, lambda c: _keep_sessions(c, recipe)))
    if recipe.published_split:
        steps.append(("unseen in the published train", _keep_seen_in_published_train))
    if recipe.time_split:
        steps.append(("unseen in the first 80 %", _keep_seen_in_first_part))
    return steps


def _require_published(checkins: pl.DataFrame, recipe: Recipe) -> None:
    needs = [record.SESSION] * recipe.published_sessions
    needs += [record.SOURCE_PART] * recipe.published_split
    words = {record.SESSION: "trajectory_id", record.SOURCE_PART: "split"}
    for column in needs:
        if column not in checkins.columns or checkins[column].has_nulls():
            raise BadInput(
                f"the recipe '{recipe.name}' starts from published files that tell the split and "
                f"the trajectory of every row; this source has no complete column "
                f"'{words[column]}'; use the GETNext or STHGCN files, or a table with such columns"
            )


def _keep_sessions(checkins: pl.DataFrame, recipe: Recipe) -> Mask:
    if recipe.published_sessions:
        session = checkins[record.SESSION].to_numpy().astype(np.int64)
    else:
        session = cleaning.sessions_of(checkins, recipe.session_gap_hours)
    return cleaning.keep_long_sessions(session, recipe.least_session)


def _keep_seen_in_published_train(checkins: pl.DataFrame) -> Mask:
    is_train = (checkins[record.SOURCE_PART] == record.TRAIN).to_numpy()
    return cleaning.keep_seen_in_train(checkins, is_train)


def _keep_seen_in_first_part(checkins: pl.DataFrame) -> Mask:
    at = checkins[record.AT_UTC].to_physical().to_numpy()
    return cleaning.keep_seen_in_train(checkins, at < time_cuts(at)[0])
