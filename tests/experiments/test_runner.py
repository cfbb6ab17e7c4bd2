"""Running a suite, with a stand-in for the worker: what is run, skipped and tried again."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.core.progress import Task
from castpoi.core.staging import alone_in
from castpoi.evaluation.result import Result
from castpoi.experiments import runner
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.runner import Pace
from castpoi.methods.registry import METHODS
from castpoi.training.train import checkpoint_dir_of
from tests.experiments.bench import COUNTED, GOOD, Bench, row
from tests.messages import refused

pytestmark = pytest.mark.usefixtures("quick")


def test_an_existing_result_is_never_made_again(village: CityFolder, tmp_path: Path) -> None:
    bench = Bench(village, [COUNTED, GOOD], tmp_path / "out")
    assert set(bench.why().values()) == {"missing"}
    assert bench.run() == []
    assert list(bench.why().values()) == ["", "", ""]
    bench.reported.clear()
    assert bench.run() == []
    assert bench.reported == []
    assert set(bench.states().values()) == {"done"}


def test_a_result_holds_its_key_and_the_records_of_its_run(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run()
    result = tmp_path / "out" / "village" / "good" / "1"
    record = Result.load(result).manifest["experiment"]
    assert record["key"]["fingerprint"] == village.fingerprint
    assert [each.split()[1] for each in record["commands"]] == ["train", "evaluate"]
    assert {path.name for path in (result / "run").iterdir()} == {
        "manifest.json", "config.json", "log.jsonl",
    }  # fmt: skip
    assert not any(path.is_file() for path in (tmp_path / "out" / "runs" / "village").rglob("*"))


def test_runs_are_kept_on_request_and_used_again(village: CityFolder, tmp_path: Path) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run(keep_runs=True)
    result = tmp_path / "out" / "village" / "good" / "1"
    shutil.rmtree(result)
    assert bench.why()["village/good/1"] == "missing"
    bench.run(keep_runs=True)
    assert bench.log("village/good/1").count("trained") == 1
    assert Result.load(result).manifest["experiment"]["seconds"] == 5000


@pytest.mark.parametrize("keep_runs", [False, True])
def test_a_run_that_a_kill_left_next_to_its_result_is_removed_unless_kept(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_runs: bool
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    with monkeypatch.context() as killed:
        killed.setattr(SuiteFolder, "remove_run", lambda *_: None)
        bench.run(keep_runs=keep_runs)
    run = tmp_path / "out" / "runs" / "village" / "good" / "1"
    assert run.is_dir()
    bench.run()
    assert run.is_dir() == keep_runs
    assert set(bench.why().values()) == {""}


def test_a_failing_row_does_not_stop_the_others(village: CityFolder, tmp_path: Path) -> None:
    settings = {"bad": "fail", "dumb": "silent", "dead": "crash"}
    rows = [row(name, **{setting: "no luck"}) for name, setting in settings.items()]
    bench = Bench(village, [*rows, GOOD], tmp_path / "out")
    failures = {each.experiment.name: each.problem for each in bench.run()}
    assert failures["village/bad/1"] == "no luck"
    assert failures["village/dumb/1"] == "it ended with exit code 3; see its log"
    assert failures["village/dead/1"] == "it was killed, perhaps because memory ran out"
    assert len(failures) == 6
    states = bench.states()
    assert [states[f"village/{name}/2"] for name in ("bad", "good")] == ["failed", "done"]
    assert "village/bad/1 FAILED: no luck; 1 of 8, 1 failed" in " ".join(bench.reported)
    assert bench.why()["village/bad/1"] == "missing"  # so that it is tried again


def test_a_worker_that_cannot_be_started_is_a_failure_too(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "WORKER", (str(tmp_path / "no such python"),))
    bench = Bench(village, [COUNTED, GOOD], tmp_path / "out")
    failures = bench.run()
    assert len(failures) == 3
    assert "no such python" in failures[0].problem


class Bar:
    """One bar for the whole suite, which remembers what it has shown."""

    def __init__(self) -> None:
        self.total: float | None = None
        self.done = 0.0
        self.shown: list[str] = []

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        assert name == "suite"
        self.total = total
        yield self

    def advance(self, amount: float = 1) -> None:
        self.done += amount

    def describe(self, text: str) -> None:
        self.shown.append(text)


def test_one_bar_counts_all_experiments_and_shows_the_time_left(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [COUNTED, GOOD], tmp_path / "out")
    bench.progress = bar = Bar()
    bench.run()
    assert (bar.done, bar.total) == (3, 3)
    assert any(re.fullmatch(r"2 of 3, (about|at least) .+ left", words) for words in bar.shown)
    assert bar.shown[-1] == "3 of 3"
    bench.progress = again = Bar()
    bench.run()
    assert (again.done, again.total) == (3, 3)  # what was there counts as done


def test_jobs_share_the_threads(village: CityFolder, tmp_path: Path) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run(jobs=2, threads=6)
    assert "threads 3" in bench.log("village/good/1")
    begun = [line for line in bench.reported[:2] if line.endswith("has started")]
    assert len(begun) == 2  # side by side
    assert Pace(jobs=4, threads=2).threads_per_job == 1


def test_a_changed_row_is_run_again(village: CityFolder, tmp_path: Path) -> None:
    Bench(village, [GOOD], tmp_path / "out").run()
    changed = Bench(village, [row("good", width="64")], tmp_path / "out")
    assert changed.why()["village/good/1"] == "settings changed"
    changed.run()
    assert changed.why()["village/good/1"] == ""


def new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of castpoi move."""
    changed = replace(METHODS.named("castpoi"), version=99)
    monkeypatch.setitem(METHODS._by_name, "castpoi", changed)


