"""Preparing a city: read, check, place, localise, clean and split check-ins."""

import hashlib
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
from castpoi.checkins.city import REVISIT_WINDOW, City, fingerprint_of
from castpoi.checkins.cleaning import PUBLISHED, RECIPES, Recipe, StepCount, clean, count_step
from castpoi.checkins.places import mark_rows, misplaced, one_point_each, points_of, usual_text
from castpoi.checkins.reading.layouts import NaiveTimes
from castpoi.checkins.reading.rows import (
    CLOCK,
    IS_NAIVE,
    RawCheckins,
    good_rows,
    read_checkins,
)
from castpoi.checkins.reading.rules import bad_rows_of, check_rows, count_by_rule
from castpoi.checkins.reading.source import Source, open_sources
from castpoi.checkins.record import HOUR_US, MINUTE_US
from castpoi.checkins.rhythm import Rhythm, rhythm_of
from castpoi.checkins.split import SplitKind, split_checkins, split_table
from castpoi.core.config import Config, Positive
from castpoi.core.errors import BadInput, WrongClock
from castpoi.core.files import check_vacant
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

_MOST_SHIFT_HOURS: Final = 48
_LOOKED_UP: Final = "zone of the coordinates"


@dataclass(frozen=True, kw_only=True)
class Preparation(Config):
    """Everything that decides which city is made from its sources."""

    format: str = "auto"
    """Layout of the source; auto recognises all of them."""
    columns: dict[str, str] = field(default_factory=dict)
    """Columns without a usual name, by word: user, place, lat, lon, time, zone, offset, category,
    name, part, session."""
    delimiter: str | None = None
    """Character between the columns of a table.  [default: by its suffix]"""
    encoding: str | None = None
    """Encoding of a text file.  [default: UTF-8, or that of its layout]"""
    naive_times: NaiveTimes | None = None
    """Meaning of times without a zone.  [default: refuse them unless the layout has a rule]"""
    zone: str | None = None
    """One IANA time zone for all places.  [default: by coordinates]"""
    local_time: Literal["place", "offset"] = "place"
    """Local time follows the zone of the place, or the offset column of the source."""
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
    """The paper's split per user, or 80/10/10 in time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if abs(self.clock_shift_hours) > _MOST_SHIFT_HOURS:
            raise BadInput(
                f"--clock-shift is {self.clock_shift_hours:+g} hours; no clock is wrong by more "
                f"than {_MOST_SHIFT_HOURS} hours"
            )
        if self.zone:
            check_zone(self.zone, where="--zone")


def prepare(
    paths: list[Path],
    out: Path,
    preparation: Preparation,
    *,
    overwrite: bool = False,
    progress: Progress = SILENCE,
) -> City:
    """Make a city from files and write it to `out`, complete or not at all.

    Dropped rows are written next to the city.
    """
    check_vacant(out, kind="city", overwrite=overwrite)
    dropped = dropped_path(out)
    if dropped.exists() and not overwrite:
        raise BadInput(
            f"{dropped} already exists, and dropped rows would be written to it; move it away, "
            "choose another --out, or replace it with --overwrite"
        )
    city, bad_rows = make_city(paths, preparation, progress=progress)
    with progress.task("writing"), city.staged(out, overwrite=overwrite) as staging:
        if bad_rows is None:
            dropped.unlink(missing_ok=True)  # of a previous city
        else:
            (staging / "dropped.csv").touch(mode=0o600)  # it has user ids
            bad_rows.write_csv(staging / "dropped.csv")
            (staging / "dropped.csv").replace(dropped)
    return city


def dropped_path(out: Path) -> Path:
    """The file for the dropped rows of a city, next to it."""
    return out.with_name(f"{out.name}.dropped.csv")


def make_city(
    paths: list[Path], preparation: Preparation, *, progress: Progress = SILENCE
) -> tuple[City, pl.DataFrame | None]:
    """A city from files, and its bad rows as they are in the files (None if there are none)."""
    sources = open_sources(
        paths,
        format_name=preparation.format,
        delimiter=preparation.delimiter,
        encoding=preparation.encoding,
    )
    with ThreadPoolExecutor(max_workers=1) as other_thread:
        origins = other_thread.submit(lambda: [_origin_of(source) for source in sources])
        raw = read_checkins(
            sources,
            columns=preparation.columns,
            naive_times=preparation.naive_times,
            published=preparation.recipe.needs_published or sources[0].layout.is_cleaned,
            progress=progress,
        )
        with progress.task("preparing", total=3) as task:
            raw, places = _with_places(raw, preparation)
            task.advance()
            checkins, steps = _cleaned(raw, places, preparation)
            task.advance()
            city = _city_of(checkins, raw, places, preparation)
            task.advance()
        city.manifest.update(_provenance(raw, steps, preparation, origins.result()))
    return city, bad_rows_of(raw)


def _with_places(raw: RawCheckins, preparation: Preparation) -> tuple[RawCheckins, pl.DataFrame]:
    """The rows with wrong coordinates marked, and the table of places."""
    raw = _with_ranked_ids(raw)
    points = points_of(raw.rows)
    marks = misplaced(points, preparation.max_place_spread_km)
    raw = replace(raw, rows=mark_rows(raw.rows, marks))
    check_rows(
        raw, drop=preparation.on_bad_rows == "drop", limit_km=preparation.max_place_spread_km
    )
    places = one_point_each(points, without=marks).sort(record.PLACE)
    return raw, _place_table(raw, places, preparation.zone)


def _with_ranked_ids(raw: RawCheckins) -> RawCheckins:
    """Codes of users and places become the rank of their id among all ids, in byte order."""
    rows, texts = raw.rows, dict(raw.texts)
    for word in (record.USER, record.PLACE):
        order = texts[word].arg_sort()
        rank = np.empty(len(order), dtype=np.uint32)
        rank[order.to_numpy()] = np.arange(len(order), dtype=np.uint32)
        rows = rows.with_columns(pl.Series(rank).gather(rows[word]).alias(word))
        texts[word] = texts[word].gather(order)
    return replace(raw, rows=rows, texts=texts)


def _place_table(raw: RawCheckins, places: pl.DataFrame, zone: str | None) -> pl.DataFrame:
    """Every place with its point, zone, category and name, by rank of its id."""
    good = good_rows(raw)
    for column in (record.CATEGORY, record.NAME, record.ZONE):
        texts = usual_text(good, column, raw.texts[column])
        places = places.join(texts, on=record.PLACE, how="left", maintain_order="left")
    for given in places[record.ZONE].drop_nulls().unique():
        check_zone(given, where=f"{raw.sources[0].path}, the zone column")
    if zone:
        return places.with_columns(pl.lit(zone).alias(record.ZONE))
    found = zones_of(places[record.LAT].to_numpy(), places[record.LON].to_numpy())
    looked_up = pl.Series(_LOOKED_UP, found, dtype=pl.String)
    return places.with_columns(pl.coalesce(record.ZONE, looked_up).alias(record.ZONE))


def _cleaned(
    raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> tuple[pl.DataFrame, list[StepCount]]:
    """The good rows in canonical order, cleaned; and the counts of every step."""
    checkins = _in_canonical_order(raw, places, preparation)
    counts = []
    if raw.padding_rows:
        counts.append(count_step("padding rows", raw.rows.height + raw.padding_rows, raw.rows))
    counts.append(count_step("rows that are no check-ins", raw.rows.height, checkins))
    checkins, more = clean(checkins, _recipe_for(raw, preparation.recipe))
    return checkins, [*counts, *more]


def _recipe_for(raw: RawCheckins, recipe: Recipe) -> Recipe:
    """The recipe that was asked for, unless the files were cleaned before they were published."""
    is_cleaned = raw.sources[0].layout.is_cleaned
    is_usual = recipe == Recipe() or recipe.name in RECIPES
    return PUBLISHED if is_cleaned and is_usual else recipe


def _in_canonical_order(
    raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> pl.DataFrame:
    """Good rows with their instant, sorted by user, instant and place."""
    rows = good_rows(raw)
    at_us = rows[CLOCK].to_physical().to_numpy()
    if rows[IS_NAIVE].any():
        at_us = _instants(rows, at_us, places, preparation)
    at_us = at_us + round(preparation.clock_shift_hours * HOUR_US)
    needed = [record.SESSION, record.SOURCE_PART]
    needed += ["offset"] * (preparation.local_time == "offset")
    return in_canonical_order(
        rows[record.USER].to_numpy(),
        at_us,
        rows[record.PLACE].to_numpy(),
        rows.select(name for name in needed if name in rows.columns),
    )


def _instants(
    rows: pl.DataFrame, wall_us: NDArray[np.int64], places: pl.DataFrame, preparation: Preparation
) -> NDArray[np.int64]:
    """Instants of rows, some of which have a local wall clock."""
    is_naive = rows[IS_NAIVE].to_numpy()
    if preparation.local_time == "offset":
        offset = _given_offsets(rows)
        return np.where(is_naive, wall_us - offset.astype(np.int64) * MINUTE_US, wall_us)
    zone_of_row, zones = _zone_of_rows(rows, places)
    return np.where(is_naive, to_utc_us(wall_us, zone_of_row, zones), wall_us)


def _zone_of_rows(rows: pl.DataFrame, places: pl.DataFrame) -> tuple[NDArray[np.int64], list[str]]:
    """(number of the zone of every row, the zones by number)."""
    number, zones = numbered_zones(places[record.ZONE])
    by_place = np.zeros(int(places[record.PLACE].to_numpy().max()) + 1, dtype=np.int64)
    by_place[places[record.PLACE].to_numpy()] = number
    return by_place[rows[record.PLACE].to_numpy()], zones


def _given_offsets(rows: pl.DataFrame) -> NDArray[np.int16]:
    if "offset" not in rows.columns or rows["offset"].has_nulls():
        raise BadInput(
            "--local-time offset needs a complete column of offsets in minutes; name it with "
            "--columns offset=COLUMN, or leave out --local-time to use the zone of the place"
        )
    return rows["offset"].to_numpy()


def _city_of(
    checkins: pl.DataFrame, raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> City:
    """The city of cleaned check-ins: localised, renumbered without gaps, and split."""
    at_us = checkins[record.AT_UTC].to_physical().to_numpy()
    if preparation.local_time == "offset":
        offsets = _given_offsets(checkins)
    else:
        offsets = offsets_minutes(at_us, *_zone_of_rows(checkins, places))
    rhythm = _checked_rhythm(at_us + offsets.astype(np.int64) * MINUTE_US, preparation)
    user, user_ranks = _renumbered(checkins[record.USER].to_numpy())
    place, place_ranks = _renumbered(checkins[record.PLACE].to_numpy())
    columns = {
        record.CHECKIN: np.arange(checkins.height, dtype=np.uint32),
        **{record.USER: user, record.PLACE: place},
        **{record.AT_UTC: checkins[record.AT_UTC], record.OFFSET: offsets},
    }
    part = split_checkins(preparation.split, user.astype(np.int64), place.astype(np.int64), at_us)
    city = City(
        checkins=pl.DataFrame(columns, schema=record.CHECKIN_SCHEMA),
        users=_remaining_users(user_ranks, raw.texts[record.USER]),
        places=_remaining_places(place_ranks, places, raw.texts[record.PLACE]),
        split=split_table(part),
        manifest={"kind": "city"},
    )
    city.manifest.update(_counts(city, rhythm))
    return city


def _renumbered(codes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """(codes without gaps in the same order, the old code of each new one)."""
    used = np.flatnonzero(np.bincount(codes)).astype(np.uint32)
    number = np.zeros(int(used[-1]) + 1, dtype=np.uint32)
    number[used] = np.arange(len(used), dtype=np.uint32)
    return number[codes], used


def _remaining_users(ranks: NDArray[np.uint32], ids: pl.Series) -> pl.DataFrame:
    """The table of the users of these ranks."""
    numbers = np.arange(len(ranks), dtype=np.uint32)
    columns = {record.USER: numbers, record.USER_ID: ids.gather(pl.Series(ranks))}
    return pl.DataFrame(columns, schema=record.USER_SCHEMA)


def _remaining_places(
    ranks: NDArray[np.uint32], places: pl.DataFrame, ids: pl.Series
) -> pl.DataFrame:
    """The table of the places of these ranks."""
    kept = places.filter(pl.col(record.PLACE).is_in(pl.Series(ranks).implode()))
    numbered = kept.with_columns(
        pl.Series(np.arange(kept.height, dtype=np.uint32)).alias(record.PLACE),
        ids.gather(pl.Series(ranks)).alias(record.PLACE_ID),
    )
    return numbered.select(list(record.PLACE_SCHEMA)).cast(record.PLACE_SCHEMA)


def _checked_rhythm(local_us: NDArray[np.int64], preparation: Preparation) -> Rhythm:
    rhythm = rhythm_of(local_us)
    if rhythm.is_judged and not rhythm.is_human and not preparation.accept_rhythm:
        shift = preparation.clock_shift_hours + rhythm.correction_hours
        fix = f"use --clock-shift {shift:+g}, or " if rhythm.correction_hours else ""
        raise WrongClock(
            f"the times look wrong: {rhythm.sentence}; {fix}use --accept-rhythm if the times are "
            "right"
        )
    return rhythm


def _counts(city: City, rhythm: Rhythm) -> dict[str, Any]:
    """The part of the manifest about the content of the city."""
    parts = dict(city.split[record.PART].value_counts().iter_rows())
    targets = city.targets(record.TEST)
    revisits = city.trajectories.is_revisit(targets, window=REVISIT_WINDOW)
    return {
        "fingerprint": fingerprint_of(city.checkins, city.users, city.places, city.split),
        "checkins": city.checkins.height,
        "users": city.users.height,
        "places": city.places.height,
        "train": parts.get(record.TRAIN, 0),
        "validation": parts.get(record.VALIDATION, 0),
        "test": parts.get(record.TEST, 0),
        "left_out": parts.get(record.LEFT_OUT, 0),
        "revisit_share": round(float(revisits.mean()), 6),
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
    return {
        "prepared_at_utc": now_utc(),
        "versions": {
            "castpoi": __version__,
            "polars": pl.__version__,
            "zone_boundaries": boundaries_version(),
        },
        "sources": origins,
        "zone_rule": _zone_rule(raw, preparation),
        "naive_times": raw.naive_times,
        "split": options.pop("split"),
        "recipe": options.pop("recipe"),
        "options": options,
        "dropped_rows": count_by_rule(raw),
        "remarks": list(raw.remarks),
        "steps": [asdict(step) for step in steps],
    }


def _zone_rule(raw: RawCheckins, preparation: Preparation) -> str:
    if preparation.local_time == "offset":
        return "offset column of the source"
    if preparation.zone:
        return f"one zone for all: {preparation.zone}"
    given = record.ZONE in raw.rows.columns
    return "zone column, else coordinates" if given else "coordinates of the place"


def _origin_of(source: Source) -> dict[str, Any]:
    """Name, size and SHA-256 of a source."""
    with source.path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {
        "file": source.path.name,
        "layout": source.layout.name,
        "bytes": source.path.stat().st_size,
        "sha256": digest,
    }
