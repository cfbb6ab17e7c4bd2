"""A table of the places apart from the check-ins, joined to them by the id of the place.

It gives every check-in its coordinates and, if it has them, category, name and zone of the place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from castpoi.checkins.reading.layouts import (
    NEEDED_OF_PLACES,
    WORDS_OF_PLACES,
    needed_column,
    recognise,
    usual_columns,
)
from castpoi.checkins.reading.rows import NO_IDS
from castpoi.checkins.reading.source import PLACE_KEY, Source, explained, id_text
from castpoi.core.errors import BadInput, BadRows

_NAMED: Final = 3  # missing places that an error names
_ROWS: Final = "rows"


@dataclass(frozen=True)
class PlacesTable:
    """The files of a places table, and which of their columns is what."""

    sources: Sequence[Source]
    columns: Mapping[str, str]

    def join(
        self, sources: Sequence[Source], columns: Mapping[str, str], *, drop: bool
    ) -> list[Source]:
        """The sources of check-ins, with the places joined to their rows.

        Places of check-ins that are not in the table are an error; with `drop` only if all are.
        """
        place_columns = [_place_column(source, columns) for source in sources]
        ids = _ids_of(sources, place_columns)
        places = self._read(ids)
        remarks = self._check_missing(sources[0], ids, places, drop=drop)
        joined = [
            replace(source, places=places, place_column=column)
            for source, column in zip(sources, place_columns, strict=True)
        ]
        more = (*joined[0].remarks, *(r for each in self.sources for r in each.remarks), *remarks)
        return [replace(joined[0], remarks=more), *joined[1:]]

    def _read(self, ids: pl.DataFrame) -> pl.DataFrame:
        """The places with these ids, one row each: `PLACE_KEY`, `lat of the place`, ..."""
        tables = []
        for source in self.sources:
            by_id = {} if usual_columns(source.columns, "place") else _ids_column(source)
            meaning = recognise(
                source.columns,
                {**by_id, **self.columns},
                where=source.name,
                words=WORDS_OF_PLACES,
                needed=NEEDED_OF_PLACES,
                option="--places-columns",
            )
            with explained(source):
                rows = source.scan()
                dtype = rows.collect_schema()[meaning["place"]]
                key = id_text(meaning["place"], dtype).str.strip_chars().alias(PLACE_KEY)
                more = (
                    pl.col(column).alias(f"{word} of the place")
                    for word, column in meaning.items()
                    if word != "place"
                )
                known = rows.select(key, *more).join(ids.lazy(), on=PLACE_KEY, how="semi")
                tables.append(known.unique().collect(engine="streaming"))
        places = pl.concat(tables, how="diagonal_relaxed").unique()
        twice = places.filter(pl.col(PLACE_KEY).is_duplicated())[PLACE_KEY].unique().sort()
        if len(twice):
            raise BadInput(
                f"{self.sources[0].name}: place '{twice[0]}' is in several rows that differ "
                f"(in all: {len(twice):,} places); leave one row for each place"
            )
        return places

    def _check_missing(
        self, source: Source, ids: pl.DataFrame, places: pl.DataFrame, *, drop: bool
    ) -> list[str]:
        missing = ids.join(places, on=PLACE_KEY, how="anti").sort(-pl.col(_ROWS), PLACE_KEY)
        if missing.is_empty():
            return []
        first = ", ".join(f"'{place}'" for place in missing[PLACE_KEY][:_NAMED])
        sentence = (
            f"{missing.height:,} of {ids.height:,} places are not in {self.sources[0].path.name} "
            f"({first}{', ...' * (missing.height > _NAMED)}), with {missing[_ROWS].sum():,} of "
            f"{ids[_ROWS].sum():,} check-ins"
        )
        if missing.height == ids.height:
            raise BadRows(
                f"{source.name}: {sentence}; if that is the wrong column, use --columns "
                "place=COLUMN or --places-columns place=COLUMN"
            )
        if not drop:
            raise BadRows(
                f"{source.name}: {sentence}; add them there, or skip such check-ins with "
                "--on-bad-rows drop"
            )
        return [sentence]


def _ids_column(source: Source) -> dict[str, str]:
    """A column `id`, which in a table of places has the ids of places."""
    return next(({"place": name} for name in source.columns if name.lower() == "id"), {})


def _place_column(source: Source, columns: Mapping[str, str]) -> str:
    if (known := source.layout.columns.get("place") or columns.get("place")) in source.columns:
        return str(known)
    return needed_column(
        source.columns, "place", where=source.name, how_to_fix="use --columns place=COLUMN"
    )


def _ids_of(sources: Sequence[Source], columns: Sequence[str]) -> pl.DataFrame:
    """The ids of the places of all check-ins, with their number of rows."""
    counts = []
    for source, column in zip(sources, columns, strict=True):
        with explained(source):
            rows = source.scan(ragged=True)
            ids = id_text(column, rows.collect_schema()[column]).str.strip_chars()
            counts.append(rows.group_by(ids.alias(PLACE_KEY)).agg(pl.len().alias(_ROWS)).collect())
    is_id = pl.col(PLACE_KEY).is_not_null() & ~pl.col(PLACE_KEY).is_in(NO_IDS)
    return (
        pl.concat(counts).filter(is_id).group_by(PLACE_KEY).agg(pl.col(_ROWS).cast(pl.Int64).sum())
    )
