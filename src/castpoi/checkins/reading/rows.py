"""Reads sources as one table of raw check-ins: ids as codes, times as clocks, broken rules marked.

Only single rows are checked here; `rules.check_rows` decides whether a broken rule is an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading import times
from castpoi.checkins.reading.layouts import (
    NEEDED,
    OPTIONAL_COLUMNS,
    PART_NAMES,
    NaiveTimes,
    Word,
    naive_times_by_column,
    recognise,
    unused_columns,
)
from castpoi.checkins.reading.rules import BROKEN, CODE, OK, broken_rule
from castpoi.checkins.reading.source import Source, explained, id_text
from castpoi.checkins.tables import Disk, Tables, write_part
from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE, Progress

CLOCK: Final = "clock"
IS_NAIVE: Final = "is_naive"
NO_IDS: Final = ("", "NULL", "null", "NaN", "nan", "None", "<NA>", r"\N")
"""Texts by which databases and tables mark a missing id."""

_SAMPLE_ROWS: Final = 1000
_CODED: Final[tuple[Word, ...]] = ("user", "place", "category", "name", "zone", "session")
_IDS: Final[Mapping[Word, str]] = {"user": "user id", "place": "place id"}
_POINT: Final[tuple[Word, ...]] = ("lat", "lon")
Meaning = Mapping[str, str]  # word -> the column of a source that has it
Texts = Mapping[str, pl.Series]
"""Word -> the texts of its codes, which are row numbers; those of users and places are sorted."""


@dataclass(frozen=True, kw_only=True)
class RawCheckins:
    """Rows as they were read: columns user, place, lat, lon, clock, is_naive, broken_rule, row,
    source; and category, name, zone, session, source_part if the source has them."""

    rows: Tables
    texts: Texts
    sources: tuple[Source, ...]
    meanings: tuple[Meaning, ...]  # one for each source
    naive_times: str  # meaning of naive clocks: utc, local or refuse; mixed if the sources differ
    padding_rows: int  # number of padding rows, which have been removed
    remarks: tuple[str, ...]  # decisions of the reader, one sentence each
    height: int  # number of rows
    bad: pl.DataFrame  # the rows that break a rule, once all rules are applied


def good_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that break no rule; copied only if there are others."""
    if rows[BROKEN].max() == OK:
        return rows
    return rows.filter(pl.col(BROKEN) == OK)


def read_checkins(
    sources: list[Source],
    *,
    columns: Mapping[str, str],
    naive_times: NaiveTimes | None,
    published: bool,
    disk: Disk | None = None,
    progress: Progress = SILENCE,
) -> RawCheckins:
    """Read all sources; `published` keeps the published split and sessions of the rows.

    With `disk` the rows of each source become a file.
    """
    categories = {word: pl.Categories.random(word) for word in _CODED}
    meanings = [_meaning(source, columns) for source in sources]
    tables: list[pl.DataFrame] = []  # with `disk` without rows
    read: list[tuple[int, str]] = []
    with progress.task("reading", total=len(sources)) as task:
        for number, (source, meaning) in enumerate(zip(sources, meanings, strict=True)):
            if disk is not None:
                source.check_size(disk)
            reader = _Reader(source, number, meaning, categories, published)
            rows, padding, means = reader.read(naive_times)
            read.append((padding, means))
            if disk is not None:
                write_part(_coded(rows), disk.folder / f"source-{number}")
                rows = rows.clear()
            tables.append(rows)
            task.advance()
    paddings, meant = zip(*read, strict=True)
    # Polars drops the texts of a category when no column has it: take them first.
    texts = {str(word): each.to_series() for word, each in categories.items()}
    coded, remarks = _with_ranked_ids(_tables(tables, disk), texts)
    return RawCheckins(
        rows=coded,
        texts=texts,
        sources=tuple(sources),
        meanings=tuple(meanings),
        naive_times=meant[0] if len(set(meant)) == 1 else "mixed",
        padding_rows=sum(paddings),
        remarks=(
            *(remark for source in sources for remark in source.remarks),
            *_remarks_on_columns(sources, meanings, columns),
            *remarks,
        ),
        height=coded.height,
        bad=pl.DataFrame(),
    )


