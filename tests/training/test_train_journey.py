"""`castpoi train` from the command line, killed and resumed, and by several processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.methods.run import load_run
from castpoi.model.ranker import CastPoiRanker
from castpoi.training.castpoi import configs
from castpoi.training.train import checkpoint_dir_of
from tests.conftest import CommandLine
from tests.training.small import TINY, TINY_WORDS

TRAIN = ["--model", "castpoi", "--threads", "1", *TINY_WORDS]


def started(*words: object, **environment: str) -> subprocess.Popen[bytes]:
    """A castpoi command in another process."""
    return subprocess.Popen(
        [sys.executable, "-m", "castpoi.cli.main", *map(str, words)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_castpoi_is_trained_and_evaluated(
    castpoi: CommandLine, town_folder: Path, tmp_path: Path
) -> None:
    run, result = tmp_path / "run", tmp_path / "result"
    trained = castpoi("train", town_folder, *TRAIN, "--epochs", 2, "--out", run, "--json")
    assert trained.code == 0, trained.err
    assert trained.json["method"] == "castpoi"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == [
        "run started", "training started", "epoch finished", "epoch finished",
        "training finished", "run finished",
    ]  # fmt: skip
    ended = castpoi("evaluate", run, "--out", result, "--json")
    assert ended.code == 0, ended.err
    assert 0 < ended.json["metrics"]["MRR"] < 1


def test_castpoi_next_is_trained_with_its_preset_evaluated_and_explains_its_scores(
    castpoi: CommandLine, town_folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ["--model", "castpoi-next", "--threads", 1, *TINY_WORDS, "--epochs", 2, "--out", run]
    trained = castpoi("train", town_folder, *words, "--json")
    assert trained.code == 0, trained.err
    assert trained.json["method"] == "castpoi-next"
    ranker = load_run(run).ranker
    assert isinstance(ranker, CastPoiRanker)
    assert ranker.model.config == configs("castpoi-next", "next", TINY)[0]
    ended = castpoi("evaluate", run, "--out", tmp_path / "result", "--json")
    assert ended.code == 0, ended.err
    assert 0 < ended.json["metrics"]["MRR"] < 1
    user = pl.read_parquet(town_folder / "users.parquet")["user_id"][0]
    ranked = castpoi("recommend", run, "--user", user, "--explain", "--json", "--k", 3)
    assert ranked.code == 0, ranked.err
    for each in ranked.json["recommendations"]:
        assert list(each["terms"]) == list(ranker.terms)
        assert each["terms"]["distance"] != 0
        assert sum(each["terms"].values()) == pytest.approx(each["score"], abs=1e-5)


def test_results_with_known_time_are_kept_apart(
    castpoi: CommandLine, town_folder: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    for name, word in (("known", ["--known-time"]), ("unknown", [])):
        words = ["--model", "castpoi-next", "--threads", 1, *TINY_WORDS, "--epochs", 1, *word]
        trained = castpoi("train", town_folder, *words, "--out", tmp_path / name)
        assert trained.code == 0, trained.err
        ended = castpoi("evaluate", tmp_path / name, "--out", results / name, "--json")
        assert ended.code == 0, ended.err
        assert ended.json["known_time"] == bool(word)
    refused = castpoi("compare", results)
    assert refused.code == 1
    assert "compare results of known time separately" in refused.err
    alone = castpoi("compare", results / "known")
    assert "with known time" in alone.out
    report = castpoi("report", results, "--json").json
    assert "known-time" in report["tables"]
    assert report["cities"] == [tmp_path.name, f"{tmp_path.name} (time known)"]
    user = pl.read_parquet(town_folder / "users.parquet")["user_id"][0]
    scores = [
        [each["score"] for each in castpoi(*words).json["recommendations"]]
        for at in ("2026-05-04T08:00:00Z", "2026-05-09T22:00:00Z")
        for words in [["recommend", tmp_path / "known", "--user", user, "--at", at, "--json"]]
    ]
    assert scores[0] != scores[1]


def test_a_training_killed_within_an_epoch_resumes_to_the_same_weights(
    castpoi: CommandLine, town_folder: Path, tmp_path: Path
) -> None:
    # steps so small that an epoch has some fifty of them
    words = [*TRAIN, "--set", "windows_per_step=1", "--epochs", "3", "--seed", "7"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert castpoi("train", town_folder, *words, "--out", whole).code == 0
    process = started("train", town_folder, *words, "--out", killed)
    state = checkpoint_dir_of(killed) / "checkpoint.json"
    deadline = time.monotonic() + 60
    while not state.is_file() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    assert len(json.loads(state.read_text())["epochs"]) < 3
    assert not killed.exists()
    again = castpoi("train", town_folder, *words, "--out", killed)
    assert again.code == 0, again.err
    assert "starts over" not in again.err
    log = (killed / "log.jsonl").read_text()
    assert '"event": "training resumed"' in log
    assert log.count("epoch finished") == 3
    assert not checkpoint_dir_of(killed).exists()
    model = "model.safetensors"
    assert (killed / model).read_bytes() == (whole / model).read_bytes()


def test_one_seed_gives_the_same_weights_on_two_threads(
    castpoi: CommandLine, town_folder: Path, tmp_path: Path
) -> None:
    words = ["train", town_folder, "--model", "castpoi", "--threads", "2", *TINY_WORDS]
    words += ["--epochs", "1", "--set", "windows_per_step=6", "--out"]
    for name in ("one", "other"):
        assert castpoi(*words, tmp_path / name).code == 0
    one, another = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other")
    )
    assert one == another


def test_two_processes_learn_the_same_as_one(
    castpoi: CommandLine, town_folder: Path, town: City, tmp_path: Path
) -> None:
    # without dropout, and with all places as candidates: each process draws others
    settings = ["dropout=0", "windows_per_step=3", "hard_candidates=1000", "drawn_candidates=1"]
    words = [*TRAIN, "--epochs", "1", "--set", "reader_forecast=false"]
    words += [word for setting in settings for word in ("--set", setting)]
    assert castpoi("train", town_folder, *words, "--out", tmp_path / "one").code == 0
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    both = [
        started("train", town_folder, *words, "--out", tmp_path / "two", RANK=str(rank), **world)
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert b"castpoi, trained on" in outputs[0][0]
    assert outputs[1][0] == b""  # only the first process prints
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    one, two = (centred_scores(tmp_path / name, town) for name in ("one", "two"))
    np.testing.assert_allclose(two, one, atol=1e-3)
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("one", "two")]
    losses = [
        [event["loss"] for event in map(json.loads, log) if event["event"] == "epoch finished"]
        for log in logs
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def centred_scores(run: Path, town: City) -> NDArray[np.float32]:
    """Scores of all places minus their mean, on which the loss does not depend."""
    ranker = load_run(run).ranker
    histories = town.trajectories.histories_before(town.targets("test"))
    scores = ranker.score(ranker.encode(histories))
    assert scores.std() > 0.01
    centred: NDArray[np.float32] = scores - scores.mean(axis=1, keepdims=True)
    return centred


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port
