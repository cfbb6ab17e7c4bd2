from pathlib import Path

import pytest

from castpoi.core.errors import BrokenFolder
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from castpoi.evaluation.top_table import TOP_SCHEMA
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.conftest import CommandLine
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.messages import refused


@pytest.fixture
def result() -> Result:
    return evaluate(fixed(1, 9, 3, 2, 1), odd_city(), method="office")


def test_every_target_has_its_best_places_with_what_they_are_judged_by(result: Result) -> None:
    assert result.top is not None
    assert result.top.schema == TOP_SCHEMA
    assert result.top["checkin"].to_list() == result.ranks["checkin"].to_list()
    for places in result.top["top_places"].to_list():
        assert places == [OFFICE, PARK, STATION, CAFE, THEATRE]
    for counts in result.top["top_counts_in_train"].to_list():
        assert counts == [2, 2, 1, 3, 0]
    # The targets are office, station, station and cafe.
    assert result.top["first_km_from_target"].to_list() == pytest.approx(
        [0, 3.6, 3.6, 0.4], abs=0.01
    )
    first, station, _, cafe = result.top["target_softmax"].to_list()
    assert first == pytest.approx(result.top["top_softmax"][0][0], rel=1e-6)
    assert first > station > cafe > 0


def test_a_result_of_before_there_were_top_places_stays_readable(
    result: Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "result")
    (tmp_path / "result" / "top.parquet").unlink()
    old = Result.load(tmp_path / "result")
    assert old.top is None
    assert old.metrics == result.metrics
    old.save(tmp_path / "again")
    assert not (tmp_path / "again" / "top.parquet").exists()


def test_damaged_top_places_are_refused(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    (tmp_path / "result" / "top.parquet").write_bytes(b"not a table")
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


def test_the_manifest_says_how_many_places_there_are_unless_it_is_old(result: Result) -> None:
    assert result.places == 5
    manifest = {key: value for key, value in result.manifest.items() if key != "places"}
    assert Result(ranks=result.ranks, seconds=1, manifest=manifest).places is None


def test_castpoi_evaluate_writes_the_top_places_of_every_target(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    odd_city().save(tmp_path / "city")
    words = ("--city", tmp_path / "city", "--model", "revisit", "--out", tmp_path / "result")
    assert castpoi("evaluate", *words).code == 0
    found = Result.load(tmp_path / "result")
    assert found.top is not None
    assert found.top.height == found.ranks.height
    # User 2 has been in the park only; the other places are tied and stand by number.
    assert found.top["top_places"].to_list()[2] == [PARK, CAFE, OFFICE, STATION, THEATRE]