def _tables(tables: Sequence[pl.DataFrame], disk: Disk | None) -> Tables:
    """The rows of all sources: one table in memory, or the file of each source."""
    if disk is not None:
        return Tables(disk.folder / f"source-{number}" for number in range(len(tables)))
    return Tables([_coded(pl.concat(tables, how="diagonal") if len(tables) > 1 else tables[0])])


def _coded(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col(pl.Categorical).to_physical())


def _meaning(source: Source, given: Mapping[str, str]) -> Meaning:
    fixed, of_places = source.layout.columns, source.place_words
    if not fixed:
        words = [word for word in get_args(Word) if word not in of_places]
        needed = [word for word in NEEDED if word not in of_places]
        meaning = recognise(source.columns, given, where=source.name, words=words, needed=needed)
        return {**meaning, **of_places}
    if given:
        raise BadInput(
            f"{source.name} has the {source.layout.name} layout, whose columns are fixed; leave "
            "out --columns, or read it with --format table"
        )
    found = {word: column for word, column in fixed.items() if column in source.columns}
    found |= of_places
    absent = (c for c in fixed.values() if c not in (*source.columns, *OPTIONAL_COLUMNS))
    if first := next(absent, None):
        raise BadInput(
            f"{source.name}, row 1: the {source.layout.name} layout has a column '{first}', "
            f"this file has {', '.join(source.columns)}; read it with --format table"
        )
    return found


def _remarks_on_columns(
    sources: Sequence[Source], meanings: Sequence[Meaning], given: Mapping[str, str]
) -> list[str]:
    """One sentence for each column of a table that could have been read instead of another."""
    return [
        f"{source.path.name}: the {word} is read from '{meaning[word]}', not from '{other}'; use "
        f"--columns {word}={other} to change that"
        for source, meaning in zip(sources, meanings, strict=True)
        if not source.layout.columns
        for word, other in unused_columns(
            source.columns, meaning, {**given, **source.place_words}
        ).items()
    ]


def _with_ranked_ids(rows: Tables, texts: dict[str, pl.Series]) -> tuple[Tables, list[str]]:
    """Replace codes of users and places by the rank of their id in byte order.

    Blanks around ids are trimmed, so ids that differ only in blanks become one; returns a remark if
    there were any. Changes `texts` to the ids by rank.
    """
    trimmed: list[str] = []
    ranks: dict[str, pl.Series] = {}
    have_blanks: dict[str, pl.Series] = {}
    for word, title in _IDS.items():
        ids = texts[word].str.strip_chars()
        had_blanks = (ids != texts[word]) & ~ids.is_in(NO_IDS)
        if count := int(had_blanks.sum()):
            trimmed.append(f"{count:,} {title}{'s' * (count > 1)}")
            have_blanks[word] = had_blanks
        order = ids.arg_sort()
        ids = ids.gather(order)
        is_first = (ids != ids.shift(1)).fill_null(True)
        rank = np.empty(len(ids), dtype=np.uint32)
        rank[order.to_numpy()] = is_first.cum_sum().to_numpy() - 1
        texts[word] = ids.filter(is_first)
        ranks[word] = pl.Series(rank)
    count = 0

    def ranked(table: pl.DataFrame) -> pl.DataFrame:
        nonlocal count
        is_trimmed = pl.repeat(False, table.height, eager=True)
        for word, had_blanks in have_blanks.items():
            is_trimmed |= had_blanks.gather(table[word]).fill_null(False)
        count += int(is_trimmed.sum())
        return table.with_columns(
            rank.gather(table[word]).alias(word) for word, rank in ranks.items()
        )

    rows = rows.map(ranked)
    if not trimmed:
        return rows, []
    blanks = f"blanks around {' and '.join(trimmed)} were trimmed"
    return rows, [f"{blanks}, in {count:,} row{'s' * (count != 1)}"]


