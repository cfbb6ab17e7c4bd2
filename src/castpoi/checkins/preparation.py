"""What decides which city becomes of a source: every option of `castpoi data prepare`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from castpoi.checkins.reading.layout import NaiveTimes
from castpoi.checkins.recipe import Recipe
from castpoi.checkins.split import SplitKind


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Everything that decides what a city becomes of its sources."""

    format_name: str = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    """Word -> column, where the usual names do not do."""
    delimiter: str | None = None
    encoding: str | None = None
    naive_times: NaiveTimes | None = None
    """What a time without offset means; None: as the layout or the column's name says."""
    drop_bad_rows: bool = False
    max_place_spread_km: float = 25.0
    """Coordinates of one place further apart than this are a mistake."""
    zone: str | None = None
    """One IANA zone for all places, instead of looking it up by coordinates."""
    local_time: Literal["place", "offset"] = "place"
    """Local time follows the zone of the place, or the offset column of the source."""
    clock_shift_hours: float = 0.0
    """Added to every time of the source."""
    accept_rhythm: bool = False
    recipe: Recipe = field(default_factory=Recipe)
    split: SplitKind = "leave-one-out"
