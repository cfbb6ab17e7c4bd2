import math
import stat
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.trajectory import Trajectories
from castpoi.core.errors import BrokenFolder, TooFewCheckins
from castpoi.core.files import read_json, write_json
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import MAX_LENGTH, RANK_SCHEMA, Result, overlap_with_train
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


TRAIN, TEST = record.PARTS.index(record.TRAIN), record.PARTS.index(record.TEST)


def trajectories_of(people: Sequence[Sequence[int]], tests: int) -> Trajectories:
    """Places of each person in order; the last `tests` of everybody are in test."""
    place = np.concatenate([np.array(each) for each in people])
    ends: list[int] = []
    for each in people:
        ends += [TRAIN] * (len(each) - tests) + [TEST] * tests
    user = np.repeat(np.arange(len(people)), [len(each) for each in people])
    rows = np.arange(len(place))
    return Trajectories(
        checkin=rows, user=user, place=place, at_us=rows, offset_minutes=0 * rows,
        part=np.array(ends, dtype=np.uint8),
    )  # fmt: skip


def overlaps(people: Sequence[Sequence[int]], tests: int = 1) -> list[int]:
    made = trajectories_of(people, tests)
    found = overlap_with_train(made, np.flatnonzero(made.part == TEST))
    return [int(each) for each in found]


def test_overlaps_worked_by_hand() -> None:
    assert overlaps([[1, 2, 3, 9], [5, 6, 2]]) == [0, 1]  # nobody was at 9; the place 2 only
    assert overlaps([[1, 2, 3, 4, 5], [7, 2, 3]]) == [0, 2]  # the move from 2 to 3
    assert overlaps([[1, 2, 3, 4, 5], [1, 2, 3]]) == [0, 3]
    assert overlaps([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5]]) == [0, MAX_LENGTH]


def test_a_sequence_does_not_reach_from_one_person_to_the_next() -> None:
    # 2 ends the first person's train visits and 3 begins the second's: nobody moved from 2 to 3.
    assert overlaps([[1, 2, 8], [3, 4, 2, 3]])[1] == 1


def test_a_move_that_only_test_has_is_no_overlap() -> None:
    assert overlaps([[1, 2, 3], [1, 3, 9, 2, 3]], tests=1) == [1, 1]
    assert overlaps([[3, 1, 2, 3], [1, 2, 3, 2, 3]], tests=2)[0] == 2


PEOPLE = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=9), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(PEOPLE)
def test_it_is_that_of_a_slow_search(people: list[list[int]]) -> None:
    expected = [
        max(
            [0]
            + [
                length
                for length in range(1, min(MAX_LENGTH, len(own)) + 1)
                for other in people
                for start in range(len(other) - 1)
                if other[:-1][start : start + length] == own[-length:]
            ]
        )
        for own in people
    ]
    assert overlaps(people) == expected
