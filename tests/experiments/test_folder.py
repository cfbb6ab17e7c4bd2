"""Which results count, and what happens to damaged ones and to files of somebody else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from castpoi.core.files import read_json, write_json
from castpoi.evaluation.result import Result
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.folder import clear
from castpoi.training.train import checkpoint_dir_of
from tests.experiments.bench import COUNTED, GOOD, Bench
from tests.manifests import accept_changes

pytestmark = pytest.mark.usefixtures("quick")

Damage = Callable[[Path], object]


def torn(file: str) -> Damage:
    def tear(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: len(content) // 2])

    return tear


def gone(file: str) -> Damage:
    return lambda folder: (folder / file).unlink()


def edited(folder: Path) -> None:
    write_json(folder / "manifest.json", read_json(folder / "manifest.json") | {"seed": 1})


@pytest.fixture
def bench(village: CityFolder, tmp_path: Path) -> Bench:
    bench = Bench(village, [COUNTED, GOOD], tmp_path / "out")
    assert bench.run() == []
    bench.reported.clear()
    return bench


@pytest.fixture
def result(bench: Bench) -> Path:
    return bench.folder.root / "village" / "counted" / "0"


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (gone("ranks.parquet"), "damaged"),
        (torn("metrics.json"), "damaged"),
        (torn("manifest.json"), "damaged"),
        (edited, "damaged"),
        (gone("manifest.json"), "missing"),
        (lambda folder: accept_changes(folder, experiment={}), "code changed"),
        (lambda folder: accept_changes(folder, part="validation"), "split changed"),
    ],
)
def test_a_damaged_result_is_made_again(
    bench: Bench, result: Path, damage: Damage, why: str
) -> None:
    damage(result)
    assert bench.why() == {
        "village/counted/0": why, "village/good/1": "", "village/good/2": "",
    }  # fmt: skip
    assert bench.run() == []
    assert bench.reported[0] == "village/counted/0 has started"
    assert set(bench.why().values()) == {""}
    assert Result.load(result).method == "revisit"


def test_results_made_one_by_one_count_in_their_own_folders(bench: Bench, result: Path) -> None:
    village = bench.folder.root / "village"
    result.rename(village / "0")
    result.parent.rmdir()
    (village / "0").rename(village / "counted")  # as `castpoi evaluate` writes it in results/
    (village / "good" / "1").rename(village / "good-1")
    assert set(bench.why().values()) == {""}
    accept_changes(village / "good-1", experiment={})
    assert bench.why()["village/good/1"] == "code changed"
    assert set(bench.why(any_code=True).values()) == {""}


def test_a_damaged_result_is_removed_but_no_file_of_somebody_else(
    result: Path, tmp_path: Path
) -> None:
    clear(result, "result", only_damaged=True)
    assert Result.load(result).seed == 0
    torn("manifest.json")(result)
    (result / "notes.txt").write_text("mine")
    clear(result, "result", only_damaged=True)
    assert (result / "notes.txt").exists()
    (result / "notes.txt").unlink()
    result.rename(tmp_path / "elsewhere")
    result.symlink_to(tmp_path / "elsewhere")
    clear(result, "result", only_damaged=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_of_another_kind_is_never_removed(result: Path) -> None:
    write_json(result / "manifest.json", {"kind": "city"})
    clear(result, "result")
    assert (result / "ranks.parquet").is_file()


def test_the_remains_of_a_killed_training_go_with_its_run(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    experiment = experiments_of(bench.suite, [village], bench.suite.seeds)[0]
    run = bench.folder.run(experiment)
    stray = run.with_name(f".{run.name}.0123abcd")
    stray.mkdir(parents=True)
    for folder, file in ((run, "config.json"), (checkpoint_dir_of(run), ".lock")):
        folder.mkdir()
        (folder / file).write_text("")  # without a manifest
    assert bench.run() == []
    assert not stray.exists()
    assert not run.exists()
    assert not checkpoint_dir_of(run).exists()
