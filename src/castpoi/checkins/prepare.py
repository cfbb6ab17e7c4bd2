"""Preparing a city: read, check, place, localise, clean and split check-ins."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.canonical import in_canonical_order
from castpoi.checkins.city import City, save_city
from castpoi.checkins.cleaning import PUBLISHED, RECIPES, Recipe, StepCount, clean, count_step
from castpoi.checkins.content import Content, content_of, zone_of_rows
from castpoi.checkins.places import (
    count_texts,
    mark_rows,
    misplaced,
    one_point_each,
    points_of,
    usual_text,
)
from castpoi.checkins.reading.layouts import TABLE, NaiveTimes
from castpoi.checkins.reading.opening import items_of, open_sources
from castpoi.checkins.reading.places_table import PlacesTable
from castpoi.checkins.reading.rows import CLOCK, IS_NAIVE, RawCheckins, good_rows, read_checkins
from castpoi.checkins.reading.rules import bad_rows, check_rows, count_by_rule
from castpoi.checkins.reading.source import Source
from castpoi.checkins.record import HOUR_US
from castpoi.checkins.split import SplitKind
from castpoi.checkins.tables import Disk, Tables, by_users
from castpoi.core.config import Config, Positive
from castpoi.core.errors import BadInput
from castpoi.core.files import writing
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import now_utc
from castpoi.core.staging import staging_beside
from castpoi.geo.zones import (
    boundaries_version,
    check_zone,
    to_utc_us,
    zones_of,
)

_MAX_SHIFT_HOURS: Final = 48
_NUMBER: Final = r"^[+-]?[\d.]+$"
_NUMBERS_AS_ZONES: Final = (
    "numbers in the zone column are no zones: those places have the zone of their coordinates"
)
_TEXTS: Final = (record.CATEGORY, record.NAME, record.ZONE)
_MIN_MEMORY: Final = 10**9
_FIXED_MEMORY: Final = 5 * 10**8  # the process, ids and places
_ROW_MEMORY: Final = 160  # bytes for each row that is processed at once, measured at 49 million


@dataclass(frozen=True, kw_only=True)
class Preparation(Config):
    """All options of a preparation: with equal sources they give an equal city."""

    format: str = "auto"
    """Layout of the source; auto recognises all of them."""
    columns: dict[str, str] = field(default_factory=dict)
    """Columns without a usual name, by word: user, place, lat, lon, time, zone, category,
    name, part, session; without a header by position, from 1."""
    places_columns: dict[str, str] = field(default_factory=dict)
    """The same for the places table: place, lat, lon, zone, category, name."""
    no_header: bool = False
    """The text files have no header: their first line is a row."""
    delimiter: str | None = None
    """Character between the columns of a table.  [default: by its suffix, else by its header]"""
    encoding: str | None = None
    """Encoding of a text file.  [default: UTF-8, or that of its layout]"""
    naive_times: NaiveTimes | None = None
    """Meaning of times without a zone.  [default: refuse them unless the layout has a rule]"""
    zone: str | None = None
    """One IANA time zone for all places.  [default: by coordinates]"""
    clock_shift_hours: float = 0.0
    """Hours to add to every time of the source, such as +8."""
    accept_rhythm: bool = False
    """Accept a clock whose hours look wrong."""
    on_bad_rows: Literal["fail", "drop"] = "fail"
    """Stop at the first bad row, or drop bad rows and write them next to the city."""
    max_place_spread_km: Positive = 25.0
    """Coordinates of one place that are further apart than this are wrong."""
    recipe: Recipe = field(default_factory=Recipe)
    split: SplitKind = "leave-one-out"
    """The paper's split per user, 80/10/10 in time, or that of the source: its column, or a file
    for each part."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if abs(self.clock_shift_hours) > _MAX_SHIFT_HOURS:
            raise BadInput(
                f"--clock-shift is {self.clock_shift_hours:+g} hours; no clock is wrong by more "
                f"than {_MAX_SHIFT_HOURS} hours"
            )
        if self.zone:
            check_zone(self.zone, where="--zone")


def prepare(
    tables: Sequence[Path | pl.DataFrame],
    out: Path,
    preparation: Preparation,
    *,
    places_table: Path | pl.DataFrame | None = None,
    overwrite: bool = False,
    progress: Progress = SILENCE,
) -> City:
    """Make a city and save it to `out`, which is checked before any work is done."""
    City.check_free(out, overwrite=overwrite)
    city = make_city(tables, preparation, places_table=places_table, progress=progress)
    with progress.task("writing"):
        city.save(out, overwrite=overwrite)
    return city