def test_results_of_other_code_count_only_on_request(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run()
    new_version(monkeypatch)
    assert set(bench.why().values()) == {"code changed"}
    assert set(bench.why(any_code=True).values()) == {""}


def test_a_training_begun_with_other_code_starts_again(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    with monkeypatch.context() as killed:
        killed.setattr(SuiteFolder, "remove_run", lambda *_: None)
        bench.run()
    experiment = experiments_of(bench.suite, [village], bench.suite.seeds)[0]
    begun = checkpoint_dir_of(bench.folder.run(experiment))
    shutil.rmtree(bench.folder.result(experiment))
    shutil.rmtree(bench.folder.run(experiment))
    begun.mkdir()
    (begun / "manifest.json").write_text(json.dumps({"kind": "training"}))
    bench.run(keep_runs=True)
    assert begun.exists()  # the stand-in leaves it, and so does the suite
    new_version(monkeypatch)
    bench.run(keep_runs=True)
    assert not begun.exists()


def test_another_city_of_the_same_name_is_refused(village: CityFolder, tmp_path: Path) -> None:
    Bench(village, [COUNTED], tmp_path / "out").run()
    twin = replace(village, fingerprint="0123456789abcdef")
    with refused(BadInput):
        Bench(twin, [COUNTED], tmp_path / "out").why()


def test_a_city_that_has_another_name_here_is_refused(village: CityFolder, tmp_path: Path) -> None:
    Bench(village, [COUNTED], tmp_path / "out").run()
    renamed = replace(village, folder=tmp_path / "hamlet")
    words = (
        r"hamlet is the city that is named village in .*out \(fingerprint .*\); rename its folder "
        "to village, or choose another --out"
    )
    with pytest.raises(BadInput, match=words):
        Bench(renamed, [COUNTED], tmp_path / "out").why()


def test_a_city_that_changes_during_the_work_is_an_error(
    village: CityFolder, tmp_path: Path
) -> None:
    old = replace(village, fingerprint="0123456789abcdef")
    (failure,) = Bench(old, [COUNTED], tmp_path / "out").run()
    assert "was prepared again" in failure.problem


def test_only_one_suite_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    with (
        alone_in(tmp_path),
        refused(BadInput),
        alone_in(tmp_path, patience_seconds=0),
    ):
        pass
    with alone_in(tmp_path, patience_seconds=0):
        pass


def test_a_place_that_is_taken_by_a_file_is_refused(village: CityFolder, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with refused(BadInput):
        Bench(village, [COUNTED], tmp_path / "out").run()


@pytest.mark.parametrize("file", ["suite.json", "runs/.lock"])
def test_a_full_disk_is_an_error_that_names_the_fix(
    village: CityFolder, tmp_path: Path, file: str
) -> None:
    bench = Bench(village, [COUNTED], tmp_path / "out")
    (tmp_path / "out" / file).mkdir(parents=True)
    with refused(BadInput):
        bench.run()


def test_an_interruption_ends_what_is_running(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = "import time; time.sleep(60)"
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-S", "-c", sleeper))
    bench = Bench(village, [COUNTED], tmp_path / "out")

    def interrupt(sentence: str) -> None:
        raise KeyboardInterrupt

    bench.report = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.states() == {"village/counted/0": "waiting"}
