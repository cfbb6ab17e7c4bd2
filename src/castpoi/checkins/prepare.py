"""The road from a raw table to a city: read, judge, place, localise, clean, split, fingerprint."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.canonical import in_canonical_order
from castpoi.checkins.city import City
from castpoi.checkins.cleaning import StepCount, count_step
from castpoi.checkins.local_time import check_zone, numbered_zones, offsets_minutes, to_utc_us
from castpoi.checkins.manifest import counts_of, origin_of, provenance_of
from castpoi.checkins.microseconds import HOUR_US, MINUTE_US
from castpoi.checkins.places import (
    mark_rows,
    misplaced,
    one_point_each,
    points_of,
    usual_text,
    without,
)
from castpoi.checkins.preparation import Preparation
from castpoi.checkins.reading.bad_rows import count_by_rule, refuse_bad_rows, write_bad_rows
from castpoi.checkins.reading.read import (
    BROKEN,
    CLOCK,
    IS_NAIVE,
    RawCheckins,
    good_rows,
    read_checkins,
)
from castpoi.checkins.reading.rules import OK
from castpoi.checkins.reading.source import Source, open_sources
from castpoi.checkins.recipe import BAKED_IN, RECIPES, Recipe, clean
from castpoi.checkins.rhythm import Rhythm, rhythm_of
from castpoi.checkins.split import split_checkins, split_table
from castpoi.core.errors import BadInput, BadRows, WrongClock
from castpoi.core.files import check_vacant, new_folder
from castpoi.core.progress import SILENCE, Progress
from castpoi.geo.zones import zones_of

_MOST_SHIFT_HOURS = 48


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A city, and what happened on the road to it."""

    city: City
    steps: list[StepCount]
    dropped: Mapping[str, int]
    """Rule -> rows that were left out because they break it."""
    rhythm: Rhythm
    remarks: tuple[str, ...]
    """What the reader had to decide, in a sentence each."""


def prepare(
    paths: list[Path],
    out: Path,
    preparation: Preparation,
    *,
    overwrite: bool = False,
    progress: Progress = SILENCE,
) -> Prepared:
    """Make a city of the sources and write it to `out`, whole or not at all."""
    check_vacant(out, kind="city", overwrite=overwrite)
    if dropped_path(out).exists() and not overwrite:
        raise BadInput(
            f"{dropped_path(out)} already exists, where bad rows would be written; move it away, "
            "choose another --out, or replace it with --overwrite"
        )
    if abs(preparation.clock_shift_hours) > _MOST_SHIFT_HOURS:
        raise BadInput(
            f"--clock-shift is {preparation.clock_shift_hours:+g} hours; no clock is wrong by more "
            f"than {_MOST_SHIFT_HOURS} hours"
        )
    if not preparation.max_place_spread_km > 0:  # nan is not
        raise BadInput(
            f"--max-place-spread-km is {preparation.max_place_spread_km:g}; it must be above 0"
        )
    if preparation.zone:
        check_zone(preparation.zone, where="--zone")
    sources = open_sources(
        paths,
        format_name=preparation.format_name,
        delimiter=preparation.delimiter,
        encoding=preparation.encoding,
    )
    with ThreadPoolExecutor(max_workers=1) as beside:
        origins = beside.submit(lambda: [origin_of(source) for source in sources])
        return _prepare(sources, out, preparation, origins, overwrite, progress)


def _prepare(
    sources: list[Source],
    out: Path,
    preparation: Preparation,
    origins: "Future[list[dict[str, Any]]]",
    overwrite: bool,
    progress: Progress,
) -> Prepared:
    raw = read_checkins(
        sources,
        columns=preparation.columns,
        naive_times=preparation.naive_times,
        published=preparation.recipe.needs_published or sources[0].layout.name == "sthgcn",
        progress=progress,
    )
    with progress.task("preparing", total=4) as task:
        raw = _with_ranked_ids(raw)
        points = points_of(raw.rows)
        marks = misplaced(points, preparation.max_place_spread_km)
        raw = _judged(replace(raw, rows=mark_rows(raw.rows, marks)), preparation)
        task.advance()
        places = _place_table(raw, without(points, marks), preparation)
        checkins, read = _in_canonical_order(raw, places, preparation)
        task.advance()
        preparation = replace(preparation, recipe=_recipe_for(raw, preparation.recipe))
        checkins, steps = clean(checkins, preparation.recipe)
        city, rhythm = _city(checkins, raw, places, preparation)
        task.advance()
        steps, dropped = [*read, *steps], count_by_rule(raw)
        city.manifest.update(provenance_of(raw, steps, dropped, preparation, origins.result()))
        with new_folder(out, kind="city", overwrite=overwrite) as staging:
            city.write_into(staging)
            _write_dropped(raw, staging, out)
        task.advance()
    return Prepared(city=city, steps=steps, dropped=dropped, rhythm=rhythm, remarks=raw.remarks)