def prepare_within(
    memory: int,
    tables: Sequence[Path | pl.DataFrame],
    out: Path,
    preparation: Preparation,
    *,
    places_table: Path | pl.DataFrame | None = None,
    overwrite: bool = False,
    progress: Progress = SILENCE,
) -> dict[str, Any]:
    """The same with a ceiling of memory in bytes; returns the manifest of the city.

    The check-ins are in files next to `out`, and some of them at a time in memory.
    """
    City.check_free(out, overwrite=overwrite)
    rows_at_once = _rows_within(memory)
    with writing(out), staging_beside(out.absolute()) as folder:
        disk = Disk(folder, rows_at_once)
        content = _prepared(tables, preparation, places_table, disk, progress)
        with progress.task("writing"):
            save_city(out, content.tables, content.manifest, content.dropped, overwrite=overwrite)
    return content.manifest


def _rows_within(memory: int) -> int:
    """The number of rows that are processed at once within a ceiling of memory in bytes."""
    if memory < _MIN_MEMORY:
        raise BadInput(
            f"--memory of {memory / 10**9:g} GB is too little; give at least "
            f"{_MIN_MEMORY / 10**9:g} GB"
        )
    return (memory - _FIXED_MEMORY) // _ROW_MEMORY


def make_city(
    tables: Sequence[Path | pl.DataFrame],
    preparation: Preparation,
    *,
    places_table: Path | pl.DataFrame | None = None,
    progress: Progress = SILENCE,
) -> City:
    """A city from files, folders of files or data frames; nothing is written.

    `places_table` has the coordinates of the places, if the check-ins have none.
    """
    return _prepared(tables, preparation, places_table, None, progress).city


def _prepared(
    tables: Sequence[Path | pl.DataFrame],
    preparation: Preparation,
    places_table: Path | pl.DataFrame | None,
    disk: Disk | None,
    progress: Progress,
) -> Content:
    sources, places_sources = _opened(tables, places_table, preparation)
    with ThreadPoolExecutor(max_workers=1) as other_thread:
        origins = other_thread.submit(
            lambda: [source.origin() for source in (*sources, *places_sources)]
        )
        raw = read_checkins(
            sources,
            columns=preparation.columns,
            naive_times=preparation.naive_times,
            published=preparation.recipe.needs_published
            or preparation.split == "given"
            or sources[0].layout.is_cleaned,
            disk=disk,
            progress=progress,
        )
        with progress.task("preparing", total=3) as task:
            raw, places = _with_places(raw, preparation)
            task.advance()
            checkins, steps, raw = _cleaned(raw, places, preparation, disk)
            task.advance()
            content = content_of(checkins, raw, places, preparation)
            task.advance()
        content.manifest.update(_provenance(raw, steps, preparation, origins.result()))
    return content


def _opened(
    tables: Sequence[Path | pl.DataFrame],
    places_table: Path | pl.DataFrame | None,
    preparation: Preparation,
) -> tuple[list[Source], list[Source]]:
    """The sources of check-ins, with the places joined, and those of the places table."""
    how: dict[str, Any] = {
        "delimiter": preparation.delimiter,
        "encoding": preparation.encoding,
        "no_header": preparation.no_header,
    }
    sources = open_sources(tables, format_name=preparation.format, **how)
    if places_table is None:
        places_table = items_of(sources[0])
    if places_table is None:
        return sources, []
    places = open_sources([places_table], format_name=TABLE.name, **how, what="places table")
    drop = preparation.on_bad_rows == "drop"
    table = PlacesTable(places, preparation.places_columns)
    return table.join(sources, preparation.columns, drop=drop), places


def _with_places(raw: RawCheckins, preparation: Preparation) -> tuple[RawCheckins, pl.DataFrame]:
    """The rows with wrong coordinates marked, and the table of places by rank of their id."""
    points = points_of(raw.rows)
    marks = misplaced(points, preparation.max_place_spread_km)
    rows = raw.rows if marks.is_empty() else raw.rows.map(lambda rows: mark_rows(rows, marks))
    raw = replace(raw, rows=rows, bad=bad_rows(rows))
    check_rows(
        raw, drop=preparation.on_bad_rows == "drop", limit_km=preparation.max_place_spread_km
    )
    places = one_point_each(points, without=marks).sort(record.PLACE)
    counted = [[count_texts(good_rows(rows), name) for name in _TEXTS] for rows in raw.rows]
    for column, of_column in zip(_TEXTS, zip(*counted, strict=True), strict=True):
        texts = usual_text(of_column, column, raw.texts[column])
        places = places.join(texts, on=record.PLACE, how="left", maintain_order="left")
    if preparation.zone:
        return raw, places.with_columns(pl.lit(preparation.zone).alias(record.ZONE))
    given = places[record.ZONE]
    is_number = given.str.contains(_NUMBER).fill_null(False)
    if is_number.any():
        raw = replace(raw, remarks=(*raw.remarks, _NUMBERS_AS_ZONES))
        given = given.zip_with(~is_number, pl.Series([None], dtype=pl.String))
    for zone in given.drop_nulls().unique().sort():
        check_zone(zone, where=f"{raw.sources[0].name}, the zone column")
    found = zones_of(places[record.LAT].to_numpy(), places[record.LON].to_numpy())
    return raw, places.with_columns(pl.coalesce(given, pl.Series(found)).alias(record.ZONE))


