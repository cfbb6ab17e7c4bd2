"""From a suite, cities and seeds to experiments."""

from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import write_json
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.suite_file import read_suite
from tests.messages import refused


def test_the_first_seed_of_all_rows_comes_first_and_counting_needs_one(village: CityFolder) -> None:
    town = replace(village, folder=Path("town"), fingerprint="town")
    found = experiments_of(
        read_suite("all"), [village, town], [42, 43], only=["revisit", "castpoi"]
    )
    assert [each.name for each in found] == [
        "village/revisit/0", "village/castpoi/42", "town/revisit/0", "town/castpoi/42",
        "village/castpoi/43", "town/castpoi/43",
    ]  # fmt: skip


def test_an_unknown_row_is_told_with_the_known_ones(village: CityFolder) -> None:
    with refused(BadInput):
        experiments_of(read_suite("heuristics"), [village], [42], only=["revist"])


def test_two_cities_of_one_name_are_refused(village: CityFolder) -> None:
    twin = replace(village, folder=Path("elsewhere/village"), fingerprint="twin")
    with refused(BadInput):
        experiments_of(read_suite("heuristics"), [village, twin], [42])
    with refused(BadInput):
        experiments_of(read_suite("heuristics"), [village, village], [42])


def test_one_city_under_two_names_is_refused(village: CityFolder) -> None:
    copy = replace(village, folder=Path("elsewhere/copy"))
    words = r"village and elsewhere/copy are one city \(fingerprint .*\); name only one of them"
    with pytest.raises(BadInput, match=words):
        experiments_of(read_suite("heuristics"), [village, copy], [42])


def test_a_city_named_like_a_folder_of_the_suite_is_refused(
    village: CityFolder, tmp_path: Path
) -> None:
    village.folder.rename(tmp_path / "runs")
    with refused(BadInput):
        CityFolder.at(tmp_path / "runs")


def test_a_city_has_the_name_of_its_folder_however_one_writes_it(
    village: CityFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = village.folder / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    for written in ("..", "../.", "../inside/..", "../../village"):
        assert CityFolder.at(Path(written)).name == "village"
    monkeypatch.chdir(village.folder)
    assert CityFolder.at(Path()).name == "village"


def test_a_city_that_does_not_say_its_size_is_refused(village: CityFolder) -> None:
    write_json(village.folder / "manifest.json", {"kind": "city", "fingerprint": "f"})
    with refused(BrokenFolder):
        CityFolder.at(village.folder)