def dropped_path(out: Path) -> Path:
    """Where the rows that were left out of a city are written: beside it."""
    return out.with_name(f"{out.name}.dropped.csv")


def _write_dropped(raw: RawCheckins, staging: Path, out: Path) -> None:
    """Write the rows left out beside the city; those of a former city there are outdated."""
    if not count_by_rule(raw):
        dropped_path(out).unlink(missing_ok=True)
        return
    write_bad_rows(raw, staging / "dropped.csv")
    (staging / "dropped.csv").replace(dropped_path(out))


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


def _recipe_for(raw: RawCheckins, asked: Recipe) -> Recipe:
    """The recipe asked for, unless the files have been through one of the paper's already."""
    is_done = raw.sources[0].layout.name == "sthgcn"
    is_usual = asked == Recipe() or asked.name in RECIPES
    return BAKED_IN if is_done and is_usual else asked


def _judged(raw: RawCheckins, preparation: Preparation) -> RawCheckins:
    """The same rows, unless a broken rule is to stop the preparation."""
    if not preparation.drop_bad_rows:
        refuse_bad_rows(raw, preparation.max_place_spread_km)
    elif not (raw.rows[BROKEN] == OK).any():
        counts = ", ".join(f"{count:,} {rule}" for rule, count in count_by_rule(raw).items())
        raise BadRows(
            f"{raw.sources[0].path}: every row breaks a rule ({counts}); see what is "
            "wrong with the first one by --on-bad-rows fail"
        )
    return raw


def _place_table(raw: RawCheckins, points: pl.DataFrame, preparation: Preparation) -> pl.DataFrame:
    """Every place with its point, zone, category and name, by rank of its id."""
    good = good_rows(raw)
    places = one_point_each(points).sort(record.PLACE)
    for column in (record.CATEGORY, record.NAME):
        texts = usual_text(good, column, raw.texts[column])
        places = places.join(texts, on=record.PLACE, how="left", maintain_order="left")
    given = usual_text(good, record.ZONE, raw.texts[record.ZONE])
    for zone in given[record.ZONE].unique():
        check_zone(zone, where=f"{raw.sources[0].path}, the zone column")
    if preparation.zone:
        zones = pl.Series([preparation.zone] * places.height, dtype=pl.String)
    else:
        looked_up = zones_of(places[record.LAT].to_numpy(), places[record.LON].to_numpy())
        zones = pl.Series(looked_up, dtype=pl.String)
    places = places.with_columns(zones.alias("looked_up")).join(
        given, on=record.PLACE, how="left", maintain_order="left"
    )
    zone = pl.coalesce(record.ZONE, "looked_up") if not preparation.zone else pl.col("looked_up")
    return places.with_columns(zone.alias(record.ZONE)).drop("looked_up")


def _in_canonical_order(
    raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> tuple[pl.DataFrame, list[StepCount]]:
    """Good rows with their instant, sorted by user, instant and place; and the first counts."""
    rows = good_rows(raw)
    at_us = rows[CLOCK].to_physical().to_numpy()
    if rows[IS_NAIVE].any():
        at_us = _instants(rows, at_us, places, preparation)
    at_us = at_us + round(preparation.clock_shift_hours * HOUR_US)
    needed = [record.SESSION, record.SOURCE_PART]
    needed += ["offset"] * (preparation.local_time == "offset")
    checkins = in_canonical_order(
        rows[record.USER].to_numpy(),
        at_us,
        rows[record.PLACE].to_numpy(),
        rows.select(name for name in needed if name in rows.columns),
    )
    counts = []
    if raw.padding_rows:
        counts.append(count_step("padding rows", raw.rows.height + raw.padding_rows, raw.rows))
    counts.append(count_step("rows that are no check-ins", raw.rows.height, checkins))
    return checkins, counts


def _instants(
    rows: pl.DataFrame, wall_us: NDArray[np.int64], places: pl.DataFrame, preparation: Preparation
) -> NDArray[np.int64]:
    """Instants of rows of which some carry a local wall clock."""
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
            "--columns offset=COLUMN, or leave local time to the zone of the place"
        )
    return rows["offset"].to_numpy()


