"""What the disk has lost of a suite, or somebody has put there: what counts, and what is mended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from castpoi.core.files import read_json, write_json, write_manifest
from castpoi.evaluation.result import Result
from castpoi.experiments import key
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.wholeness import make_room
from castpoi.training.train import checkpoint_dir_of
from tests.experiments.bench import COUNTED, GOOD, Bench

pytestmark = pytest.mark.usefixtures("quick")

Damage = Callable[[Path], object]


def changed(file: str, **entries: Any) -> Damage:
    """A JSON file with other entries; those that are None are taken out."""

    def change(folder: Path) -> None:
        content = {**read_json(folder / file), **entries}
        content = {name: each for name, each in content.items() if each is not None}
        write_json(folder / file, content)
        if file == "manifest.json":
            write_manifest(folder, content)

    return change


def torn(file: str) -> Damage:
    def tear(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: len(content) // 2])

    return tear


def gone(file: str) -> Damage:
    return lambda folder: (folder / file).unlink()


@pytest.fixture
def bench(village: CityFolder, tmp_path: Path) -> Bench:
    bench = Bench(village, [COUNTED, GOOD], tmp_path / "out")
    assert bench.run() == []
    bench.told.clear()
    return bench


@pytest.fixture
def result(bench: Bench) -> Path:
    return bench.folder.root / "village" / "counted" / "0"


@pytest.mark.parametrize(
    "damage",
    [
        gone("ranks.parquet"), torn("ranks.parquet"), gone("metrics.json"), torn("metrics.json"),
        gone("manifest.json"), torn("manifest.json"),
        lambda result: write_json(result / "metrics.json", {"metrics": ["MRR"]}),
        changed("manifest.json", kind=None), changed("manifest.json", seconds="long"),
        changed("manifest.json", fingerprint="0123"), changed("manifest.json", method="recent"),
        changed("manifest.json", seed=1), changed("manifest.json", part="validation"),
    ],
)  # fmt: skip
def test_a_damaged_result_is_made_again(bench: Bench, result: Path, damage: Damage) -> None:
    damage(result)
    assert bench.why() == {
        "village/counted/0": "damaged", "village/good/1": "", "village/good/2": "",
    }  # fmt: skip
    assert bench.run() == []
    assert bench.told[0] == "village/counted/0 has begun"
    assert set(bench.why().values()) == {""}
    assert Result.load(result).method == "revisit"


@pytest.mark.parametrize(
    "damage",
    [
        gone("experiment.json"), torn("experiment.json"), changed("experiment.json", kind="other"),
        changed("experiment.json", row=None), changed("experiment.json", row={"method": "revisit"}),
        changed("experiment.json", key=None), changed("experiment.json", key="none"),
        changed("experiment.json", seconds=None), changed("experiment.json", threads="two"),
        lambda result: write_json(result / "experiment.json", {"kind": "experiment"}),
    ],
)  # fmt: skip
def test_a_result_whose_proof_cannot_be_read_is_missing(
    bench: Bench, result: Path, damage: Damage
) -> None:
    damage(result)
    assert bench.why()["village/counted/0"] == "missing"
    assert len(list(bench.folder.proofs())) == 2
    assert bench.run() == []
    assert set(bench.why().values()) == {""}


def test_a_result_that_has_lost_all_but_its_proof_is_made_again(bench: Bench, result: Path) -> None:
    (result / "manifest.json").unlink()
    (result / "ranks.parquet").unlink()
    (result / "metrics.json").unlink()
    assert bench.run() == []
    assert {each.name for each in result.iterdir()} >= {"manifest.json", "experiment.json"}


@pytest.mark.parametrize(("place", "file"), [("1", "config.json"), ("1.training", ".lock")])
def test_a_training_killed_while_its_folder_came_or_went_is_begun_anew(
    village: CityFolder, tmp_path: Path, place: str, file: str
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    experiment = experiments_of(bench.suite, [village], bench.suite.seeds)[0]
    bench.folder.begin(experiment, key.key_of(experiment), any_code=False)
    remainder = bench.folder.run(experiment).with_name(place)
    remainder.mkdir()
    (remainder / file).write_text("")  # and no manifest that says what it is
    assert bench.run() == []
    assert not remainder.exists()


@pytest.mark.parametrize(
    "damage",
    [torn("model.safetensors"), gone("model.safetensors"), torn("config.json"), gone("log.jsonl")],
)
def test_a_run_that_is_damaged_is_trained_again(
    village: CityFolder, tmp_path: Path, damage: Damage
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run(keep_runs=True)
    run = tmp_path / "out" / "runs" / "village" / "good" / "1"
    damage(run)
    checkpoint_dir_of(run).mkdir()  # which goes when the run is whole
    write_json(checkpoint_dir_of(run) / "manifest.json", {"kind": "training"})
    gone("experiment.json")(tmp_path / "out" / "village" / "good" / "1")
    assert bench.run(keep_runs=True) == []
    assert bench.log("village/good/1").count("castpoi train") == 2


def test_something_else_in_the_place_of_a_run_is_never_removed(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    strange = tmp_path / "out" / "runs" / "village" / "good" / "1" / "notes.txt"
    strange.parent.mkdir(parents=True)
    strange.write_text("mine")
    for _ in range(2):
        assert [each.experiment.seed for each in bench.run()] == [1]
    assert strange.read_text() == "mine"


def test_the_papers_of_a_torn_result_make_room_too(bench: Bench) -> None:
    learned = bench.folder.root / "village" / "good" / "1"
    torn("manifest.json")(learned)
    assert bench.run() == []
    assert (learned / "run" / "log.jsonl").is_file()


@pytest.mark.parametrize("file", ["notes.txt", "run/notes.txt"])
def test_files_of_somebody_else_are_never_removed(bench: Bench, result: Path, file: str) -> None:
    torn("manifest.json")(result)
    (result / file).parent.mkdir(exist_ok=True)
    (result / file).write_text("mine")
    before = sorted(result.rglob("*"))
    (failure,) = bench.run()
    assert failure.problem.endswith(
        f"0 holds {file}, which is no part of a result; move it away, or choose another --out"
    )
    assert sorted(result.rglob("*")) == before


def test_nor_are_they_where_a_whole_result_is_replaced(
    bench: Bench, result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (result / "notes.txt").write_text("mine")
    assert set(bench.why().values()) == {""}  # they harm nobody
    monkeypatch.setattr(key, "code_version", lambda method: "later")
    assert "0 holds notes.txt, which is no part of a result" in bench.run()[0].problem
    assert (result / "notes.txt").read_text() == "mine"


def test_something_else_in_the_place_of_a_result_is_never_removed(
    bench: Bench, result: Path
) -> None:
    changed("manifest.json", kind="city")(result)
    (failure,) = bench.run()
    assert "holds a city, which is no part of a result; move it away" in failure.problem
    assert (result / "ranks.parquet").is_file()


def test_a_link_to_a_torn_result_stays_a_link(bench: Bench, result: Path, tmp_path: Path) -> None:
    result.rename(tmp_path / "elsewhere")
    result.symlink_to(tmp_path / "elsewhere")
    make_room(result)
    assert Result.load(result).seed == 0  # what is whole is not touched
    torn("manifest.json")(result)
    make_room(result)
    assert result.is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_a_killed_training_left_in_the_runs_goes_with_the_run(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    run = bench.folder.run(experiments_of(bench.suite, [village], bench.suite.seeds)[0])
    stray = run.with_name(f".{run.name}.0123abcd")
    stray.mkdir(parents=True)
    assert bench.run() == []
    assert not stray.exists()
