"""Source files to one table of raw check-ins: ids as codes, times as clocks, broken rules marked.

Only single rows are checked here; `rules.check_rows` decides whether a broken rule is an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading import times
from castpoi.checkins.reading.layouts import (
    OPTIONAL_COLUMNS,
    Conventions,
    NaiveTimes,
    Word,
    naive_times_by_column,
    recognise,
    unused_columns,
)
from castpoi.checkins.reading.rules import BROKEN, CODE, OK, broken_rule
from castpoi.checkins.reading.source import Source, explained
from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE, Progress

CLOCK: Final = "clock"
IS_NAIVE: Final = "is_naive"
NO_IDS: Final = ("", "NULL", "null", "NaN", "nan", "None", "<NA>", r"\N")
"""What databases and tables write where there is no id."""

_SAMPLE_ROWS: Final = 1000
_CODED: Final[tuple[Word, ...]] = ("user", "place", "category", "name", "zone", "session")
_IDS: Final[Mapping[Word, str]] = {"user": "user id", "place": "place id"}
_POINT: Final[tuple[Word, ...]] = ("lat", "lon")
_SHORT_PARTS: Final = dict.fromkeys(("val", "valid", "validate"), record.VALIDATION)
Meaning = Mapping[Word, str]
"""Word -> the column of a source that has it."""
Texts = Mapping[str, pl.Series]
"""Word -> the texts of its codes. A code is the row number of its text."""


@dataclass(frozen=True, kw_only=True)
class RawCheckins:
    """Rows as they were read: columns user, place, lat, lon, clock, is_naive, broken_rule, row,
    source; and offset, category, name, zone, session, source_part if the source has them."""

    rows: pl.DataFrame
    texts: Texts
    sources: tuple[Source, ...]
    meanings: tuple[Meaning, ...]
    """One for each source."""
    naive_times: str
    """Meaning of naive clocks: utc, local or refuse; mixed if the sources differ."""
    padding_rows: int
    """Number of padding rows, which have been removed."""
    remarks: tuple[str, ...]
    """Decisions of the reader, one sentence each."""


def good_rows(raw: RawCheckins) -> pl.DataFrame:
    """The rows that break no rule; copied only if there are others."""
    if raw.rows[BROKEN].max() == OK:
        return raw.rows
    return raw.rows.filter(pl.col(BROKEN) == OK)


def read_checkins(
    sources: list[Source],
    *,
    columns: Mapping[str, str],
    naive_times: NaiveTimes | None,
    published: bool,
    progress: Progress = SILENCE,
) -> RawCheckins:
    """Read all sources; `published` keeps the published split and sessions of the rows."""
    categories = {word: pl.Categories.random(word) for word in _CODED}
    meanings = [_meaning(source, columns) for source in sources]
    read: list[tuple[pl.DataFrame, int, str]] = []
    with progress.task("reading", total=len(sources)) as task:
        for number, (source, meaning) in enumerate(zip(sources, meanings, strict=True)):
            reader = _Reader(source, number, meaning, categories, published)
            read.append(reader.read(naive_times))
            task.advance()
    tables, padding, meant = zip(*read, strict=True)
    rows = pl.concat(tables, how="diagonal") if len(tables) > 1 else tables[0]
    # Polars drops the texts of a category when no column has it: take them first.
    texts = {str(word): each.to_series() for word, each in categories.items()}
    rows = rows.with_columns(pl.col(pl.Categorical).to_physical())
    rows, texts, on_ids = _with_trimmed_ids(rows, texts)
    return RawCheckins(
        rows=rows,
        texts=texts,
        sources=tuple(sources),
        meanings=tuple(meanings),
        naive_times=meant[0] if len(set(meant)) == 1 else "mixed",
        padding_rows=sum(padding),
        remarks=(*_remarks_on_columns(sources, meanings, columns), *on_ids),
    )


def _meaning(source: Source, given: Mapping[str, str]) -> Meaning:
    fixed = source.layout.columns
    if not fixed:
        return recognise(source.columns, given, where=str(source.path))
    if given:
        raise BadInput(
            f"{source.path} has the {source.layout.name} layout, whose columns are fixed; leave "
            "out --columns, or read it with --format table"
        )
    found = {word: column for word, column in fixed.items() if column in source.columns}
    missing = set(fixed.values()) - set(found.values()) - set(OPTIONAL_COLUMNS)
    if missing:
        first = next(column for column in fixed.values() if column in missing)
        raise BadInput(
            f"{source.path}, row 1: the {source.layout.name} layout has a column '{first}', "
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
        for word, other in unused_columns(source.columns, meaning, given).items()
    ]


def _with_trimmed_ids(
    rows: pl.DataFrame, texts: Texts
) -> tuple[pl.DataFrame, dict[str, pl.Series], list[str]]:
    """The same without blanks around ids, and a remark if there were any.

    Ids that differ only in blanks become one.
    """
    counts: dict[Word, int] = {}
    is_changed = pl.repeat(False, rows.height, eager=True)
    trimmed = dict(texts)
    for word in _IDS:
        plain = texts[word].str.strip_chars()
        had_blanks = (plain != texts[word]) & ~plain.is_in(NO_IDS)
        if had_blanks.any():
            counts[word] = int(had_blanks.sum())
            is_changed |= had_blanks.gather(rows[word]).fill_null(False)
            rows = rows.with_columns(_first_of_each(plain).gather(rows[word]).alias(word))
            trimmed[word] = plain
    return rows, trimmed, [_remark_on_blanks(counts, int(is_changed.sum()))] if counts else []


def _first_of_each(texts: pl.Series) -> pl.Series:
    """For every code, the first code of the same text."""
    codes = texts.to_frame("text").with_row_index("code")
    return codes.select(pl.col("code").first().over("text")).to_series().cast(pl.UInt32)


def _remark_on_blanks(counts: Mapping[Word, int], rows: int) -> str:
    ids = [f"{count:,} {_IDS[word]}{'s' * (count > 1)}" for word, count in counts.items()]
    return f"blanks around {' and '.join(ids)} were trimmed, in {rows:,} row{'s' * (rows != 1)}"


@dataclass(frozen=True)
class _Reader:
    """Reads the rows of one source."""

    source: Source
    number: int
    meaning: Meaning
    categories: Mapping[Word, pl.Categories]
    """Word -> its texts by code, shared by all sources."""
    published: bool

    def read(self, naive_times: NaiveTimes | None) -> tuple[pl.DataFrame, int, str]:
        """(rows, number of padding rows removed, meaning of naive times)."""
        with explained(self.source):
            sample = self.source.scan(ragged=True).head(_SAMPLE_ROWS).collect()
        if not sample.is_empty():
            conventions = self._conventions(sample)
            by_column = naive_times_by_column(self.meaning["time"])
            means = naive_times or conventions.naive_times or by_column or "refuse"
            rows = self._without_blank_lines(self._parsed(self._time_formats(sample), means))
            if not rows.is_empty():
                rows = self._with_bad_ids(rows)
                kept = self._without_padding(rows, conventions.padding_place)
                return kept, rows.height - kept.height, means
        raise BadInput(f"{self.source.path} has a header but no rows; export it again")

    def _conventions(self, sample: pl.DataFrame) -> Conventions:
        layout = self.source.layout
        if layout.conventions_of is None:
            return Conventions(layout.naive_times)
        coordinates = sample.select(
            pl.col(self.meaning[word]).cast(pl.Float64, strict=False).alias(word)
            for word in ("lat", "lon")
        )
        return layout.conventions_of(coordinates, str(self.source.path))

    def _time_formats(self, sample: pl.DataFrame) -> list[str]:
        time = sample[self.meaning["time"]]
        return times.formats_in(time) if time.dtype == pl.String else [times.EPOCH]

    def _parsed(self, formats: list[str], means: NaiveTimes) -> pl.DataFrame:
        """All rows, in one scan; if one cannot be read, all again in every way that is known."""
        try:
            rows = self._collected(self.source.scan(), means, formats)
        except BadInput as problem:
            if "more fields" not in str(problem.__cause__):
                raise
            return self._with_ragged_rows(means)
        if rows[BROKEN].is_in([CODE["unreadable time"], CODE["unreadable coordinates"]]).any():
            return self._collected(self.source.scan(), means)
        return rows

    def _with_ragged_rows(self, means: NaiveTimes) -> pl.DataFrame:
        """All rows; those with more cells than the header are marked."""
        first = 1 if self.source.has_header else 0
        lines = enumerate(self.source.lines(), start=-first)
        ragged = [row for row, (_, cells) in lines if len(cells) > len(self.source.columns)]
        rows = self._collected(self.source.scan(ragged=True), means)
        code = pl.lit(CODE["too many columns"], dtype=pl.UInt8)
        is_ragged = pl.col(record.ROW).is_in(ragged)
        return rows.with_columns(pl.when(is_ragged).then(code).otherwise(BROKEN).alias(BROKEN))

    def _collected(
        self, frame: pl.LazyFrame, means: NaiveTimes, formats: list[str] | None = None
    ) -> pl.DataFrame:
        """Every column of a raw check-in, computed from the columns of the source.

        Without `formats`, times may have any format and cells may have blanks around them.
        """
        # A UTC clock is an instant already; only a local one remains naive.
        is_naive = pl.col(IS_NAIVE) & (means == "local")
        with explained(self.source):
            frame = self._with_plain_ids(frame)
            return (
                self._selected(frame, frame.collect_schema(), formats)
                .with_columns(broken_rule(naive_is_refused=means == "refuse").alias(BROKEN))
                .drop("has_coordinates", "has_time")
                .with_columns(
                    pl.lit(self.number, dtype=pl.UInt16).alias(record.SOURCE),
                    is_naive.alias(IS_NAIVE),
                )
                .collect()
            )

    def _selected(
        self, frame: pl.LazyFrame, schema: pl.Schema, formats: list[str] | None
    ) -> pl.LazyFrame:
        time = self.meaning["time"]
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
            self._code("user").alias(record.USER),
            self._code("place").alias(record.PLACE),
            lat.cast(pl.Float64, strict=False).alias(record.LAT),
            lon.cast(pl.Float64, strict=False).alias(record.LON),
            clock.alias(CLOCK),
            is_naive.alias(IS_NAIVE),
            *(column.alias(name) for name, column in self._optional_columns().items()),
            (lat.is_not_null() & lon.is_not_null()).alias("has_coordinates"),
            (has_time & (pl.col(time) != "") if dtype == pl.String else has_time).alias("has_time"),
        )

    def _code(self, word: Word) -> pl.Expr:
        """The code of each text of a column."""
        text = pl.col(self.meaning[word]).cast(pl.String)
        return text.cast(pl.Categorical(self.categories[word]))

    def _with_plain_ids(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Ids that parquet stores as floats become whole numbers if they are: 7, not 7.0."""
        schema = frame.collect_schema()
        for column in (self.meaning[word] for word in _IDS):
            if schema[column].is_nested():
                raise BadInput(
                    f"{self.source.path}: column '{column}' has values of type {schema[column]}, "
                    "which are no ids; choose another column with --columns"
                )
            if schema[column].is_float():
                whole = pl.col(column).cast(pl.Int64, strict=False)
                text = pl.when(whole == pl.col(column)).then(whole.cast(pl.String))
                frame = frame.with_columns(text.otherwise(pl.col(column).cast(pl.String)))
        return frame

    def _number(self, word: Word, schema: pl.Schema, *, lenient: bool) -> pl.Expr:
        column = pl.col(self.meaning[word])
        if not lenient or schema[self.meaning[word]] != pl.String:
            return column
        text = column.str.strip_chars()
        return pl.when(text != "").then(text)

    def _optional_columns(self) -> dict[str, pl.Expr]:
        words: list[Word] = ["category", "name", "zone"]
        words += ["session"] if self.published else []
        found = {str(word): self._code(word) for word in words if word in self.meaning}
        if "offset" in self.meaning:
            number = pl.col(self.meaning["offset"]).cast(pl.Float64, strict=False)
            found["offset"] = number.round().cast(pl.Int16, strict=False)
        if self.published and self.source.part is not None:
            found[record.SOURCE_PART] = pl.lit(self.source.part)
        elif self.published and "part" in self.meaning:
            part = pl.col(self.meaning["part"]).cast(pl.String).str.to_lowercase()
            found[record.SOURCE_PART] = part.replace(_SHORT_PARTS)
        return found

    def _without_blank_lines(self, rows: pl.DataFrame) -> pl.DataFrame:
        """A line without any cell, often the last one, is no row; the others keep their numbers."""
        if self.source.is_parquet or not (rows[BROKEN] == CODE["no user"]).any():
            return rows
        cells = pl.all().exclude(record.ROW).is_null()
        lines = self.source.scan(ragged=True).filter(pl.all_horizontal(cells))
        blank = lines.select(record.ROW).collect()
        return rows.join(blank, on=record.ROW, how="anti", maintain_order="left")

    def _with_bad_ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Mark rows whose user or place is blank, a word for nothing, or has a NUL."""
        words: tuple[Word, ...] = ("place", "user")
        for word in words:
            texts = self.categories[word].to_series()  # few texts, not all rows
            bad = {
                f"no {word}": texts.str.strip_chars().is_in(NO_IDS),
                "NUL in an id": texts.str.contains("\0", literal=True),
            }
            for rule, is_bad in bad.items():
                if is_bad.any():
                    codes = is_bad.arg_true().to_list()
                    rows = rows.with_columns(_marked(pl.col(word).to_physical().is_in(codes), rule))
        return rows

    def _without_padding(self, rows: pl.DataFrame, padding_place: str | None) -> pl.DataFrame:
        code = padding_place and self.categories["place"].to_series().index_of(padding_place)
        if code is None:
            return rows
        place = pl.col(record.PLACE).to_physical()
        return rows.filter(place.is_null() | (place != code))


def _marked(is_bad: pl.Expr, rule: str) -> pl.Expr:
    """The broken rule of every row: this one if it applies and no earlier one does."""
    code = pl.lit(CODE[rule], dtype=pl.UInt8)
    is_first = (pl.col(BROKEN) == OK) | (pl.col(BROKEN) > code)
    return pl.when(is_bad & is_first).then(code).otherwise(BROKEN).alias(BROKEN)
