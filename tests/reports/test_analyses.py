"""Tables of strata, of pools, and of results beyond accuracy."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.reports.analyses import (
    LearnedBias,
    beyond_table,
    biases_of,
    order_table,
    pairs,
    pool_of,
    pool_table,
    strata_of,
    strata_table,
)
from castpoi.reports.evidence import CityEvidence, Evidence, RowResult, read_evidence
from castpoi.reports.metrics import metric_table
from castpoi.reports.significance import judge_all
from castpoi.reports.table import Cell, Table
from tests.reports.result_folders import PLACES, result_of


def line(table: Table, first: str, at: int = 0) -> dict[str, Cell]:
    rows = [row for group in table.groups for row in group]
    (found,) = [row for row in rows if row[at].text == first]
    return dict(zip(table.columns, found, strict=True))


def pools(evidence: Evidence) -> Table:
    curve = pool_of(evidence, evidence.cities[0])
    assert curve is not None
    return pool_table(evidence, evidence.cities[0], curve)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Of 100 targets ours finds the even ones (revisits), the heuristic the first quarter."""
    town = tmp_path_factory.mktemp("two") / "town"
    ours = [1.0 if number % 2 == 0 else 300.0 for number in range(100)]
    theirs = [5.0 if number < 25 else 101.0 for number in range(100)]
    result_of(ours, method="castpoi", seed=1).save(town / "ours")
    result_of(theirs, method="revisit").save(town / "revisit")
    return read_evidence(town)


@pytest.fixture
def city(two: Evidence) -> CityEvidence:
    return two.cities[0]


def test_strata_show_where_a_method_is_good_and_from_how_many_targets(
    two: Evidence, city: CityEvidence
) -> None:
    table = strata_table(two, city, strata_of(two, city))
    revisit, new = line(table, "revisit", 1), line(table, "new", 1)
    assert (revisit["n"].text, revisit["CaST-POI"].text) == ("50", "100.0")
    assert new["CaST-POI"].text == "0.0"
    assert revisit["Revisit heuristic"].text == "26.0"  # targets 0, 2, ... 24 of fifty
    assert revisit["CaST-POI"].is_faint  # fifty targets are too few
    assert not revisit["CaST-POI"].is_best
    assert line(table, "≥ 200", 1)["Targets by"].text == "Visits before"


def test_pools_end_with_all_places(two: Evidence) -> None:
    table = pools(two)
    assert table.columns == ["Method", "100", "200", "all"]
    assert line(table, "CaST-POI")["all"].text == "50.0"
    assert line(table, "Revisit heuristic")["all"].text == "25.0"
    assert line(table, "CaST-POI")["all"].is_best
    assert table.footnotes == []
    assert two.cities[0].count_of("places") == PLACES


def test_pairs_that_a_small_pool_reverses_are_named(tmp_path: Path) -> None:
    # Ours is either right or hopeless, the heuristic always close: a pool of 100 prefers it.
    ours = [1.0] * 40 + [400.0] * 60
    result_of(ours, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    for method in ("revisit", "markov"):
        result_of([12.0] * 100, method=method).save(tmp_path / "t" / method)
    (note,) = pools(read_evidence(tmp_path / "t")).footnotes
    assert note.endswith("not in a pool of 100: CaST-POI over Markov, Revisit heuristic.")


def test_calibration_is_that_of_learned_methods_only(two: Evidence, city: CityEvidence) -> None:
    table = beyond_table(two, city)
    assert table is not None
    ours, theirs = line(table, "CaST-POI"), line(table, "Revisit heuristic")
    assert (ours["Mean softmax %"].text, ours["Right first %"].text) == ("30.0", "50.0")
    assert ours["ECE %"].text == "20.0"
    assert [theirs[name].text for name in ("Mean softmax %", "Right first %", "ECE %")] == ["–"] * 3
    assert (ours["Median km off"].text, theirs["Median km off"].text) == ("1.00", "2.00")
    assert ours["Popularity of first"].text == "4.0"
    assert "Popularity of the places visited: 2.0." in table.text


EDGES_KM = [0.5, 2.0, 5.0, 20.0, 100.0]


def result_in(folder: Path, **more: Any) -> RowResult:
    result_of([1.0], method="castpoi", seed=1, **more).save(folder / "town" / "ours")
    return read_evidence(folder / "town").results[0]


def test_learned_biases_are_read_from_the_manifest(tmp_path: Path) -> None:
    values = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    learned = {"spatial": {"edges": EDGES_KM, "values": values}}
    biases = biases_of(result_in(tmp_path, learned=learned))
    assert list(biases) == ["spatial"]  # a model without the other bias has none
    assert biases["spatial"].values == values
    assert biases["spatial"].edges == EDGES_KM
    assert biases_of(result_in(tmp_path / "other", run="/gone")) == {}


def test_buckets_are_named_in_a_suitable_unit() -> None:
    spatial = LearnedBias(kind="spatial", edges=(0.5, 2, 100), values=(0,) * 4, is_sloped=False)
    assert spatial.buckets == ["< 0.5 km", "0.5–2 km", "2–100 km", "≥ 100 km"]
    edges = (1, 24, 168, 720)
    temporal = LearnedBias(kind="temporal", edges=edges, values=(0,) * 5, is_sloped=False)
    assert temporal.buckets == ["< 1 h", "1–24 h", "1–7 d", "7–30 d", "≥ 30 d"]


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
