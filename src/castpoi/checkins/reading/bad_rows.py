"""What happens to rows that break a rule: stop at the first, or leave them out and say so."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading.read import RawCheckins
from castpoi.checkins.reading.rules import BROKEN, OK, RULES
from castpoi.checkins.reading.source import Source
from castpoi.checkins.reading.words import Word
from castpoi.core.errors import BadRows


def check_rows(raw: RawCheckins, *, drop: bool, limit_km: float) -> None:
    """Raise BadRows at the first row that breaks a rule; with `drop`, only if all rows do."""
    bad = raw.rows.filter(pl.col(BROKEN) != OK)
    if bad.is_empty() or (drop and bad.height < raw.rows.height):
        return
    counts = ", ".join(f"{count:,} {key}" for key, count in count_by_rule(raw).items())
    if drop:
        raise BadRows(
            f"{raw.sources[0].path}: every row breaks a rule ({counts}); use --on-bad-rows fail to "
            "see what is wrong with the first one"
        )
    first = bad.sort(record.SOURCE, record.ROW).row(0, named=True)
    source = raw.sources[first[record.SOURCE]]
    rule = RULES[first[BROKEN] - 1]
    cells = _cells(source, first[record.ROW], raw.meanings[first[record.SOURCE]])
    sentence = rule.sentence.format(**cells, limit=f"{limit_km:g}")
    skip = "" if bad.height == raw.rows.height else ", or skip such rows with --on-bad-rows drop"
    raise BadRows(
        f"{source.path}, {source.place_of_row(first[record.ROW])}: {sentence}; {rule.fix}{skip} "
        f"(of {raw.rows.height:,} rows: {counts})"
    )


def count_by_rule(raw: RawCheckins) -> dict[str, int]:
    """Rule -> number of rows that break it, in the order of the rules."""
    counts = raw.rows.filter(pl.col(BROKEN) != OK)[BROKEN].value_counts().sort(BROKEN)
    return {RULES[code - 1].key: count for code, count in counts.iter_rows()}


def bad_rows_of(raw: RawCheckins) -> pl.DataFrame | None:
    """The rows that break a rule, as they are in their files, with file, row and rule."""
    bad = raw.rows.filter(pl.col(BROKEN) != OK).select(record.SOURCE, record.ROW, BROKEN)
    tables = [
        _with_cells(raw.sources[int(str(number))], rows)
        for (number,), rows in bad.sort(record.SOURCE, record.ROW).group_by(
            record.SOURCE, maintain_order=True
        )
    ]
    return pl.concat(tables, how="diagonal_relaxed") if tables else None


def _with_cells(source: Source, rows: pl.DataFrame) -> pl.DataFrame:
    """The file, row number, rule and cells of the bad rows of one source."""
    is_bad = pl.col(record.ROW).is_in(rows[record.ROW].implode())
    cells = source.scan(ragged=True).filter(is_bad).collect().sort(record.ROW)
    named = pl.DataFrame(
        {
            "file": [source.path.name] * rows.height,
            "row": rows[record.ROW] + 1,
            "reason": [RULES[code - 1].key for code in rows[BROKEN]],
        }
    )
    return named.hstack(cells.drop(record.ROW).rename(lambda name: f"cell {name}"))


def _cells(source: Source, row: int, meaning: Mapping[Word, str]) -> dict[str, Any]:
    """The cells of one row by the word they mean, as they stand in the file."""
    found = source.scan(ragged=True).filter(pl.col(record.ROW) == row).collect()
    texts = found.row(0, named=True) if found.height else {}
    words: tuple[Word, ...] = ("place", "lat", "lon", "time")
    return {word: texts.get(meaning[word], "") for word in words}
