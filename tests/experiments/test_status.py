"""DIR/suite.json: the states of several suites in one folder, and what is refused there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.core.files import read_json
from castpoi.experiments.experiment import CityFolder
from castpoi.experiments.folder import check_rows
from tests.experiments.bench import COUNTED, GOOD, Bench, row

pytestmark = pytest.mark.usefixtures("quick")


def test_suites_of_one_folder_add_up(village: CityFolder, tmp_path: Path) -> None:
    Bench(village, [COUNTED], tmp_path / "out").run()
    Bench(village, [GOOD], tmp_path / "out", name="two").run()
    record = read_json(tmp_path / "out" / "suite.json")
    assert list(record["tables"]) == ["own", "two"]
    assert record["tables"]["two"]["rows"][0]["label"] == "Good"
    assert len(record["experiments"]) == 3
    assert record["cities"]["village"]["fingerprint"] == village.fingerprint


@pytest.mark.parametrize(
    "other", [replace(COUNTED, method="popularity"), row("counted", width="64")]
)
def test_a_row_that_is_another_in_another_table_is_refused(
    village: CityFolder, tmp_path: Path, other: Any
) -> None:
    Bench(village, [COUNTED], tmp_path / "out").run()
    before = (tmp_path / "out" / "suite.json").read_bytes()
    second = Bench(village, [other], tmp_path / "out", name="two")
    words = (
        "the row counted of the suite two is also in the table own of .*out, with another "
        "method, preset or settings; rename the row, .* or choose another --out"
    )
    with pytest.raises(BadInput, match=words):
        check_rows(second.folder, second.suite)
    with pytest.raises(BadInput, match=words):
        second.run()
    assert (tmp_path / "out" / "suite.json").read_bytes() == before
    assert not (tmp_path / "out" / "village" / "counted" / "1").exists()


def test_a_row_that_is_the_same_in_another_table_is_shared(
    village: CityFolder, tmp_path: Path
) -> None:
    Bench(village, [COUNTED], tmp_path / "out").run()
    second = Bench(village, [replace(COUNTED, label="Full model")], tmp_path / "out", name="two")
    assert second.run() == []
    assert second.reported == []  # nothing was to be done


def test_a_row_edited_in_its_own_table_is_run_again(village: CityFolder, tmp_path: Path) -> None:
    Bench(village, [COUNTED], tmp_path / "out").run()
    edited = Bench(village, [replace(COUNTED, method="popularity")], tmp_path / "out")
    assert edited.run() == []
    assert edited.reported[0] == "village/counted/0 has started"
    tables = read_json(tmp_path / "out" / "suite.json")["tables"]
    assert [each["method"] for each in tables["own"]["rows"]] == ["popularity"]


def test_what_was_running_when_an_earlier_command_was_killed_waits(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out", name="two")
    bench.run()
    path = tmp_path / "out" / "suite.json"
    path.write_text(path.read_text().replace('"done"', '"running"', 1))
    Bench(village, [COUNTED], tmp_path / "out").run()  # which has nothing to do with it
    assert bench.states() == {
        "village/good/1": "waiting", "village/good/2": "done", "village/counted/0": "done",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("part", "damaged"),
    [
        ("experiments", {"village/old/0": "done"}),
        ("tables", {"old": {"rows": []}}),
        ("tables", {"old": {"title": "Old", "rows": [{"name": "old"}], "families": []}}),
        ("tables", ["old"]),
        ("cities", {"old": None}),
    ],
)
def test_damaged_entries_are_left_out_of_the_next_file(
    village: CityFolder, tmp_path: Path, part: str, damaged: object
) -> None:
    bench = Bench(village, [COUNTED], tmp_path / "out")
    bench.run()
    path = tmp_path / "out" / "suite.json"
    whole = read_json(path)
    content = {**whole, part: {**whole[part], **damaged} if isinstance(damaged, dict) else damaged}
    path.write_text(json.dumps(content))
    assert bench.run() == []
    assert read_json(path) == whole
