"""The content of a city from cleaned check-ins: localised, split, renumbered, counted."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.checkins.city import City, fingerprint_of_parts
from castpoi.checkins.reading.layouts import unused_columns
from castpoi.checkins.reading.rows import RawCheckins
from castpoi.checkins.reading.rules import bad_rows_of
from castpoi.checkins.record import MINUTE_US
from castpoi.checkins.rhythm import Rhythm, hours_of, rhythm_of_hours
from castpoi.checkins.split import split_checkins, words_of
from castpoi.checkins.tables import Tables
from castpoi.core.arrays import Numbers
from castpoi.core.errors import BadInput, WrongClock
from castpoi.geo.zones import numbered_zones, offsets_minutes

if TYPE_CHECKING:
    from castpoi.checkins.prepare import Preparation

_MIN_PLACES: Final = 5
_MANY_CHECKINS: Final = 500
"""A city with this many check-ins at fewer places was read from a wrong column."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a city; its check-ins are in parts and have the columns of the split."""

    checkins: Tables
    users: pl.DataFrame
    places: pl.DataFrame
    manifest: dict[str, Any]
    dropped: pl.DataFrame | None

    @property
    def city(self) -> City:
        """The city in memory."""
        (checkins,) = self.checkins
        return self.city_of(checkins)

    def city_of(self, checkins: pl.DataFrame) -> City:
        """A city with some of the check-ins."""
        return City(
            checkins=checkins.select(record.CHECKIN_SCHEMA.names()),
            users=self.users,
            places=self.places,
            split=checkins.select(record.SPLIT_SCHEMA.names()),
            manifest=self.manifest,
            dropped=self.dropped,
        )

    @property
    def tables(self) -> dict[str, pl.DataFrame | pl.LazyFrame]:
        """The tables of the city, to be written."""
        rows = self.checkins.lazy()
        return {
            "checkins": rows.select(record.CHECKIN_SCHEMA.names()),
            "users": self.users,
            "places": self.places,
            "split": rows.select(record.SPLIT_SCHEMA.names()),
        }


def content_of(
    checkins: Tables, raw: RawCheckins, places: pl.DataFrame, preparation: "Preparation"
) -> Content:
    """The content of a city: cleaned check-ins localised, split, and renumbered without gaps."""
    checkins, rhythm = _localised(checkins, places, preparation)
    ranks = {name: checkins.codes_in(name) for name in (record.USER, record.PLACE)}
    users_kept, places_kept = (
        pl.Series(np.flatnonzero(each).astype(np.uint32)) for each in ranks.values()
    )
    _check_number_of_places(len(places_kept), checkins.height, raw)
    parts = iter(split_checkins(preparation.split, checkins))
    numbers = {name: (np.cumsum(each) - 1).astype(np.uint32) for name, each in ranks.items()}
    first = 0  # the number of the next check-in

    def finished(table: pl.DataFrame) -> pl.DataFrame:
        nonlocal first
        columns: dict[str, Any] = {
            name: number[table[name].to_numpy()] for name, number in numbers.items()
        }
        columns[record.CHECKIN] = np.arange(first, first + table.height, dtype=np.uint32)
        first += table.height
        columns |= {name: table[name] for name in (record.AT_UTC, record.OFFSET)}
        return pl.DataFrame(columns, schema=record.CHECKIN_SCHEMA).with_columns(
            words_of(next(parts)).alias(record.PART)
        )

    user_ids, place_ids = (
        raw.texts[word].gather(kept)
        for word, kept in ((record.USER, users_kept), (record.PLACE, places_kept))
    )
    kept = places.filter(pl.col(record.PLACE).is_in(places_kept.implode()))
    content = Content(
        checkins=checkins.map(finished),
        users=_numbered(record.USER, pl.DataFrame({record.USER_ID: user_ids}), record.USER_SCHEMA),
        places=_numbered(
            record.PLACE, kept.with_columns(place_ids.alias(record.PLACE_ID)), record.PLACE_SCHEMA
        ),
        manifest={"kind": "city"},
        dropped=bad_rows_of(raw),
    )
    content.manifest.update(_counts(content, rhythm))
    return content


def _localised(
    checkins: Tables, places: pl.DataFrame, preparation: "Preparation"
) -> tuple[Tables, Rhythm]:
    """Check-ins with their offset from UTC, and the checked rhythm of their local times."""
    hours = np.zeros(24, dtype=np.int64)

    def localised(table: pl.DataFrame) -> pl.DataFrame:
        at_us = table[record.AT_UTC].to_physical().to_numpy()
        offsets = offsets_minutes(at_us, *zone_of_rows(table, places))
        np.add(hours, hours_of(at_us + offsets.astype(np.int64) * MINUTE_US), out=hours)
        return table.with_columns(pl.Series(record.OFFSET, offsets))

    checkins = checkins.map(localised)
    return checkins, _checked_rhythm(rhythm_of_hours(hours), preparation)


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


def _checked_rhythm(rhythm: Rhythm, preparation: "Preparation") -> Rhythm:
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


def _counts(content: Content, rhythm: Rhythm) -> dict[str, Any]:
    """The part of the manifest about the content of the city."""
    by_part, targets, revisits = dict.fromkeys(record.PARTS, 0), 0, 0
    for table in content.checkins:
        some = content.city_of(table)
        by_part = {name: by_part[name] + n for name, n in some.checkins_by_part.items()}
        targets += (own := len(some.targets(record.TEST)))
        revisits += round((some.revisit_share or 0.0) * own)
    return {
        "fingerprint": fingerprint_of_parts(content.checkins, content.users, content.places),
        "checkins": content.checkins.height,
        "users": content.users.height,
        "places": content.places.height,
        **{part.replace(" ", "_"): count for part, count in by_part.items()},
        "revisit_share": round(revisits / max(targets, 1), 6),
        "rhythm": {**asdict(rhythm), "is_human": rhythm.is_human, "finding": rhythm.sentence},
    }


def zone_of_rows(rows: pl.DataFrame, places: pl.DataFrame) -> tuple[Numbers, list[str]]:
    """(number of the zone of every row, the zones by number)."""
    number, zones = numbered_zones(places[record.ZONE])
    by_place = np.zeros(int(places[record.PLACE].to_numpy().max()) + 1, dtype=np.int64)
    by_place[places[record.PLACE].to_numpy()] = number
    return by_place[rows[record.PLACE].to_numpy()], zones
