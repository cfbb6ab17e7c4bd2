"""Time splits next to other splits of the same city."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.reports.analyses import order_table, pairs
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.metrics import metric_table
from castpoi.reports.significance import judge_all
from tests.reports.result_folders import result_of

BY_TIME: Final[dict[str, Any]] = {"fingerprint": "t" * 64, "split": "chronological"}


def write_both(root: Path) -> Evidence:
    """Ours is best by leave one out; by time SASRec is, but not on the last visits of users."""
    users = pl.Series(record.USER, [0] * 4 + [1] * 4, dtype=pl.UInt32)
    ranks = {
        "castpoi": ([1.0] * 8, [9.0, 9, 9, 4, 9, 9, 9, 4]),
        "sasrec": ([2.0] * 8, [1.0, 1, 1, 5, 1, 1, 1, 5]),
        "revisit": ([3.0] * 8, [9.0] * 8),
    }
    for method, (alone, by_time) in ranks.items():
        result_of(alone, method=method, seed=1).save(root / "town" / method)
        made = result_of(by_time, method=method, seed=1, **BY_TIME)
        made = replace(made, ranks=made.ranks.with_columns(users))
        made.save(root / "time" / "town" / method)
    return read_evidence(root)


@pytest.fixture
def both(tmp_path: Path) -> Evidence:
    return write_both(tmp_path)


def test_a_time_split_has_a_table_and_families_of_its_own(both: Evidence) -> None:
    assert {city.name for city in both.cities} == {"town", "town (time split)"}
    (main,), (by_time,) = both.tables, both.time_tables
    verdicts = judge_all(both, draws=9)
    assert {(each.table, each.city, each.verdict.family_size) for each in verdicts.all} == {
        ("main", "town", 5),
        ("time-main", "town (time split)", 5),
    }
    shown = {
        table.name: [group.heading for group in metric_table(table, both, verdicts).groups]
        for table in (main, by_time)
    }
    assert shown == {"main": ["town"], "time-main": ["town (time split)"]}
    assert by_time.title == "Global time split"


def test_the_order_of_methods_is_compared_with_that_of_leave_one_out(both: Evidence) -> None:
    ((city, other),) = pairs(both)
    table = order_table(both, city, other)
    assert table is not None
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in table.groups[0].rows}
    assert cells["CaST-POI"][0] == "1. (100.00)"
    assert [places[1][:2] for places in cells.values()] == ["1.", "2.", "3."]
    assert cells["SASRec"][1].startswith("1. ")
    # the last visit of both users has rank 4
    assert cells["CaST-POI"][2] == "1. (25.00)"
    assert cells["SASRec"][2] == "2. (20.00)"
    assert "Time, all visits 0.33; Time, last visits 1.00" in table.text


def test_time_splits_alone_need_no_table_of_their_own(tmp_path: Path) -> None:
    for method in ("castpoi", "revisit"):
        result_of([1.0, 2.0], method=method, **BY_TIME).save(tmp_path / "town" / method)
    evidence = read_evidence(tmp_path)
    assert [table.name for table in evidence.tables] == ["main"]
    assert evidence.time_tables == ()
    assert list(pairs(evidence)) == []
