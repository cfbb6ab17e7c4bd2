"""`castpoi reproduce`, with a failing row and after a kill."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.cli.experiments import reproduce
from castpoi.core.files import read_json
from castpoi.evaluation.result import Result
from tests.cli.killed import killed_in_training
from tests.conftest import CommandLine
from tests.contract import odd_city
from tests.training.small import TINY

_TINY = ", ".join(f"{name} = {value}" for name, value in TINY.items())

COUNTED = """
title = "Own"
seeds = [1, 2]
[rows.revisit]
label = "Revisit heuristic"
method = "revisit"
role = "heuristic"
[rows.recent]
label = "Most recent"
method = "recent"
role = "heuristic"
"""

LEARNED = f"""
[rows.learned]
label = "CaST-POI"
method = "castpoi"
role = "ours"
set = {{ epochs = 40, patience = 40, {_TINY} }}
"""

BROKEN = f"""
[rows.broken]
label = "Broken"
method = "castpoi"
role = "ablation"
set = {{ learning_rate = 1e30, {_TINY} }}
"""


@pytest.fixture
def city(tmp_path: Path) -> Path:
    village = odd_city()
    replace(village, manifest={**village.manifest, "train": 8}).save(tmp_path / "village")
    return tmp_path / "village"


def suite(folder: Path, *parts: str) -> Path:
    (folder / "own.toml").write_text("".join(parts))
    return folder / "own.toml"


def test_a_plan_is_shown_and_nothing_is_written(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["reproduce", city, "--suite", "all", "--seeds", 42, 43, 44, "--out", out, "--dry-run"]
    words += ["--threads", 2]
    shown = castpoi(*words)
    assert shown.code == 0
    assert "village/castpoi/44" in shown.out
    assert "village/no-candidate-conditioning/44" in shown.out
    assert "rough rates" in shown.out
    assert "not known" not in shown.out
    assert "40 of 40 experiments are to be run: about" in shown.out  # 13 rows x 3, and one
    found = castpoi(*words, "--json").json
    assert (found["to_run"], found["all_known"]) == (40, True)
    assert found["experiments"][0] == {
        "name": "village/sasrec/42", "city": "village", "row": "sasrec", "seed": 42,
        "why": "missing", "seconds": pytest.approx(4.6 * 0.008 / 2), "source": "rates",
    }  # fmt: skip
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        (["CITY", "--seeds", "1", "2", "3"], [1, 2, 3]),
        (["--seeds", "1", "2", "CITY"], [1, 2]),
        (["--seeds", "1,2", "CITY", "--seeds", "2"], [1, 2]),
        (["CITY", "--seeds=4,5"], [4, 5]),
        (["CITY"], [42, 43, 44]),
        (["CITY", "--only", "castpoi", "core", "--seeds", "7"], [7, 7]),
        (["CITY", "--only=castpoi"], [42, 43, 44]),
    ],
)
def test_seeds_and_rows_may_be_given_in_several_ways(
    castpoi: CommandLine, city: Path, tmp_path: Path, words: list[str], seeds: list[int]
) -> None:
    only = () if "--only" in " ".join(words) else ("--only", "castpoi")
    given = [str(city) if word == "CITY" else word for word in words]
    ended = castpoi(
        "reproduce", *given, *only, "--suite", "main", "--out", tmp_path / "out", "--dry-run",
        "--json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert [each["seed"] for each in ended.json["experiments"]] == seeds


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--suite", "main"], 2, "Name a CITY; this suite names none."),
        (["--suite", "main", "--only", "x"], 2, "Name a CITY, before --only; this suite names"),
        (["CITY", "--suite", "main", "--seeds", "9" * 26], 2, "is not in the range 0<=x<=4294967"),
        (["CITY", "--suite", "main", "--seeds", "x"], 2, "'x' is not a valid integer"),
        (["CITY", "--suite", "main", "--seeds", "--only", "core"], 2, "'--only' is not a valid"),
        (["CITY", "--suite", "main", "--seeds"], 2, "'--dry-run' is not a valid integer"),
        (["CITY", "--suite", "mian"], 1, "no suite is named 'mian'"),
        (["CITY", "--suite", "main", "--only", "you"], 1, "the suite main has no row 'you'"),
        (["nowhere", "--suite", "main"], 1, "nowhere is not a folder; expected a city"),
    ],
)
def test_wrong_options_are_refused_before_any_work(
    castpoi: CommandLine, city: Path, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    given = [str(city) if word == "CITY" else word for word in words]
    ended = castpoi("reproduce", *given, "--dry-run", "--out", tmp_path / "out")
    assert ended.code == code
    assert sentence in ended.err
    assert not (tmp_path / "out").exists()


def test_the_options_of_reproduce_are_a_contract() -> None:
    options = {option for one in reproduce.params for option in one.opts}
    assert options >= {
        "--suite", "--seeds", "--out", "--only", "--jobs", "--threads", "--dry-run", "--keep-runs",
        "--any-code", "--json", "--quiet", "--debug",
    }  # fmt: skip


def test_a_failing_row_is_shown_at_the_end_and_the_others_are_done(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    own = suite(tmp_path, COUNTED.replace("[1, 2]", '[1]\ncities = ["village"]'), BROKEN)
    ended = castpoi("reproduce", "--suite", own, "--out", out, "--jobs", 2)
    assert ended.code == 1
    for words in ("Revisit heuristic", "Most recent", "best of its column"):
        assert words in ended.out
    assert "FAILED village/broken/1: castpoi in training gave" in ended.out
    assert f"its log: {out}/logs/village/broken/1.log" in ended.out
    assert "own: 2 done now, 0 before, 1 failed." in ended.out
    assert f"on one page: castpoi report {out}" in ended.out
    assert "village/revisit/0 is done" in ended.err
    again = castpoi(
        "reproduce", city, "--suite", own, "--out", out, "--only", "recent", "revisit", "--json",
        "--quiet",
    )  # fmt: skip
    assert (again.code, again.err) == (0, "")
    assert (again.json["there_before"], again.json["failed"]) == (2, [])
    assert again.json["report"] == f"castpoi report {out}"
    labels = {row["method"] for row in again.json["cities"]["village"]["rows"]}
    assert labels == {"Revisit heuristic", "Most recent"}
    states = read_json(out / "suite.json")["experiments"]
    assert states["village/broken/1"]["state"] == "failed"


def test_a_suite_that_was_killed_resumes(castpoi: CommandLine, city: Path, tmp_path: Path) -> None:
    out, own = tmp_path / "out", suite(tmp_path, COUNTED, LEARNED)
    words = ["reproduce", city, "--suite", own, "--only", "recent", "learned", "--seeds", 5,
             "--threads", 1, "--out", out]  # fmt: skip
    killed_in_training(out / "runs" / "village" / "learned" / "5", *words)
    assert not (out / "village" / "learned").exists()
    counted = (out / "village" / "recent" / "0" / "manifest.json").read_bytes()
    again = castpoi(*words, "--json")
    assert again.code == 0, again.err
    assert again.json["there_before"] == 1
    assert (out / "village" / "recent" / "0" / "manifest.json").read_bytes() == counted
    result = out / "village" / "learned" / "5"
    events = [json.loads(line) for line in (result / "run" / "log.jsonl").read_text().splitlines()]
    resumed = [event for event in events if event["event"] == "training resumed"]
    assert 0 < resumed[0]["epochs"] < 40
    learned = sum(event["seconds"] for event in events if event["event"] == "epoch finished")
    wall = read_json(result / "run" / "manifest.json")["wall_seconds"]
    assert learned < wall < Result.load(result).manifest["experiment"]["seconds"]
    assert Result.load(result).seed == 5
    assert {each.name for each in out.iterdir()} == {"suite.json", "village", "runs", "logs"}
    assert not any(path.is_file() for path in (out / "runs" / "village").rglob("*"))


def test_a_worker_ends_with_its_starter(tmp_path: Path) -> None:
    waits = tmp_path / "waits.py"
    waits.write_text(
        "import threading, time\n"
        "from castpoi.experiments.worker import end_with_starter\n"
        "threading.Thread(target=end_with_starter, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ}
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdin.close()
    assert process.wait(timeout=30) == 1
    process.stdout.close()
