"""Preparing a city: read, check, place, localise, clean and split check-ins."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.canonical import in_canonical_order
from castpoi.checkins.city import City, fingerprint_of
from castpoi.checkins.cleaning import PUBLISHED, RECIPES, Recipe, StepCount, clean, count_step
from castpoi.checkins.places import mark_rows, misplaced, one_point_each, points_of, usual_text
from castpoi.checkins.reading.layouts import TABLE, NaiveTimes, unused_columns
from castpoi.checkins.reading.opening import items_of, open_sources
from castpoi.checkins.reading.places_table import PlacesTable
from castpoi.checkins.reading.rows import CLOCK, IS_NAIVE, RawCheckins, good_rows, read_checkins
from castpoi.checkins.reading.rules import bad_rows, bad_rows_of, check_rows, count_by_rule
from castpoi.checkins.reading.source import Source
from castpoi.checkins.record import HOUR_US, MINUTE_US
from castpoi.checkins.rhythm import Rhythm, rhythm_of
from castpoi.checkins.split import SplitKind, split_checkins, split_table
from castpoi.core.arrays import Numbers
from castpoi.core.config import Config, Positive
from castpoi.core.errors import BadInput, WrongClock
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import now_utc
from castpoi.geo.zones import (
    boundaries_version,
    check_zone,
    numbered_zones,
    offsets_minutes,
    to_utc_us,
    zones_of,
)

_MAX_SHIFT_HOURS: Final = 48
_NUMBER: Final = r"^[+-]?[\d.]+$"
_NUMBERS_AS_ZONES: Final = (
    "numbers in the zone column are no zones: those places have the zone of their coordinates"
)
_MIN_PLACES: Final = 5
_MANY_CHECKINS: Final = 500
"""A city with this many check-ins at fewer places was read from a wrong column."""


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
            progress=progress,
        )
        with progress.task("preparing", total=3) as task:
            raw, places = _with_places(raw, preparation)
            task.advance()
            checkins, steps, raw = _cleaned(raw, places, preparation)
            task.advance()
            city = _city_of(checkins, raw, places, preparation)
            task.advance()
        city.manifest.update(_provenance(raw, steps, preparation, origins.result()))
    return city


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
    raw = replace(raw, rows=mark_rows(raw.rows, marks))
    check_rows(
        raw, drop=preparation.on_bad_rows == "drop", limit_km=preparation.max_place_spread_km
    )
    good = good_rows(raw)
    places = one_point_each(points, without=marks).sort(record.PLACE)
    for column in (record.CATEGORY, record.NAME, record.ZONE):
        texts = usual_text(good, column, raw.texts[column])
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
    raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> tuple[pl.DataFrame, list[StepCount], RawCheckins]:
    """The good rows in canonical order, cleaned; the counts of every step; and the bad rows alone,
    so that the others need no memory any more."""
    checkins = _in_canonical_order(good_rows(raw), places, preparation)
    counts = []
    if raw.padding_rows:
        counts.append(count_step("padding rows", raw.rows.height + raw.padding_rows, raw.rows))
    counts.append(count_step("rows that are no check-ins", raw.rows.height, checkins))
    checkins, more = clean(checkins, _recipe_for(raw, preparation.recipe))
    return checkins, [*counts, *more], replace(raw, rows=bad_rows(raw))


def _recipe_for(raw: RawCheckins, recipe: Recipe) -> Recipe:
    """The recipe that was asked for, unless the files were cleaned before they were published."""
    is_cleaned = raw.sources[0].layout.is_cleaned
    is_usual = recipe == Recipe() or recipe.name in RECIPES
    return PUBLISHED if is_cleaned and is_usual else recipe


def _in_canonical_order(
    rows: pl.DataFrame, places: pl.DataFrame, preparation: Preparation
) -> pl.DataFrame:
    """Good rows with their instant, sorted by user, instant and place."""
    at_us = rows[CLOCK].to_physical().to_numpy()
    if rows[IS_NAIVE].any():
        utc_us = to_utc_us(at_us, *_zone_of_rows(rows, places))
        at_us = np.where(rows[IS_NAIVE].to_numpy(), utc_us, at_us)
    at_us = at_us + round(preparation.clock_shift_hours * HOUR_US)
    needed = [record.SESSION, record.SOURCE_PART]
    return in_canonical_order(
        rows[record.USER].to_numpy(),
        at_us,
        rows[record.PLACE].to_numpy(),
        rows.select(name for name in needed if name in rows.columns),
    )


def _zone_of_rows(rows: pl.DataFrame, places: pl.DataFrame) -> tuple[Numbers, list[str]]:
    """(number of the zone of every row, the zones by number)."""
    number, zones = numbered_zones(places[record.ZONE])
    by_place = np.zeros(int(places[record.PLACE].to_numpy().max()) + 1, dtype=np.int64)
    by_place[places[record.PLACE].to_numpy()] = number
    return by_place[rows[record.PLACE].to_numpy()], zones


def _city_of(
    checkins: pl.DataFrame, raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> City:
    """The city of cleaned check-ins: localised, renumbered without gaps, and split."""
    at_us = checkins[record.AT_UTC].to_physical().to_numpy()
    offsets = offsets_minutes(at_us, *_zone_of_rows(checkins, places))
    rhythm = _checked_rhythm(at_us + offsets.astype(np.int64) * MINUTE_US, preparation)
    user, user_ranks = _renumbered(checkins[record.USER].to_numpy())
    place, place_ranks = _renumbered(checkins[record.PLACE].to_numpy())
    _check_number_of_places(len(place_ranks), checkins.height, raw)
    columns = {
        record.CHECKIN: np.arange(checkins.height, dtype=np.uint32),
        **{record.USER: user, record.PLACE: place},
        **{record.AT_UTC: checkins[record.AT_UTC], record.OFFSET: offsets},
    }
    given = checkins.get_column(record.SOURCE_PART, default=None)
    codes = user.astype(np.int64), place.astype(np.int64)
    part = split_checkins(preparation.split, *codes, at_us, given)
    kept = places.filter(pl.col(record.PLACE).is_in(place_ranks.implode()))
    place_ids, user_ids = (
        raw.texts[word].gather(ranks)
        for word, ranks in ((record.PLACE, place_ranks), (record.USER, user_ranks))
    )
    city = City(
        checkins=pl.DataFrame(columns, schema=record.CHECKIN_SCHEMA),
        users=_numbered(record.USER, pl.DataFrame({record.USER_ID: user_ids}), record.USER_SCHEMA),
        places=_numbered(
            record.PLACE, kept.with_columns(place_ids.alias(record.PLACE_ID)), record.PLACE_SCHEMA
        ),
        split=split_table(part),
        manifest={"kind": "city"},
        dropped=bad_rows_of(raw),
    )
    city.manifest.update(_counts(city, rhythm))
    return city


def _renumbered(codes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], pl.Series]:
    """(codes without gaps in the same order, the old code of each new one)."""
    used = np.flatnonzero(np.bincount(codes)).astype(np.uint32)
    number = np.zeros(int(used[-1]) + 1, dtype=np.uint32)
    number[used] = np.arange(len(used), dtype=np.uint32)
    return number[codes], pl.Series(used)


def _numbered(column: str, table: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """The columns of a schema, one of which is the number of each row."""
    numbers = pl.Series(column, np.arange(table.height, dtype=np.uint32))
    return table.with_columns(numbers).select(list(schema)).cast(schema)


def _check_number_of_places(places: int, checkins: int, raw: RawCheckins) -> None:
    if places >= _MIN_PLACES or checkins < _MANY_CHECKINS:
        return
    source, meaning = raw.sources[0], raw.meanings[0]
    other = unused_columns(source.columns, meaning, {}).get("place", "COLUMN")
    raise BadInput(
        f"{source.name}: {checkins:,} check-ins are at only {places} place{'s' * (places > 1)}, "
        f"too few to recommend from; if '{meaning['place']}' is not the column with the id of the "
        f"place, use --columns place={other}"
    )


def _checked_rhythm(local_us: Numbers, preparation: Preparation) -> Rhythm:
    rhythm = rhythm_of(local_us)
    if rhythm.is_judged and not rhythm.is_human and not preparation.accept_rhythm:
        shift = preparation.clock_shift_hours + rhythm.correction_hours
        fix = f"use --clock-shift {shift:+g}, or " if rhythm.correction_hours else ""
        if rhythm.are_dates:
            fix = "name a column with the time of day with --columns time=COLUMN, or "
        raise WrongClock(
            f"the times look wrong: {rhythm.sentence}; {fix}use --accept-rhythm if the times are "
            "right"
        )
    return rhythm


def _counts(city: City, rhythm: Rhythm) -> dict[str, Any]:
    """The part of the manifest about the content of the city."""
    return {
        "fingerprint": fingerprint_of(city.checkins, city.users, city.places, city.split),
        "checkins": city.checkins.height,
        "users": city.users.height,
        "places": city.places.height,
        **{part.replace(" ", "_"): count for part, count in city.checkins_by_part.items()},
        "revisit_share": round(city.revisit_share or 0.0, 6),
        "rhythm": {**asdict(rhythm), "is_human": rhythm.is_human, "finding": rhythm.sentence},
    }


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
    elif record.ZONE in raw.rows.columns:
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
