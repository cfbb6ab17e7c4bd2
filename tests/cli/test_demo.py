"""`castpoi demo`: the first thing a new user runs."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from castpoi.cli.demo import _brief_training
from castpoi.core.files import read_json, write_json
from castpoi.methods.registry import METHODS
from castpoi.methods.run import load_run
from castpoi.serving.service import Service
from castpoi.training.train import configs_for
from tests.conftest import CommandLine, documented_keys


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo"


@pytest.fixture
def few_methods(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One method of each kind, and one that needs --all; those that a demo compares."""
    names = [METHODS.best.name, "core", "popularity", "sasrec"]
    monkeypatch.setattr(METHODS, "_by_name", {name: METHODS.named(name) for name in names})
    return names[:3]


def test_the_demo_writes_a_city_a_run_and_results_and_serves_a_map(
    castpoi: CommandLine,
    demo_folder: Path,
    few_methods: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served: list[tuple[int, int]] = []

    def start_and_stop(
        service: Service, listening: socket.socket, *, on_ready: Callable[[], None]
    ) -> None:
        asyncio.run(service.start())
        served.append(service.store.counts())
        on_ready()

    monkeypatch.setattr("castpoi.serving.server.serve_until_stopped", start_and_stop)
    ended = castpoi("demo", "--out", demo_folder, "--quick", "--serve", "--port", 0)
    assert ended.code == 0, ended.err
    for made in ("checkins.csv.gz", "city/manifest.json", "run.visits.sqlite"):
        assert (demo_folder / made).is_file()
    assert load_run(demo_folder / "run").method == METHODS.best.name
    rows = castpoi("compare", demo_folder / "results", "--json").json["rows"]
    assert {row["method"] for row in rows} == set(few_methods)
    for row in rows:
        assert f"{100 * row['metrics']['MRR']['mean']:.2f}" in ended.out
    for step in ("preparing a synthetic city of 30 people", "core, method 2 of 3"):
        assert step in ended.err
    assert "'castpoi demo --all' also has, in several minutes: sasrec." in ended.out
    assert "for the map of the city" in ended.out
    assert "is served at http://127.0.0.1:" in ended.out
    ((users, visits),) = served
    assert 0 < users <= 30
    assert visits > users


def test_the_demo_serves_or_prints_one_object_but_not_both(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    ended = castpoi("demo", "--out", tmp_path / "demo", "--serve", "--json")
    assert ended.code == 2
    assert "--serve runs until stopped" in ended.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("name", "epochs", "passes"),
    [
        ("castpoi", 3, "3"),
        ("castpoi-next", 3, "3"),
        ("target-attention", 3, "1"),
        ("target-attention", 1, "1"),
        ("srgnn", 3, "2"),
        ("core", 3, "3"),
    ],
)
def test_slow_methods_get_fewer_passes_but_at_least_one(
    name: str, epochs: int, passes: str
) -> None:
    training = _brief_training(METHODS.named(name), epochs)
    assert training is not None
    assert training.settings["epochs"] == passes


def test_every_setting_of_the_demo_is_one_of_its_method() -> None:
    for method in METHODS:
        training = _brief_training(method, 3)
        assert (training is None) == (not method.needs_training)
        if training is None:
            continue
        assert not training.settings.keys() & method.settings.keys()
        preset = training.preset or method.default_preset
        assert preset is not None
        configs_for(method, preset, training.settings)  # raises for an unknown name


def test_a_second_demo_needs_overwrite(castpoi: CommandLine, demo_folder: Path) -> None:
    ended = castpoi("demo", "--out", demo_folder)
    assert ended.code == 1
    assert "already holds a demo" in ended.err


def test_a_second_demo_leaves_files_of_somebody_else(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = METHODS.best.name
    monkeypatch.setattr(METHODS, "_by_name", {best: METHODS.named(best)})
    out = tmp_path / "demo"
    for piece, kind in (
        ("", "demo"),
        ("city", "city"),
        ("run", "run"),
        (f"results/{best}", "result"),
    ):
        (out / piece).mkdir(parents=True)
        write_json(out / piece / "manifest.json", {"kind": kind, "of": "a previous demo"})
    others = [out / "run.visits.sqlite", out / "notes.md", out / "my-results" / "note.txt"]
    (out / "my-results").mkdir()
    for path in others:
        path.write_text("mine")
    words = ("demo", "--out", out, "--users", 12, "--epochs", 1, "--all", "--json", "--overwrite")
    ended = castpoi(*words)
    assert ended.code == 0, ended.err
    assert ended.json.keys() == documented_keys("demo")
    assert ended.json["run"] == {"method": best, "folder": str(out / "run")}
    assert [row["method"] for row in ended.json["comparison"]["rows"]] == [best]
    assert [path.read_text() for path in others] == ["mine"] * 3
    manifests = list(out.rglob("manifest.json"))
    assert len(manifests) == 4
    assert not any("of" in read_json(path) for path in manifests)

    (out / "run" / "weights-of-mine").write_text("mine")
    refused = castpoi(*words)
    assert refused.code == 1
    assert (
        f"{out / 'run'} also holds weights-of-mine, which castpoi did not" in refused.json["error"]
    )


def test_the_demo_never_replaces_something_else(castpoi: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    ended = castpoi("demo", "--out", tmp_path, "--overwrite")
    assert ended.code == 1
    assert "is not a demo; choose another --out" in ended.err
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
