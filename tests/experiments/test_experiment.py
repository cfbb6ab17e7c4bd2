"""From a suite, cities and seeds to experiments, and the key of each."""

from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import write_json
from castpoi.experiments.experiment import (
    CityFolder,
    Experiment,
    changes,
    code_of,
    experiments_of,
)
from castpoi.experiments.suite import read_suite
from castpoi.methods.outline import Row
from castpoi.methods.registry import METHODS, Method
from tests.messages import refused

ROW = Row(name="mine", label="Mine", method="castpoi", role="ours", preset="fast",
          settings={"width": "64", "heads": "2"})  # fmt: skip


def test_the_first_seed_of_all_rows_comes_first_and_counting_needs_one(village: CityFolder) -> None:
    town = replace(village, folder=Path("town"), fingerprint="town")
    found = experiments_of(
        read_suite("all"), [village, town], [42, 43], only=["revisit", "castpoi"]
    )
    assert [each.name for each in found] == [
        "village/revisit/0", "village/castpoi/42", "town/revisit/0", "town/castpoi/42",
        "village/castpoi/43", "town/castpoi/43",
    ]  # fmt: skip


def test_an_unknown_row_is_refused_with_the_known_ones(village: CityFolder) -> None:
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


def test_city_method_preset_settings_seed_and_version_change_the_key(
    village: CityFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Experiment(city=village, row=ROW, seed=42)
    others = {
        "seed": replace(one, seed=43),
        "fingerprint": replace(one, city=replace(village, fingerprint="another")),
        "method": replace(one, row=replace(ROW, method="sasrec")),
        "preset": replace(one, row=replace(ROW, preset="paper")),
        "settings": replace(one, row=replace(ROW, settings={"width": "64"})),
    }
    for name, other in others.items():
        assert changes(other.key, one.key, any_code=False) == [name]
    before = one.key
    castpoi = METHODS.named("castpoi")
    monkeypatch.setitem(METHODS._by_name, "castpoi", replace(castpoi, version=99))
    assert changes(one.key, before, any_code=False) == ["code"]
    assert changes(one.key, before, any_code=True) == []


def test_the_settings_that_define_a_method_are_in_its_key(village: CityFolder) -> None:
    row = replace(ROW, method="target-attention")
    settings = Experiment(city=village, row=row, seed=42).key["settings"]
    assert settings == {**ROW.settings, **METHODS.named("target-attention").settings}


@pytest.mark.parametrize("file", ["two_files/sizes.py", "one_file.py"])
def test_the_code_of_another_package_is_a_digest_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    (tmp_path / "two_files").mkdir()
    (tmp_path / "two_files" / "__init__.py").write_text("")
    for name in ("two_files/sizes.py", "one_file.py"):
        (tmp_path / name).write_text("width = 8\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = file.partition("/")[0].removesuffix(".py")
    dice = Method(name="dice", line="throws dice", ranker=f"{package}:Dice")
    before = code_of(dice)
    assert code_of(dice) == before
    (tmp_path / file).write_text("width = 9\n")
    assert code_of(dice) != before
    assert code_of(METHODS.named("castpoi")) == METHODS.named("castpoi").version
