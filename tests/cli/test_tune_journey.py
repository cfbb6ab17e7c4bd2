"""`castpoi tune`, with a failing trial and after a kill."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.cli.experiments import tune
from castpoi.core.files import read_json
from castpoi.experiments import runner
from tests.cli.killed import killed_in_training
from tests.conftest import CommandLine
from tests.contract import odd_city
from tests.experiments.stand_in import __file__ as stand_in

TINY = [
    word
    for setting in ("width=8", "heads=2", "feed_forward_width=8", "layers=1")
    for word in ("--set", setting)
]


@pytest.fixture
def city(tmp_path: Path) -> Path:
    village = odd_city()
    replace(village, manifest={**village.manifest, "train": 8}).save(tmp_path / "village")
    return tmp_path / "village"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-S", stand_in))


def words(city: Path, out: Path, *more: object) -> list[object]:
    return ["tune", city, "--model", "sasrec", "--preset", "tuned", "--threads", 1, "--out", out,
            *more]  # fmt: skip


def test_a_plan_is_shown_and_nothing_is_written(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    asked = words(city, tmp_path / "out", "--try", "dropout=0.2,0.5", "--try", "width=64,128")
    shown = castpoi(*asked, "--dry-run")
    assert shown.code == 0
    assert "village/dropout=0.2,width=128/42" in shown.out
    assert "4 of 4 trials are to be run" in shown.out
    found = castpoi(*asked, "--at-most", 3, "--dry-run", "--json").json
    assert (found["to_run"], found["metric"], found["seed"]) == (3, "MRR", 42)
    assert len(found["trials"]) == 3
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("quick")
def test_the_best_comes_first_and_can_be_copied(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = words(city, out, "--try", "dropout=0.5,0.25", "--set", "epochs=9", "--seed", 7)
    ended = castpoi(*asked)
    assert ended.code == 0
    assert "sasrec (tuned) on village: validation split, in percent, best MRR first" in ended.out
    best, worse = (line.split("│")[1:4] for line in ended.out.splitlines() if line[:1] == "│")
    assert [cell.strip() for cell in best] == ["0.25", "75.00", "75.00"]
    assert [cell.strip() for cell in worse] == ["0.5", "50.00", "50.00"]
    assert f"Trials: 2 done now, 0 before, 0 failed. Everything is in {out}." in ended.out
    assert (
        f"Best: castpoi train {city} --model sasrec --seed 7 --out RUN --preset tuned "
        "--set epochs=9 --set dropout=0.25" in ended.out
    )
    assert "village/dropout=0.5/7 is done" in ended.err
    again = castpoi(*asked, "--json", "--quiet")
    assert (again.code, again.err) == (0, "")
    assert again.json["there_before"] == 2
    assert again.json["command"].endswith("--set epochs=9 --set dropout=0.25")
    added = {"command", "out", "there_before", "failed"}
    assert {name: each for name, each in again.json.items() if name not in added} == read_json(
        out / "tune.json"
    )


@pytest.mark.usefixtures("quick")
def test_a_failing_trial_is_shown_at_the_end_and_the_others_are_done(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = words(city, out, "--try", "learning_rate=13,0.001", "--jobs", 2)
    ended = castpoi(*asked)
    assert ended.code == 1
    failed = "village/learning_rate=13/42"
    assert f"FAILED {failed}: the loss of epoch 1 is no number" in ended.out
    assert f"its log: {out}/logs/{failed}.log" in ended.out
    assert "Trials: 1 done now, 0 before, 1 failed." in ended.out
    assert "Best: castpoi train" in ended.out
    again = castpoi(*asked, "--json", "--quiet")
    assert again.code == 1
    assert again.json["error"] == f"1 trials failed: {failed}"
    assert again.json["failed"][0]["problem"] == "the loss of epoch 1 is no number"
    nothing = castpoi(*words(city, tmp_path / "none", "--try", "learning_rate=13"))
    assert nothing.code == 1
    assert "Best:" not in nothing.out


@pytest.mark.parametrize(
    ("given", "code", "sentence"),
    [
        (["--try", "dropout=0.2,x"], 1, "dropout='x' is not valid; it must be a number"),
        (["--try", "dropout="], 1, "'dropout=' lacks a value"),
        (["--try", "drop=1"], 1, "there is no setting 'drop'; did you mean 'dropout'?"),
        (["--try", "dropout=1", "--model", "revisit"], 1, "revisit is counted, not learned"),
        (["--try", "dropout=0", "--set", "dropout=1"], 1, "dropout is both set and tried"),
        (["--try", "dropout=0.2", "--at-most", "0"], 2, "0 is not in the range x>=1"),
        ([], 2, "Missing option '--try'"),
    ],
)
def test_wrong_options_are_refused_before_any_work(
    castpoi: CommandLine, city: Path, tmp_path: Path, given: list[str], code: int, sentence: str
) -> None:
    model = [] if "--model" in given else ["--model", "sasrec", "--preset", "tuned"]
    asked = ["tune", city, *model, "--out", tmp_path / "out"]
    ended = castpoi(*asked, *given)
    assert ended.code == code
    assert sentence in ended.err
    assert not (tmp_path / "out").exists()


_WRITTEN = [
    line.split()[1:]
    for page in ("baselines.md", "cli.md")
    for line in (Path(__file__).parents[2] / "docs" / page).read_text().splitlines()
    if line.startswith("castpoi tune ")
]


@pytest.mark.parametrize("line", _WRITTEN, ids=lambda line: line[3])
def test_the_commands_of_the_docs_can_be_given(
    castpoi: CommandLine, city: Path, line: list[str]
) -> None:
    given = [str(city) if word == "CITY" else word for word in line]
    ended = castpoi(*given, "--dry-run", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["to_run"] == len(ended.json["trials"]) > 1


def test_the_options_of_tune_are_a_contract() -> None:
    options = {option for one in tune.params for option in one.opts}
    assert options >= {
        "--model", "--preset", "--try", "--set", "--at-most", "--seed", "--out", "--jobs",
        "--threads", "--dry-run", "--any-code", "--json", "--quiet", "--debug",
    }  # fmt: skip


def test_a_tune_that_was_killed_resumes(castpoi: CommandLine, city: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = words(city, out, "--try", "dropout=0.2", "--set", "epochs=60", "--set", "patience=60",
                  *TINY)  # fmt: skip
    killed_in_training(out / "runs" / "village" / "dropout=0.2" / "42", *asked)
    again = castpoi(*asked, "--json")
    assert again.code == 0, again.err
    (trial,) = again.json["trials"]
    assert (trial["state"], trial["epochs"]) == ("done", 60)
    log = out / "village" / "dropout=0.2" / "42" / "run" / "log.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    resumed = [event for event in events if event["event"] == "training resumed"]
    assert 0 < resumed[0]["epochs"] < 60
    assert {each.name for each in out.iterdir()} == {"tune.json", "village", "runs", "logs"}
    assert not list(out.rglob("*.safetensors"))