def _cleaned(
    raw: RawCheckins, places: pl.DataFrame, preparation: Preparation, disk: Disk | None
) -> tuple[Tables, list[StepCount], RawCheckins]:
    """The good rows in canonical order, cleaned; the counts of every step; and what was read
    without its rows, which need no memory any more."""
    counts = []
    if raw.padding_rows:
        counts.append(count_step("padding rows", raw.height + raw.padding_rows, raw.rows))
    checkins = _in_canonical_order(raw.rows, places, preparation, disk)
    counts.append(count_step("rows that are no check-ins", raw.height, checkins))
    raw = replace(raw, rows=Tables([]))
    checkins, more = clean(checkins, _recipe_for(raw, preparation.recipe))
    return checkins, [*counts, *more], raw


def _recipe_for(raw: RawCheckins, recipe: Recipe) -> Recipe:
    """The recipe that was asked for, unless the files were cleaned before they were published."""
    is_cleaned = raw.sources[0].layout.is_cleaned
    is_usual = recipe == Recipe() or recipe.name in RECIPES
    return PUBLISHED if is_cleaned and is_usual else recipe


def _in_canonical_order(
    rows: Tables, places: pl.DataFrame, preparation: Preparation, disk: Disk | None
) -> Tables:
    """Good rows with their instant, sorted by user, instant and place."""
    if disk is not None:
        timed = rows.map(lambda table: _timed(good_rows(table), places, preparation))
        rows = by_users(timed, disk)
        return rows.map(_sorted)
    (table,) = rows
    return Tables([_sorted(_timed(good_rows(table), places, preparation))])


def _timed(rows: pl.DataFrame, places: pl.DataFrame, preparation: Preparation) -> pl.DataFrame:
    """User, place and instant of good rows, and the columns that steps may need."""
    at_us = rows[CLOCK].to_physical().to_numpy()
    if rows[IS_NAIVE].any():
        utc_us = to_utc_us(at_us, *zone_of_rows(rows, places))
        at_us = np.where(rows[IS_NAIVE].to_numpy(), utc_us, at_us)
    at_us = at_us + round(preparation.clock_shift_hours * HOUR_US)
    needed = [record.USER, record.PLACE, record.SESSION, record.SOURCE_PART]
    columns = [name for name in needed if name in rows.columns]
    return rows.select(columns).with_columns(pl.Series(record.AT_UTC, at_us))


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    user, at_us, place = (
        rows[name].to_numpy() for name in (record.USER, record.AT_UTC, record.PLACE)
    )
    more = rows.drop(record.USER, record.AT_UTC, record.PLACE)
    return in_canonical_order(user, at_us, place, more)


def _provenance(
    raw: RawCheckins,
    steps: list[StepCount],
    preparation: Preparation,
    origins: list[dict[str, Any]],
) -> dict[str, Any]:
    """The part of the manifest about how the city was made."""
    options = asdict(replace(preparation, recipe=_recipe_for(raw, preparation.recipe)))
    zone_rule = "coordinates of the place"
    if preparation.zone:
        zone_rule = f"one zone for all: {preparation.zone}"
    elif any(record.ZONE in meaning for meaning in raw.meanings):
        zone_rule = "zone column, else coordinates"
    return {
        "prepared_at_utc": now_utc(),
        "versions": {
            "castpoi": __version__,
            "polars": pl.__version__,
            "zone_boundaries": boundaries_version(),
        },
        "sources": origins,
        "zone_rule": zone_rule,
        "naive_times": raw.naive_times,
        "split": options.pop("split"),
        "recipe": options.pop("recipe"),
        "options": options,
        "dropped_rows": count_by_rule(raw),
        "remarks": list(raw.remarks),
        "steps": [asdict(step) for step in steps],
    }
