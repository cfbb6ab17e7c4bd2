"""Cold places: added today, with a point and perhaps a category, and not one visit.

A model with shared vectors ranks them by what they have in common with the places it knows
(`model/shared_vectors.py`), without being trained again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading.words import Word
from castpoi.core.errors import BadInput
from castpoi.geo.zones import zones_of
from castpoi.methods.registry import METHODS
from castpoi.methods.run import KNOWN_CHECKINS, PLACE_SCHEMA, Run
from castpoi.recommend.table_file import column_of, needed_column, read_text, table_of

if TYPE_CHECKING:  # it needs torch, which counted methods do without
    from castpoi.model.ranker import CastPoiRanker

TableOfPlaces = pl.DataFrame | str | Path
"""A table of places, or the file of one."""

_WAY_OUT: Final = "give a table with the columns place, lat and lon, and perhaps name and category"
_NEEDED: Final[Mapping[Word, str]] = {
    "place": record.PLACE_ID,
    "lat": record.LAT,
    "lon": record.LON,
}
_OPTIONAL: Final[Mapping[Word, str]] = {"name": record.NAME, "category": record.CATEGORY}
_MOST_DEGREES: Final = {record.LAT: 90, record.LON: 180}


def with_cold_places(
    run: Run, places: pl.DataFrame, source: TableOfPlaces
) -> tuple[Run, pl.DataFrame]:
    """The run and its table of places with those of a source after its own."""
    ranker = _ranker_of(run)
    cold = _numbered(_read(source, places), places)
    more = ranker.with_places(
        cold[record.LAT].to_numpy(), cold[record.LON].to_numpy(), cold[record.CATEGORY].to_list()
    )
    return replace(run, ranker=more), pl.concat([places, cold])


def _ranker_of(run: Run) -> "CastPoiRanker":
    """The ranker of a run, if it can rank a place without visits."""
    if METHODS.named(run.method).needs_training:
        from castpoi.model.ranker import CastPoiRanker

        if isinstance(run.ranker, CastPoiRanker) and run.ranker.model.shared is not None:
            return run.ranker
    raise BadInput(
        f"{run.folder} cannot rank new places: its {run.method} has no shared vectors, so it knows "
        f"a place by its visits alone; train one that has them: 'castpoi train {run.city} --model "
        "castpoi-next --set shared_vectors=true --out RUN'"
    )


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A table of new places, and how to speak of its rows."""

    rows: pl.DataFrame
    where: str
    first: int
    """What a person calls its first row."""

    def refuse(self, is_wrong: pl.Expr, problem: str) -> None:
        """Tell of the first row of which something is true, if there is one."""
        wrong = self.rows.select(is_wrong).to_series().arg_true()
        if len(wrong):
            place = self.rows[record.PLACE_ID][wrong[0]]
            raise BadInput(f"{self.where}, row {wrong[0] + self.first}, place {place!r}: {problem}")


def _opened(source: TableOfPlaces) -> _Table:
    """The table of a source, its columns in our words, blanks trimmed and empty texts missing."""
    if isinstance(source, pl.DataFrame):
        table, where, first = source, "the table of new places", 1
    else:
        path = Path(source)
        table = table_of(read_text(path, way_out=_WAY_OUT), path, way_out=_WAY_OUT)
        where, first = str(path), 2  # row 1 is the header
    columns = {
        name: needed_column(table.columns, word, where=where, way_out=_WAY_OUT)
        for word, name in _NEEDED.items()
    } | {name: column_of(table.columns, word) for word, name in _OPTIONAL.items()}
    texts = [
        (pl.lit(None) if column is None else pl.col(column)).cast(pl.String).alias(name)
        for name, column in columns.items()
    ]
    trimmed = table.select(texts).with_columns(pl.all().str.strip_chars().replace("", None))
    return _Table(rows=trimmed, where=where, first=first)


def _read(source: TableOfPlaces, known: pl.DataFrame) -> pl.DataFrame:
    """The places of a source, each one checked: id, point, name and category."""
    table = _opened(source)
    place = pl.col(record.PLACE_ID)
    for name in _NEEDED.values():
        table.refuse(pl.col(name).is_null(), f"its {name} is missing; {_WAY_OUT}")
    table.refuse(~place.is_first_distinct(), "it stands in the table twice; give it once")
    table.refuse(
        place.is_in(known[record.PLACE_ID].implode()),
        "the run knows it already; leave it out, only new places are given",
    )
    points = {name: pl.col(name).cast(pl.Float64, strict=False) for name in _MOST_DEGREES}
    for name, most in _MOST_DEGREES.items():
        is_right = points[name].is_between(-most, most).fill_null(value=False)
        table.refuse(~is_right, f"its {name} must be degrees from -{most} to {most}")
    return table.rows.with_columns(**points)


def _numbered(cold: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """The same as rows of a run's table of places, after those it has."""
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
