"""Ids as people export them: blanks around them are trimmed, words for nothing are no ids.

Few texts are looked at, not all rows: an id is a code here, and its text stands once.
"""

from collections.abc import Mapping
from typing import Final

import polars as pl

from castpoi.checkins import record

NO_IDS: Final = ("", "NULL", "null", "NaN", "nan", "None", "<NA>", r"\N")
"""What databases and tables write where there is no id."""

_IDS: Final = {record.USER: "user id", record.PLACE: "place id"}


def missing(texts: pl.Series) -> list[int]:
    """Codes of texts that name nobody and nothing."""
    return texts.str.strip_chars().is_in(NO_IDS).arg_true().to_list()


def with_nul(texts: pl.Series) -> list[int]:
    """Codes of texts with a NUL character, which many programs take for the end of a text."""
    return texts.str.contains("\0", literal=True).arg_true().to_list()


def trimmed(
    rows: pl.DataFrame, texts: Mapping[str, pl.Series]
) -> tuple[pl.DataFrame, dict[str, pl.Series], list[str]]:
    """The same without blanks around ids of users and places, and remarks where there were any.

    Ids that only blanks told apart become one.
    """
    changed: dict[str, int] = {}
    is_changed = pl.repeat(False, rows.height, eager=True)
    now = dict(texts)
    for word in _IDS:
        plain = texts[word].str.strip_chars()
        had_blanks = (plain != texts[word]) & ~plain.is_in(NO_IDS)
        if not had_blanks.any():
            continue
        changed[word] = int(had_blanks.sum())
        is_changed |= had_blanks.gather(rows[word]).fill_null(False)
        rows = rows.with_columns(_first_of_each(plain).gather(rows[word]).alias(word))
        now[word] = plain
    return rows, now, [_remark(changed, int(is_changed.sum()))] if changed else []


def _first_of_each(texts: pl.Series) -> pl.Series:
    """For every code, the first code of the same text."""
    codes = texts.to_frame("text").with_row_index("code")
    return codes.select(pl.col("code").first().over("text")).to_series().cast(pl.UInt32)


def _remark(changed: Mapping[str, int], rows: int) -> str:
    ids = [f"{count:,} {_IDS[word]}{'s' if count > 1 else ''}" for word, count in changed.items()]
    where = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"blanks around {' and '.join(ids)} were trimmed, in {where}"
