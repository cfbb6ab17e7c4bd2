"""What happens to rows that break a rule: stop at the first, or leave them out and say so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading.read import BROKEN, RawCheckins
from castpoi.checkins.reading.rules import OK, RULES
from castpoi.checkins.reading.source import Source
from castpoi.checkins.reading.words import Word
from castpoi.core.errors import BadRows


def refuse_bad_rows(raw: RawCheckins, limit_km: float) -> None:
    """Raise BadRows for the first row that breaks a rule, with the count of all."""
    bad = raw.rows.filter(pl.col(BROKEN) != OK)
    if bad.is_empty():
        return
    first = bad.sort(record.SOURCE, record.ROW).row(0, named=True)
    source = raw.sources[first[record.SOURCE]]
    rule = RULES[first[BROKEN] - 1]
    cells = _cells(source, first[record.ROW], raw.meanings[first[record.SOURCE]])
    sentence = rule.sentence.format(**cells, limit=f"{limit_km:g}")
    counts = ", ".join(f"{count} {key}" for key, count in count_by_rule(raw).items())
    raise BadRows(
        f"{source.path}, {source.place_of_row(first[record.ROW])}: {sentence}; {rule.way_out}, or "
        f"leave such rows out with --on-bad-rows drop (in all: {counts})"
    )


def count_by_rule(raw: RawCheckins) -> dict[str, int]:
    """Rule -> number of rows that break it, in the order of the rules."""
    counts = raw.rows.filter(pl.col(BROKEN) != OK)[BROKEN].value_counts().sort(BROKEN)
    return {RULES[code - 1].key: count for code, count in counts.iter_rows()}


def write_bad_rows(raw: RawCheckins, path: Path) -> None:
    """Write the rows that break a rule, as they stand in their files, with file, row and rule.

    They have user ids, so only the owner of the file may read it.
    """
    bad = raw.rows.filter(pl.col(BROKEN) != OK).select(record.SOURCE, record.ROW, BROKEN)
    tables = []
    for (number,), rows in bad.sort(record.SOURCE, record.ROW).group_by(
        record.SOURCE, maintain_order=True
    ):
        source = raw.sources[int(str(number))]
        cells = source.scan(ragged=True).filter(
            pl.col(record.ROW).is_in(rows[record.ROW].implode())
        )
        texts = cells.collect().sort(record.ROW)
        named = pl.DataFrame(
            {
                "file": [source.path.name] * rows.height,
                "row": rows[record.ROW] + 1,
                "reason": [RULES[code - 1].key for code in rows[BROKEN]],
            }
        )
        tables.append(named.hstack(texts.drop(record.ROW).rename(lambda name: f"cell {name}")))
    path.touch(mode=0o600)
    pl.concat(tables, how="diagonal_relaxed").write_csv(path)


def _cells(source: Source, row: int, meaning: Mapping[Word, str]) -> dict[str, Any]:
    """The cells of one row by the word they mean, as they stand in the file."""
    found = source.scan(ragged=True).filter(pl.col(record.ROW) == row).collect()
    texts = found.row(0, named=True) if found.height else {}
    words: tuple[Word, ...] = ("place", "lat", "lon", "time")
    return {word: texts.get(meaning[word], "") for word in words}
