"""Places that changed after training: new ones, called cold, and closed ones.

A new place has coordinates and perhaps a category, but no visits: without another training, it is
ranked with what the model learned of the known place most similar to it. A closed place is never
recommended, but it stays a place of histories.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading.layouts import Word, column_of, needed_column
from castpoi.checkins.similar import most_similar
from castpoi.core.errors import BadInput
from castpoi.core.frames import as_frame, is_frame, texts
from castpoi.geo.zones import zones_of
from castpoi.methods.ranker import abilities_of
from castpoi.methods.run import KNOWN_CHECKINS, PLACE_SCHEMA, Run
from castpoi.recommend.input_files import read_frame, read_text_table

TableOfPlaces = pl.DataFrame | str | Path  # a table of places, or its file

ClosedPlaces = TableOfPlaces | Iterable[str | int]
"""Ids of closed places, or a table of places or its file."""

_FORMAT: Final = "give a table with the columns place, lat and lon, and optionally name, category"
_CLOSED_FORMAT: Final = (
    "give a table with the column place and, if places are open, date_closed or operating_status"
)
_NEEDED: Final[Mapping[Word, str]] = {
    "place": record.PLACE_ID,
    "lat": record.LAT,
    "lon": record.LON,
}
_OPTIONAL: Final[Mapping[Word, str]] = {"name": record.NAME, "category": record.CATEGORY}
_MAX_DEGREES: Final = {record.LAT: 90, record.LON: 180}


def with_cold_places(
    run: Run, places: pl.DataFrame, source: TableOfPlaces
) -> tuple[Run, pl.DataFrame]:
    """The run and its table of places with the places of a source appended."""
    if not abilities_of(run.ranker).takes_new_places:
        raise BadInput(
            f"{run.name} cannot rank new places: {run.method} learns a place from its visits "
            "alone; train a model that ranks them from the day they open: 'castpoi train "
            f"{run.city or 'CITY'} --model castpoi-next --out RUN'"
        )
    ranker: Any = run.ranker  # a TakesNewPlaces
    cold = cold_places(source, places)
    extended = ranker.with_places(
        cold[record.LAT].to_numpy(), cold[record.LON].to_numpy(), most_similar(cold, places)[:, 0]
    )
    return replace(run, ranker=extended), pl.concat([places, cold])


def cold_places(source: TableOfPlaces, known: pl.DataFrame) -> pl.DataFrame:
    """The places of a source as rows of a run's table of places, numbered after the known ones."""
    cold = _read(source, known)
    zones = zones_of(cold[record.LAT].to_numpy(), cold[record.LON].to_numpy())
    return (
        cold.with_columns(
            pl.int_range(known.height, known.height + cold.height).alias(record.PLACE),
            pl.Series(record.ZONE, zones, dtype=pl.String),
            pl.lit(0).alias(KNOWN_CHECKINS),
        )
        .select(PLACE_SCHEMA.names())
        .cast(PLACE_SCHEMA)
    )


def _read(source: TableOfPlaces, known: pl.DataFrame) -> pl.DataFrame:
    """The checked places of a source: id, point, name and category; empty texts are null."""
    if isinstance(source, pl.DataFrame):
        table, where, first = source, "the table of new places", 1
    else:
        table = read_text_table(Path(source), how_to_fix=_FORMAT)
        where, first = str(source), 2  # row 1 is the header
    columns = {
        name: needed_column(table.columns, word, where=where, how_to_fix=_FORMAT)
        for word, name in _NEEDED.items()
    } | {name: column_of(table.columns, word) for word, name in _OPTIONAL.items()}
    rows = table.select(
        (pl.lit(None) if column is None else pl.col(column)).cast(pl.String).alias(name)
        for name, column in columns.items()
    ).with_columns(pl.all().str.strip_chars().replace("", None))
    place, numbers = pl.col(record.PLACE_ID), pl.col(*_MAX_DEGREES).cast(pl.Float64, strict=False)
    faults = {f"its {n} is missing; {_FORMAT}": pl.col(n).is_null() for n in _NEEDED.values()}
    faults["the table has it twice; give it once"] = ~place.is_first_distinct()
    faults["the run already has this place; leave it out, only new places are added"] = place.is_in(
        known[record.PLACE_ID].implode()
    )
    for name, most in _MAX_DEGREES.items():
        is_right = pl.col(name).cast(pl.Float64, strict=False).is_between(-most, most)
        fault = f"its {name} must be degrees from -{most} to {most}"
        faults[fault] = ~is_right.fill_null(value=False)
    for fault, is_wrong in faults.items():
        wrong = rows.select(is_wrong).to_series().arg_true()
        if len(wrong):
            shown = rows[record.PLACE_ID][wrong[0]]
            raise BadInput(f"{where}, row {wrong[0] + first}, place {shown!r}: {fault}")
    return rows.with_columns(numbers)


def closed_ids(closed: ClosedPlaces | None, places: TableOfPlaces | None = None) -> set[str]:
    """Ids of the closed places, and of those that a table of new `places` marks as closed.

    In a table with a column `date_closed` or `operating_status`, a place is closed if its date is
    not after today or its status contains "closed"; without these columns every place is closed.
    """
    if isinstance(closed, str | Path) or is_frame(closed):
        found = _of_table(closed, what="the table of closed places", is_marked=False)
    else:
        found = {str(each) for each in closed or ()}
    if places is None:
        return found
    return found | _of_table(places, what="the table of new places", is_marked=True)


def _of_table(source: object, *, what: str, is_marked: bool) -> set[str]:
    """Ids of closed places; where `is_marked`, those of no other places."""
    if isinstance(source, str | Path):
        table, what = read_frame(Path(source)), str(source)
    else:
        table = as_frame(source, what=what)
    place = needed_column(table.columns, "place", where=what, how_to_fix=_CLOSED_FORMAT)
    ids, columns = texts(table[place]).str.strip_chars(), table.columns
    is_closed = pl.lit("date_closed" not in columns and "operating_status" not in columns)
    if is_marked:
        is_closed = pl.lit(False)
    if "date_closed" in columns:
        since = pl.col("date_closed").cast(pl.String).str.strip_chars().str.slice(0, 10)
        day = since.str.to_date("%Y-%m-%d", strict=False)  # null for a year or a text
        has_closed = (since != "") & (day.is_null() | (day <= datetime.now(UTC).date()))
        is_closed |= has_closed.fill_null(False)
    if "operating_status" in columns:
        status = pl.col("operating_status").cast(pl.String).str.to_lowercase()
        is_closed |= status.str.contains("closed").fill_null(False)
    return set(ids.filter(table.with_columns(is_closed=is_closed)["is_closed"]).drop_nulls())
