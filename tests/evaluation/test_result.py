import math
import stat
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest

from castpoi.core.errors import BrokenFolder, TooFewCheckins
from castpoi.core.files import read_json, write_json
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import RANK_SCHEMA, Result
from tests.cities import CAFE, small_city
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.manifests import accept_changes
from tests.messages import refused


@pytest.fixture
def result() -> Result:
    return evaluate(fixed(5, 4, 3, 2, 1), odd_city(), method="street", seed=3)


def test_every_target_has_one_row_with_what_it_can_be_grouped_by(result: Result) -> None:
    assert result.ranks.schema == RANK_SCHEMA
    assert result.ranks["checkin"].to_list() == [6, 10, 12, 13]
    assert result.ranks["user"].to_list() == [0, 1, 2, 3]
    assert result.ranks["rank"].to_list() == [2, 4, 4, 1]
    assert result.ranks["is_revisit"].to_list() == [True, True, False, False]
    assert result.ranks["history_length"].to_list() == [6, 3, 1, 0]
    # Train holds the office twice, the station once, the cafe three times.
    assert result.ranks["place_count_in_train"].to_list() == [2, 1, 1, 3]


def test_distance_and_gap_are_those_from_the_last_visit_and_null_without_one(
    result: Result,
) -> None:
    # Cafe to office, office to station, park to station, nothing before.
    assert result.ranks["km_from_last_visit"].to_list() == pytest.approx(
        [0.4, 3.6, 2.5, None], abs=0.01
    )
    assert result.ranks["hours_since_last_visit"].to_list() == [1, 17, 24, None]


def test_a_result_comes_back_from_disk_as_it_was(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    loaded = Result.load(tmp_path / "result")
    assert loaded.ranks.equals(result.ranks)
    assert loaded.metrics == result.metrics
    assert (loaded.method, loaded.seed, loaded.part) == ("street", 3, "test")
    assert loaded.fingerprint == odd_city().fingerprint
    assert read_json(tmp_path / "result" / "metrics.json") == {
        **result.summary(),
        "beyond": asdict(result.beyond),
    }


def test_a_city_of_another_size_is_refused() -> None:
    with refused(BrokenFolder):
        evaluate(fixed(1, 2, 3), odd_city(), method="street")


def test_a_part_without_targets_is_refused() -> None:
    city = small_city([(0, CAFE, "2012-04-02 12:00")], ["train"])
    with refused(TooFewCheckins):
        evaluate(fixed(1, 2, 3, 4, 5), city, method="street")


def test_only_the_owner_may_read_the_tables_of_a_result(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "result").glob("*.parquet")]
    assert modes == [0o600] * len(modes)
    assert modes


def test_missing_and_damaged_ranks_have_different_errors(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    ranks = tmp_path / "result" / "ranks.parquet"
    ranks.write_bytes(b"not a table")
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")
    ranks.unlink()
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


def test_ranks_without_a_column_are_damaged(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    result.ranks.drop("rank").write_parquet(tmp_path / "result" / "ranks.parquet")
    accept_changes(tmp_path / "result")
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


BAD_RANKS = {
    "zero": pl.lit(0.0).alias("rank"),
    "below zero": -pl.col("rank"),
    "beyond all places": pl.lit(1e6).alias("rank"),
    "a third": pl.lit(1 / 3 + 1).alias("rank"),
    "not a number": pl.lit(math.nan).alias("rank"),
    "missing": pl.lit(None, pl.Float64).alias("rank"),
    "one check-in": pl.lit(3).alias("checkin"),
}


@pytest.mark.parametrize("change", BAD_RANKS.values(), ids=BAD_RANKS.keys())
def test_a_table_with_an_impossible_rank_is_refused(
    result: Result, tmp_path: Path, change: pl.Expr
) -> None:
    result.save(tmp_path / "result")
    result.ranks.with_columns(change).write_parquet(tmp_path / "result" / "ranks.parquet")
    accept_changes(tmp_path / "result")
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


def test_ranks_without_a_target_are_refused(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    result.ranks.head(0).write_parquet(tmp_path / "result" / "ranks.parquet")
    accept_changes(tmp_path / "result")
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


def test_a_changed_manifest_is_refused(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    manifest = tmp_path / "result" / "manifest.json"
    write_json(manifest, {**read_json(manifest), "seed": 4})
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


def test_an_incomplete_manifest_is_refused(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    write_json(tmp_path / "result" / "manifest.json", {"kind": "result", "method": "street"})
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")