def _city(
    checkins: pl.DataFrame, raw: RawCheckins, places: pl.DataFrame, preparation: Preparation
) -> tuple[City, Rhythm]:
    """The city of cleaned check-ins: ids renumbered without gaps, localised, split."""
    if preparation.local_time == "offset":
        offsets = _given_offsets(checkins)
    else:
        at_us = checkins[record.AT_UTC].to_physical().to_numpy()
        offsets = offsets_minutes(at_us, *_zone_of_rows(checkins, places))
    rhythm = _checked_rhythm(checkins, offsets, preparation)
    user, user_ranks = _renumbered(checkins[record.USER].to_numpy())
    place, place_ranks = _renumbered(checkins[record.PLACE].to_numpy())
    table = pl.DataFrame(
        {
            record.CHECKIN: np.arange(checkins.height, dtype=np.uint32),
            record.USER: user,
            record.PLACE: place,
            record.AT_UTC: checkins[record.AT_UTC],
            record.OFFSET: offsets,
        },
        schema=record.CHECKIN_SCHEMA,
    )
    at_us = table[record.AT_UTC].to_physical().to_numpy()
    part = split_checkins(preparation.split, user.astype(np.int64), place.astype(np.int64), at_us)
    city = City(
        checkins=table,
        users=_users_left(user_ranks, raw.texts[record.USER]),
        places=_places_left(place_ranks, places, raw.texts[record.PLACE]),
        split=split_table(part),
        manifest={"kind": "city"},
    )
    city.manifest.update(counts_of(city, rhythm))
    return city, rhythm


def _users_left(ranks: NDArray[np.uint32], ids: pl.Series) -> pl.DataFrame:
    """The table of the users of these ranks."""
    return pl.DataFrame(
        {
            record.USER: np.arange(len(ranks), dtype=np.uint32),
            record.USER_ID: ids.gather(pl.Series(ranks)),
        },
        schema=record.USER_SCHEMA,
    )


def _places_left(ranks: NDArray[np.uint32], places: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """The table of the places of these ranks."""
    kept = places.filter(pl.col(record.PLACE).is_in(pl.Series(ranks).implode()))
    numbered = kept.with_columns(
        pl.Series(np.arange(kept.height, dtype=np.uint32)).alias(record.PLACE),
        ids.gather(pl.Series(ranks)).alias(record.PLACE_ID),
    )
    return numbered.select(list(record.PLACE_SCHEMA)).cast(record.PLACE_SCHEMA)


def _renumbered(codes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """(codes without gaps in the same order, the former code of each new one)."""
    used = np.flatnonzero(np.bincount(codes)).astype(np.uint32)
    number = np.zeros(int(used[-1]) + 1, dtype=np.uint32)
    number[used] = np.arange(len(used), dtype=np.uint32)
    return number[codes], used


def _checked_rhythm(
    checkins: pl.DataFrame, offsets: NDArray[np.int16], preparation: Preparation
) -> Rhythm:
    at_us = checkins[record.AT_UTC].to_physical().to_numpy()
    rhythm = rhythm_of(at_us + offsets.astype(np.int64) * MINUTE_US)
    if rhythm.is_judged and not rhythm.is_human and not preparation.accept_rhythm:
        shift = preparation.clock_shift_hours + rhythm.mending_shift_hours
        mend = f"--clock-shift {shift:+g} to mend it, or " if rhythm.mending_shift_hours else ""
        raise WrongClock(
            f"the clock of this source is not that of people: {rhythm.sentence}; pass "
            f"{mend}--accept-rhythm if it is right as it is"
        )
    return rhythm
