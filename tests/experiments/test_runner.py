"""Running a suite, with a stand-in for the commands: what is run, skipped, tried again and told."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.core.files import read_json
from castpoi.core.progress import Task
from castpoi.core.staging import alone_in
from castpoi.experiments import job, key
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.runner import Pace
from castpoi.training.train import checkpoint_dir_of
from tests.experiments.bench import COUNTED, GOOD, Bench, row
from tests.messages import refused

pytestmark = pytest.mark.usefixtures("quick")


def test_what_is_there_is_never_run_again(village: CityFolder, tmp_path: Path) -> None:
    bench = Bench(village, [COUNTED, GOOD], tmp_path / "out")
    assert set(bench.why().values()) == {"missing"}
    assert bench.run() == []
    assert list(bench.why().values()) == ["", "", ""]
    bench.told.clear()
    assert bench.run() == []
    assert bench.told == []
    assert set(bench.states().values()) == {"done"}


def test_a_result_proves_its_key_and_keeps_the_papers_of_its_run(
    village: CityFolder, tmp_path: Path
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run()
    result = tmp_path / "out" / "village" / "good" / "1"
    proof = read_json(result / "experiment.json")
    assert proof["key"]["fingerprint"] == village.fingerprint
    assert [each.split()[1] for each in proof["commands"]] == ["train", "evaluate"]
    assert 1000 < proof["seconds"] < 2000  # with the epoch before its training was resumed
    assert {path.name for path in (result / "run").iterdir()} == {
        "manifest.json", "config.json", "log.jsonl",
    }  # fmt: skip
    assert not (tmp_path / "out" / "runs" / "village" / "good" / "1").exists()


def test_runs_stay_if_asked_and_are_used_again(village: CityFolder, tmp_path: Path) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run(keep_runs=True)
    proof = tmp_path / "out" / "village" / "good" / "1" / "experiment.json"
    proof.write_text("{ torn")
    assert bench.why()["village/good/1"] == "missing"
    bench.run(keep_runs=True)
    log = bench.log("village/good/1")
    assert (log.count("castpoi train"), log.count("castpoi evaluate")) == (1, 2)
    assert 5000 < read_json(proof)["seconds"] < 6000  # with all that the run took before


@pytest.mark.parametrize("keep_runs", [False, True])
def test_a_run_that_a_kill_left_beside_its_finished_result_is_removed_unless_kept(
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
    words = {"bad": "fail", "fallen": "fall", "dumb": "silent", "dead": "crash"}
    rows = [row(name, **{word: "no luck"}) for name, word in words.items()]
    bench = Bench(village, [*rows, GOOD], tmp_path / "out")
    failures = {each.experiment.name: each.problem for each in bench.run()}
    assert failures["village/bad/1"] == "no luck"
    assert failures["village/dumb/1"] == "it ended with exit code 3 and no word"
    assert failures["village/dead/1"] == "it was killed, perhaps for want of memory"
    assert failures["village/fallen/1"] == "it ended with exit code 1; its last words: no luck"
    assert len(failures) == 8
    states = bench.states()
    assert [states[f"village/{name}/2"] for name in ("bad", "good")] == ["failed", "done"]
    assert "village/bad/1 FAILED: no luck; 1 of 10, 1 failed" in " ".join(bench.told)
    assert bench.why()["village/bad/1"] == "missing"  # so that it is tried again


def test_a_command_that_cannot_be_started_is_a_failure_too(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_TETHERED", (str(tmp_path / "no such python"),))
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


def test_one_bar_counts_all_experiments_and_tells_the_time_that_is_left(
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
    begun = [told for told in bench.told[:2] if told.endswith("has begun")]
    assert len(begun) == 2  # side by side
    assert Pace(jobs=4, threads=2).threads_a_job == 1


def test_a_changed_row_is_run_again(village: CityFolder, tmp_path: Path) -> None:
    Bench(village, [GOOD], tmp_path / "out").run()
    changed = Bench(village, [row("good", width="64")], tmp_path / "out")
    assert changed.why()["village/good/1"] == "settings changed"
    changed.run()
    assert changed.why()["village/good/1"] == ""


def test_results_of_other_code_count_only_if_asked(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    bench.run()
    monkeypatch.setattr(key, "code_version", lambda method: "later")
    assert set(bench.why().values()) == {"code changed"}
    assert set(bench.why(any_code=True).values()) == {""}


@pytest.mark.parametrize(("any_code", "stays"), [(False, False), (True, True)])
def test_a_training_begun_with_other_code_goes_on_only_if_asked(
    village: CityFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    any_code: bool,
    stays: bool,
) -> None:
    bench = Bench(village, [GOOD], tmp_path / "out")
    (experiment, _) = experiments_of(bench.suite, [village], bench.suite.seeds)
    first = key.key_of(experiment)
    bench.folder.begin(experiment, first, any_code=False)
    begun = checkpoint_dir_of(bench.folder.run(experiment))
    begun.mkdir(parents=True)
    (begun / "manifest.json").write_text(json.dumps({"kind": "training"}))
    assert bench.folder.begin(experiment, first, any_code=False) == first.to_dict()
    assert begun.exists()
    later = replace(first, code="later")
    kept = bench.folder.begin(experiment, later, any_code=any_code)
    assert begun.exists() is stays
    assert kept["code"] == (first.code if stays else "later")  # what it is really made with
    bench.folder.begin(experiment, replace(first, seed=9), any_code=True)
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


def test_a_city_prepared_anew_on_the_way_is_told(village: CityFolder, tmp_path: Path) -> None:
    old = replace(village, fingerprint="0123456789abcdef")
    (failure,) = Bench(old, [COUNTED], tmp_path / "out").run()
    assert "was prepared anew while village/counted/0 was under way" in failure.problem


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
def test_a_disk_that_refuses_is_told_with_the_way_out(
    village: CityFolder, tmp_path: Path, file: str
) -> None:
    bench = Bench(village, [COUNTED], tmp_path / "out")
    (tmp_path / "out" / file).mkdir(parents=True)
    with refused(BadInput):
        bench.run()


def test_an_interruption_ends_what_is_under_way(
    village: CityFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = "import time; time.sleep(60)"
    monkeypatch.setattr(job, "_TETHERED", (sys.executable, "-S", "-c", sleeper))
    bench = Bench(village, [COUNTED], tmp_path / "out")

    def interrupt(told: str) -> None:
        raise KeyboardInterrupt

    bench.say = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.states() == {"village/counted/0": "waiting"}
