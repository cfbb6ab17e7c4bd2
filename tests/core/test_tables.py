"""Tables of castpoi's folders: damage of any kind is one sentence."""

from pathlib import Path

import polars as pl
import pytest
from polars.exceptions import PanicException

from castpoi.core.errors import BrokenFolder
from castpoi.core.tables import read_table


def test_a_panic_of_the_parquet_reader_is_a_damaged_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(*_: object, **__: object) -> None:
        raise PanicException("called `Result::unwrap()` on an `Err` value\nand more lines")

    monkeypatch.setattr(pl, "read_parquet", panic)
    words = r"t.parquet is damaged \(called `Result::unwrap\(\)` on an `Err` value\); make again$"
    with pytest.raises(BrokenFolder, match=words):
        read_table(tmp_path / "t.parquet", pl.Schema({"a": pl.Int64}), how_to_fix="make again")
