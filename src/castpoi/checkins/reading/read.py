"""Sources in, one table of raw check-ins out: ids as codes, times as clocks, broken rules marked.

Nothing is judged here beyond single rows; `prepare` decides whether a broken rule is fatal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading import ids, sthgcn, times
from castpoi.checkins.reading.layout import NaiveTimes, naive_times_by_column
from castpoi.checkins.reading.rules import BROKEN, CODE, OK, broken_rule
from castpoi.checkins.reading.source import Source, explained
from castpoi.checkins.reading.words import Word, recognise, rivals
from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE, Progress

CLOCK: Final = "clock"
IS_NAIVE: Final = "is_naive"
_SAMPLE_ROWS: Final = 1000
_CODED: Final[tuple[Word, ...]] = ("user", "place", "category", "name", "zone", "session")


@dataclass(frozen=True, kw_only=True)
class RawCheckins:
    """Rows as they were read: columns user, place, lat, lon, clock, is_naive, broken_rule, row,
    source, and offset, category, name, zone, session, source_part where the source has them."""

    rows: pl.DataFrame
    texts: Mapping[str, pl.Series]
    """Word -> the texts its codes stand for."""
    sources: tuple[Source, ...]
    meanings: tuple[Mapping[Word, str], ...]
    """Of every source, which column means what."""
    naive_times: str
    """What naive clocks mean here: utc, local, or a mixture over the sources."""
    padding_rows: int
    """Rows of padding that the STHGCN files of TKY and CA carry."""
    remarks: tuple[str, ...]
    """What the reader had to decide, in a sentence each."""


def good_rows(raw: RawCheckins) -> pl.DataFrame:
    """The rows that break no rule; a copy only where there are others."""
    if raw.rows[BROKEN].max() == OK:
        return raw.rows
    return raw.rows.filter(pl.col(BROKEN) == OK)


@dataclass(frozen=True, kw_only=True)
class _Dictionary:
    """The texts of every word that is coded, shared by all sources; each text has one code."""

    categories: Mapping[Word, pl.Categories]

    def code(self, word: Word, column: str) -> pl.Expr:
        """The code of each text."""
        return pl.col(column).cast(pl.String).cast(pl.Categorical(self.categories[word]))

    def texts(self) -> dict[str, pl.Series]:
        """The texts of every word, in the order of their codes."""
        return {word: self.known(word) for word in self.categories}

    def known(self, word: Word) -> pl.Series:
        """The texts of one word so far, in the order of their codes."""
        return self.categories[word].to_series()


def read_checkins(
    sources: list[Source],
    *,
    columns: Mapping[str, str],
    naive_times: NaiveTimes | None,
    published: bool,
    progress: Progress = SILENCE,
) -> RawCheckins:
    """Read all sources; `published` keeps the published split and sessions of the rows."""
    dictionary = _Dictionary(categories={word: pl.Categories.random(word) for word in _CODED})
    meanings = [_meaning(source, columns) for source in sources]
    read: list[tuple[pl.DataFrame, int, str]] = []
    with progress.task("reading", total=len(sources)) as task:
        for number, source in enumerate(sources):
            reading = _Reading(
                source=source,
                number=number,
                meaning=meanings[number],
                dictionary=dictionary,
                published=published,
            )
            read.append(reading.rows(naive_times))
            task.advance()
    tables, padding, meant = zip(*read, strict=True)
    rows = pl.concat(tables, how="diagonal") if len(tables) > 1 else tables[0]
    # Polars forgets the texts of a category once no column holds it: take them first.
    texts = dictionary.texts()
    rows = rows.with_columns(pl.col(pl.Categorical).to_physical())
    rows, texts, on_ids = ids.trimmed(rows, texts)
    return RawCheckins(
        rows=rows,
        texts=texts,
        sources=tuple(sources),
        meanings=tuple(meanings),
        naive_times=meant[0] if len(set(meant)) == 1 else "mixed",
        padding_rows=sum(padding),
        remarks=(*_remarks_on_columns(sources, meanings, columns), *on_ids),
    )


def _remarks_on_columns(
    sources: list[Source], meanings: list[dict[Word, str]], given: Mapping[str, str]
) -> list[str]:
    """Which of several columns that could mean the same is read; published layouts leave none."""
    return [
        f"{source.path.name}: the {word} is read from '{meaning[word]}', not from "
        f"'{others[0]}'; --columns {word}={others[0]} would change that"
        for source, meaning in zip(sources, meanings, strict=True)
        if not source.layout.columns
        for word, others in rivals(source.columns, meaning, given).items()
    ]


def _meaning(source: Source, given: Mapping[str, str]) -> dict[Word, str]:
    fixed = source.layout.columns
    if not fixed:
        return recognise(source.columns, given, where=str(source.path))
    if given:
        raise BadInput(
            f"{source.path} has the {source.layout.name} layout, whose columns are known; leave "
            "out --columns, or read it with --format table"
        )
    missing = [column for column in fixed.values() if column not in source.columns]
    missing = [column for column in missing if column not in ("timezone", "name")]
    if missing:
        raise BadInput(
            f"{source.path}, row 1: the {source.layout.name} layout has a column '{missing[0]}', "
            f"this file has {', '.join(source.columns)}; read it with --format table"
        )
    return {word: column for word, column in fixed.items() if column in source.columns}


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """The reading of one source."""

    source: Source
    number: int
    meaning: Mapping[Word, str]
    dictionary: _Dictionary
    published: bool

    def rows(self, naive_times: NaiveTimes | None) -> tuple[pl.DataFrame, int, str]:
        """(rows, rows of padding skipped, what naive times mean)."""
        with explained(self.source):
            sample = self._sample()
        if sample.is_empty():
            raise BadInput(f"{self.source.path} has a header but no rows; export it again")
        means = naive_times or self._naive_times(sample)
        formats = self._time_formats(sample)
        rows = self._parse(formats, means, lenient=False)
        doubtful = rows[BROKEN].is_in(
            [CODE["unreadable time"], CODE["unreadable coordinates"], CODE["too many columns"]]
        )
        if doubtful.any():
            rows = self._parse(list(times.ALL_FORMATS), means, lenient=True)
        rows = self._without_blank_lines(rows)
        if rows.is_empty():
            raise BadInput(f"{self.source.path} has a header but no rows; export it again")
        rows, padding = self._without_padding(self._with_bad_ids(rows))
        return rows, padding, means

    def _without_blank_lines(self, rows: pl.DataFrame) -> pl.DataFrame:
        """A line without any cell, often the last one, is no row; the others keep their numbers."""
        if self.source.is_parquet or not (rows[BROKEN] == CODE["no user"]).any():
            return rows
        cells = pl.all().exclude(record.ROW).is_null()
        lines = self.source.scan(ragged=True).filter(pl.all_horizontal(cells))
        blank = lines.select(record.ROW).collect()
        return rows.join(blank, on=record.ROW, how="anti", maintain_order="left")

    def _with_bad_ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows whose user or place is blank, a word for nothing, or has a NUL, marked as such."""
        words: tuple[Word, ...] = ("place", "user")
        for word in words:
            texts = self.dictionary.known(word)
            for rule, codes in {
                f"no {word}": ids.missing(texts),
                "NUL in an id": ids.with_nul(texts),
            }.items():
                if codes:
                    is_bad = pl.col(word).to_physical().is_in(codes)
                    rows = rows.with_columns(_marked(is_bad, rule))
        return rows

    def _sample(self) -> pl.DataFrame:
        return self.source.scan(ragged=True).head(_SAMPLE_ROWS).collect()

    def _naive_times(self, sample: pl.DataFrame) -> NaiveTimes:
        if self.source.layout.name == "sthgcn":
            return sthgcn.clock_means(self._sthgcn_city(sample))
        by_layout = self.source.layout.naive_times
        return by_layout or naive_times_by_column(self.meaning["time"]) or "refuse"

    def _sthgcn_city(self, sample: pl.DataFrame) -> str:
        coordinates = sample.select(
            pl.col(self.meaning["lat"]).cast(pl.Float64, strict=False).alias("lat"),
            pl.col(self.meaning["lon"]).cast(pl.Float64, strict=False).alias("lon"),
        )
        return sthgcn.which_city(coordinates, where=str(self.source.path))

    def _time_formats(self, sample: pl.DataFrame) -> list[str]:
        if sample[self.meaning["time"]].dtype != pl.String:
            return [times.EPOCH]
        return times.formats_in(sample[self.meaning["time"]])

    def _parse(self, formats: list[str], means: NaiveTimes, *, lenient: bool) -> pl.DataFrame:
        """All rows; `lenient` forgives blanks around numbers and tries every time format."""
        ragged: set[int] = set()
        try:
            with explained(self.source):
                return self._query(self.source.scan(), formats, means, lenient=lenient).collect()
        except BadInput as problem:
            if "more fields" not in str(problem.__cause__):
                raise
            ragged = self._ragged_rows()
        with explained(self.source):
            rows = self._query(
                self.source.scan(ragged=True), list(times.ALL_FORMATS), means, lenient=True
            ).collect()
        code = pl.lit(CODE["too many columns"], dtype=pl.UInt8)
        is_ragged = pl.col(record.ROW).is_in(sorted(ragged))
        return rows.with_columns(pl.when(is_ragged).then(code).otherwise(BROKEN).alias(BROKEN))

    def _ragged_rows(self) -> set[int]:
        first = 1 if self.source.has_header else 0
        width = len(self.source.columns)
        return {
            number - first
            for number, (_, cells) in enumerate(self.source.lines())
            if len(cells) > width
        }

    def _query(
        self, frame: pl.LazyFrame, formats: list[str], means: NaiveTimes, *, lenient: bool
    ) -> pl.LazyFrame:
        """Every column of a raw check-in as an expression over the source's own columns."""
        frame = self._with_plain_ids(frame)
        schema = frame.collect_schema()
        time = self.meaning["time"]
        dtype = schema[time]
        texts = {word: self._text(word, schema, lenient=lenient) for word in ("lat", "lon")}
        if isinstance(dtype, pl.Datetime):
            clock, is_naive = times.clock_of_dates(time, dtype)
        else:
            text = pl.col(time).cast(pl.String)
            frame = frame.with_columns(text.str.strip_chars() if lenient else text)
            clock, is_naive = times.clock_of(time, formats)
        parsed = {
            record.USER: self.dictionary.code("user", self.meaning["user"]),
            record.PLACE: self.dictionary.code("place", self.meaning["place"]),
            record.LAT: texts["lat"].cast(pl.Float64, strict=False),
            record.LON: texts["lon"].cast(pl.Float64, strict=False),
            CLOCK: clock,
            IS_NAIVE: is_naive,
            **self._optional_columns(),
        }
        has_coordinates = texts["lat"].is_not_null() & texts["lon"].is_not_null()
        return (
            frame.select(
                record.ROW,
                *(expression.alias(name) for name, expression in parsed.items()),
                has_coordinates.alias("has_coordinates"),
                _is_filled(time, dtype).alias("has_time"),
            )
            .with_columns(broken_rule(naive_is_refused=means == "refuse").alias(BROKEN))
            .drop("has_coordinates", "has_time")
            .with_columns(
                pl.lit(self.number, dtype=pl.UInt16).alias(record.SOURCE),
                # a UTC clock is an instant already; only local ones stay naive
                (pl.col(IS_NAIVE) & (means == "local")).alias(IS_NAIVE),
            )
        )

    def _with_plain_ids(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Ids that parquet holds as floats written as the whole numbers they are: 7, not 7.0."""
        schema = frame.collect_schema()
        words: tuple[Word, ...] = ("user", "place")
        for column in (self.meaning[word] for word in words):
            if schema[column].is_nested():
                raise BadInput(
                    f"{self.source.path}: column '{column}' holds {schema[column]}, which is no "
                    "id; name another with --columns"
                )
            if schema[column].is_float():
                whole = pl.col(column).cast(pl.Int64, strict=False)
                text = pl.when(whole == pl.col(column)).then(whole.cast(pl.String))
                frame = frame.with_columns(text.otherwise(pl.col(column).cast(pl.String)))
        return frame

    def _text(self, word: Word, schema: pl.Schema, *, lenient: bool) -> pl.Expr:
        column = pl.col(self.meaning[word])
        if not lenient or schema[self.meaning[word]] != pl.String:
            return column
        text = column.str.strip_chars()
        return pl.when(text != "").then(text)

    def _optional_columns(self) -> dict[str, pl.Expr]:
        found: dict[str, pl.Expr] = {}
        for word in ("category", "name", "zone"):
            if word in self.meaning:
                found[word] = self.dictionary.code(word, self.meaning[word])
        if "offset" in self.meaning:
            number = pl.col(self.meaning["offset"]).cast(pl.Float64, strict=False)
            found["offset"] = number.round().cast(pl.Int16, strict=False)
        if not self.published:
            return found
        if "session" in self.meaning:
            found[record.SESSION] = self.dictionary.code("session", self.meaning["session"])
        if self.source.part is not None:
            found[record.SOURCE_PART] = pl.lit(self.source.part)
        elif "part" in self.meaning:
            part = pl.col(self.meaning["part"]).cast(pl.String).str.to_lowercase()
            found[record.SOURCE_PART] = part.replace(
                {
                    "val": record.VALIDATION,
                    "valid": record.VALIDATION,
                    "validate": record.VALIDATION,
                }
            )
        return found

    def _without_padding(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        if self.source.layout.name != "sthgcn":
            return rows, 0
        padding = sthgcn.padding_id(self._sthgcn_city(self._sample()))
        if padding is None:
            return rows, 0
        texts = self.dictionary.known("place")
        code = texts.index_of(padding)
        if code is None:
            return rows, 0
        place = pl.col(record.PLACE).to_physical()
        kept = rows.filter(place.is_null() | (place != code))
        return kept, rows.height - kept.height


def _marked(is_bad: pl.Expr, rule: str) -> pl.Expr:
    """The broken rule of every row, with this one where it applies and none before it does."""
    code = pl.lit(CODE[rule], dtype=pl.UInt8)
    is_first = (pl.col(BROKEN) == OK) | (pl.col(BROKEN) > code)
    return pl.when(is_bad & is_first).then(code).otherwise(BROKEN).alias(BROKEN)


def _is_filled(column: str, dtype: pl.DataType) -> pl.Expr:
    filled = pl.col(column).is_not_null()
    return filled & (pl.col(column) != "") if dtype == pl.String else filled
