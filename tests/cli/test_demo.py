"""`castpoi demo`: the first thing a new user runs."""

from pathlib import Path

import pytest

from castpoi.methods import METHODS
from tests.conftest import CommandLine


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo"


def test_the_demo_leaves_a_city_a_run_and_a_result_of_what_needs_no_training(
    castpoi: CommandLine, demo_folder: Path
) -> None:
    ended = castpoi("demo", "--out", demo_folder, "--users", 60, "--epochs", 1, "--json")
    assert ended.code == 0, ended.err
    methods = {row["method"] for row in ended.json["comparison"]["rows"]}
    counted = {method.name for method in METHODS if not method.needs_training}
    assert methods == {METHODS.best.name, *counted}
    assert ended.json["run"]["method"] == METHODS.best.name
    for made in ("checkins.csv.gz", "city/manifest.json", "run/model.safetensors"):
        assert (demo_folder / made).is_file()
    again = castpoi("compare", demo_folder / "results", "--json")
    assert [(row["method"], row["metrics"]) for row in again.json["rows"]] == [
        (row["method"], row["metrics"]) for row in ended.json["comparison"]["rows"]
    ]


def test_a_second_demo_needs_overwrite(castpoi: CommandLine, demo_folder: Path) -> None:
    ended = castpoi("demo", "--out", demo_folder)
    assert ended.code == 1
    assert "already holds a demo" in ended.err


def test_the_demo_never_replaces_something_else(castpoi: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    ended = castpoi("demo", "--out", tmp_path, "--overwrite")
    assert ended.code == 1
    assert "is not a demo; choose another --out" in ended.err
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_with_all_the_learned_baselines_are_trained_too(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: METHODS.named(name) for name in ("sasrec", "popularity", "esasrec")}
    monkeypatch.setattr(METHODS, "_by_name", few)
    words = ("--out", tmp_path / "demo", "--users", 25, "--epochs", 1, "--all", "--json")
    ended = castpoi("demo", *words)
    assert ended.code == 0, ended.err
    assert {row["method"] for row in ended.json["comparison"]["rows"]} == set(few)
    assert (tmp_path / "demo" / "results" / "esasrec" / "manifest.json").is_file()
