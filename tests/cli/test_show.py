"""`castpoi show` and `castpoi methods`."""

from importlib import metadata
from pathlib import Path

import polars as pl
import pytest

from castpoi.core.files import read_json, write_json
from castpoi.methods.registry import METHODS
from tests.conftest import CommandLine
from tests.contract import odd_city


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a city, and with a run and a result of it."""
    from castpoi.cli.main import main

    root = tmp_path_factory.mktemp("my folders")
    odd_city().save(root / "city")
    for words in (
        ("train", root / "city", "--model", "revisit", "--out", root / "run"),
        ("evaluate", root / "run", "--out", root / "result"),
    ):
        with pytest.raises(SystemExit, match="0"):
            main(list(map(str, words)))
    return root


@pytest.mark.parametrize(
    ("kind", "entries", "following"),
    [
        ("city", {"fingerprint", "command"}, "train '{}' --out RUN"),
        ("run", {"method", "seed", "part", "fingerprint", "started_utc"}, "serve '{}'"),
        ("result", {"method", "metrics", "targets", "command"}, "compare '{}' RESULT..."),
    ],
)
def test_a_folder_is_shown_with_the_commands_that_use_it(
    castpoi: CommandLine, folders: Path, kind: str, entries: set[str], following: str
) -> None:
    ended = castpoi("show", folders / kind)
    assert ended.code == 0, ended.err
    assert f"Next: castpoi {following.format(folders / kind)}" in ended.out
    assert all(entry in ended.out for entry in entries)
    content = castpoi("show", folders / kind, "--json").json
    assert content["kind"] == kind
    assert entries <= content.keys()
    assert content["fingerprint"] == odd_city().fingerprint
    assert f"castpoi {following.format(folders / kind)}" in content["next"]


def test_the_metrics_of_a_result_are_shown(castpoi: CommandLine, folders: Path) -> None:
    stored = read_json(folders / "result" / "metrics.json")["metrics"]
    assert castpoi("show", folders / "result", "--json").json["metrics"] == stored


def test_the_folder_of_a_suite_is_shown(castpoi: CommandLine, tmp_path: Path) -> None:
    experiments = {"nyc/a/1": {"state": "done"}, "nyc/a/2": {"state": "failed"}}
    content = {"kind": "suite", "tables": {"main": {}}, "cities": {"nyc": {}}}
    write_json(tmp_path / "suite.json", {**content, "experiments": experiments})
    shown = castpoi("show", tmp_path, "--json").json
    assert shown["experiments"] == {"done": 1, "failed": 1}
    assert (shown["tables"], shown["cities"]) == (["main"], ["nyc"])
    assert shown["next"] == [f"castpoi report {tmp_path}"]


@pytest.mark.parametrize("content", [None, {}, {"name": "a package"}])
def test_another_folder_is_refused(
    castpoi: CommandLine, tmp_path: Path, content: dict[str, object] | None
) -> None:
    if content is not None:
        write_json(tmp_path / "manifest.json", content)
    ended = castpoi("show", tmp_path)
    assert ended.code == 1
    assert f"{tmp_path} is not a folder that castpoi made; give a city, a run" in ended.err


def test_all_methods_are_listed(castpoi: CommandLine) -> None:
    shown = castpoi("methods").out
    assert all(name in shown for name in METHODS.names)
    listed = castpoi("methods", "--json").json["methods"]
    assert [each["method"] for each in listed] == METHODS.names
    assert listed[1]["presets"] == ["fast", "paper"]


def test_the_settings_of_a_method_have_values_and_a_sentence_each(castpoi: CommandLine) -> None:
    assert "Attention heads" in castpoi("methods", "sasrec").out
    for name in METHODS.names:
        for setting in castpoi("methods", name, "--json").json["settings"]:
            assert setting["about"], f"{name}: {setting['name']}"
    fast, paper = (
        {each["name"]: each["value"] for each in castpoi(*words, "--json").json["settings"]}
        for words in (("methods", "castpoi"), ("methods", "castpoi", "--preset", "paper"))
    )
    assert (fast["null_attention"], paper["null_attention"]) == (True, False)


def test_a_counting_baseline_has_no_settings(castpoi: CommandLine) -> None:
    assert "It has no settings." in castpoi("methods", "revisit").out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["markow"], 1, "did you mean 'markov'?"),
        (["sasrec", "--preset", "fast"], 1, "there is no preset 'fast'; choose paper or tuned"),
        (["--preset", "fast"], 2, "--preset needs the NAME of a method."),
    ],
)
def test_an_unknown_method_or_preset_is_refused(
    castpoi: CommandLine, words: list[str], code: int, sentence: str
) -> None:
    ended = castpoi("methods", *words)
    assert ended.code == code
    assert sentence in ended.err


def test_the_doctor_reports_versions_and_a_missing_library(
    castpoi: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = metadata.version

    def without_uvicorn(name: str) -> str:
        if name == "uvicorn":
            raise metadata.PackageNotFoundError
        return found(name)

    monkeypatch.setattr(metadata, "version", without_uvicorn)
    report = castpoi("doctor", "--json").json
    assert f"polars {pl.__version__}" in report["libraries"]
    assert "uvicorn MISSING" in report["extra serve"]
    assert int(report["threads"]) >= 1
    assert "store" not in report


def test_the_doctor_reports_a_store_that_cannot_be_opened(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    report = castpoi("doctor", "--store", f"sqlite:///{tmp_path}/none.sqlite", "--json").json
    assert "there is no visit store" in report["store"]
    assert not (tmp_path / "none.sqlite").exists()