@dataclass(frozen=True)
class _Reader:
    """Reads the rows of one source."""

    source: Source
    number: int
    meaning: Meaning
    categories: Mapping[Word, pl.Categories]  # word -> its texts by code, shared by all sources
    published: bool

    def read(self, naive_times: NaiveTimes | None) -> tuple[pl.DataFrame, int, str]:
        """(rows, number of padding rows removed, meaning of naive times)."""
        with explained(self.source):
            sample = self.source.scan(ragged=True).head(_SAMPLE_ROWS).collect()
        self._refuse_nested(sample.schema)
        if not sample.is_empty():
            points = sample.select(
                pl.col(self.meaning[word]).cast(pl.Float64, strict=False).alias(word)
                for word in _POINT
            )
            conventions = self.source.layout.conventions_of(points, self.source.name)
            by_column = naive_times_by_column(self.meaning["time"])
            means = naive_times or conventions.naive_times or by_column or "refuse"
            rows = self._without_blank_lines(self._parsed(sample[self.meaning["time"]], means))
            if not rows.is_empty():
                kept = rows = self._with_bad_ids(rows)
                if (padding := conventions.padding_place) is not None:
                    place = pl.col(record.PLACE).cast(pl.String)
                    kept = rows.filter(place.ne_missing(padding))
                return kept, rows.height - kept.height, means
        raise BadInput(f"{self.source.name} has a header but no rows; export it again")

    def _refuse_nested(self, schema: pl.Schema) -> None:
        """Raise if a column has lists or structs."""
        for word, name in self.meaning.items():
            if schema[name].is_nested():
                raise BadInput(
                    f"{self.source.name}: column '{name}' has values of type {schema[name]}, "
                    f"not one {word} per row; choose another column with --columns"
                )

    def _parsed(self, times_in_sample: pl.Series, means: NaiveTimes) -> pl.DataFrame:
        """All rows, in one scan; if a value cannot be read, all again with every known format."""
        has_texts = times_in_sample.dtype == pl.String
        formats = times.formats_in(times_in_sample) if has_texts else [times.EPOCH]
        try:
            rows = self._collected(means, formats)
        except BadInput as problem:
            if "more fields" not in str(problem.__cause__):
                raise
            return self._with_ragged_rows(means)
        if rows[BROKEN].is_in([CODE["unreadable time"], CODE["unreadable coordinates"]]).any():
            return self._collected(means)
        return rows

    def _with_ragged_rows(self, means: NaiveTimes) -> pl.DataFrame:
        """All rows; those with more cells than the header are marked."""
        lines = enumerate(self.source.lines(), start=-int(self.source.has_header))
        ragged = [row for row, (_, cells) in lines if len(cells) > len(self.source.columns)]
        rows = self._collected(means, ragged=True)
        code = pl.lit(CODE["too many columns"], dtype=pl.UInt8)
        is_ragged = pl.col(record.ROW).is_in(ragged)
        return rows.with_columns(pl.when(is_ragged).then(code).otherwise(BROKEN).alias(BROKEN))

    def _collected(
        self, means: NaiveTimes, formats: list[str] | None = None, *, ragged: bool = False
    ) -> pl.DataFrame:
        """Every column of a raw check-in, computed from the columns of the source.

        Without `formats`, times may have any format, cells may have blanks around them, and
        coordinates may have a decimal comma.
        """
        # A UTC clock is an instant already; only a local one remains naive.
        is_naive = pl.col(IS_NAIVE) & (means == "local")
        with explained(self.source):
            return (
                self._selected(self.source.scan(ragged=ragged), formats)
                .with_columns(broken_rule(naive_is_refused=means == "refuse").alias(BROKEN))
                .drop("has_coordinates", "has_time")
                .with_columns(
                    pl.lit(self.number, dtype=pl.UInt16).alias(record.SOURCE),
                    is_naive.alias(IS_NAIVE),
                )
                .collect()
            )

    def _selected(self, frame: pl.LazyFrame, formats: list[str] | None) -> pl.LazyFrame:
        schema, time = frame.collect_schema(), self.meaning["time"]
        lat, lon = (self._number(word, schema, lenient=formats is None) for word in _POINT)
        has_time = pl.col(time).is_not_null()
        if isinstance(dtype := schema[time], pl.Datetime):
            clock, is_naive = times.clock_of_dates(time, dtype)
        else:
            text = pl.col(time).cast(pl.String)
            frame = frame.with_columns(text.str.strip_chars() if formats is None else text)
            clock, is_naive = times.clock_of(time, formats or times.ALL_FORMATS)
        return frame.select(
            record.ROW,
            self._id("user", schema).alias(record.USER),
            self._id("place", schema).alias(record.PLACE),
            lat.cast(pl.Float64, strict=False).alias(record.LAT),
            lon.cast(pl.Float64, strict=False).alias(record.LON),
            clock.alias(CLOCK),
            is_naive.alias(IS_NAIVE),
            *(column.alias(name) for name, column in self._optional_columns().items()),
            (lat.is_not_null() & lon.is_not_null()).alias("has_coordinates"),
            (has_time & (pl.col(time) != "") if dtype == pl.String else has_time).alias("has_time"),
        )

    def _code(self, word: Word, text: pl.Expr | None = None) -> pl.Expr:
        """The code of each text of a column."""
        column = pl.col(self.meaning[word]) if text is None else text
        return column.cast(pl.String).cast(pl.Categorical(self.categories[word]))

    def _id(self, word: Word, schema: pl.Schema) -> pl.Expr:
        """The code of each id."""
        name = self.meaning[word]
        return self._code(word, id_text(name, schema[name]))

    def _number(self, word: Word, schema: pl.Schema, *, lenient: bool) -> pl.Expr:
        column = pl.col(self.meaning[word])
        if not lenient or schema[self.meaning[word]] != pl.String:
            return column
        text = column.str.strip_chars().str.replace(",", ".", literal=True)  # decimal comma
        return pl.when(text != "").then(text)

    def _optional_columns(self) -> dict[str, pl.Expr]:
        words: list[Word] = ["category", "name", "zone"]
        words += ["session"] if self.published else []
        found = {str(word): self._code(word) for word in words if word in self.meaning}
        if self.published and "part" in self.meaning:
            part = pl.col(self.meaning["part"]).cast(pl.String).str.strip_chars().str.to_lowercase()
            found[record.SOURCE_PART] = part.replace(PART_NAMES)
        elif self.published and self.source.part is not None:
            found[record.SOURCE_PART] = pl.lit(self.source.part)
        return found

    def _without_blank_lines(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Drop lines without any cell, often the last one; the other rows keep their numbers."""
        if not self.source.is_text or not (rows[BROKEN] == CODE["no user"]).any():
            return rows
        cells = pl.all().exclude(record.ROW).is_null()
        lines = self.source.scan(ragged=True).filter(pl.all_horizontal(cells))
        blank = lines.select(record.ROW).collect()
        return rows.join(blank, on=record.ROW, how="anti", maintain_order="left")

    def _with_bad_ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Mark rows whose user or place is blank, a text such as NULL, or has a NUL character."""
        for word in _IDS:
            texts = self.categories[word].to_series()  # few texts, not all rows
            bad = {
                f"no {word}": texts.str.strip_chars().is_in(NO_IDS),
                "NUL in an id": texts.str.contains("\0", literal=True),
            }
            for rule, is_bad in bad.items():
                if is_bad.any():
                    code = pl.lit(CODE[rule], dtype=pl.UInt8)
                    is_marked = pl.col(word).to_physical().is_in(is_bad.arg_true().to_list())
                    is_first = (pl.col(BROKEN) == OK) | (pl.col(BROKEN) > code)
                    broken = pl.when(is_marked & is_first).then(code).otherwise(BROKEN)
                    rows = rows.with_columns(broken.alias(BROKEN))
        return rows
