"""Training on Ray: its refusals in this process, and a cluster of which one machine is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from castpoi import __version__, prepare, synthesize
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.methods.registry import METHODS
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit, train
from tests.contract import odd_city
from tests.messages import refused
from tests.training.small import TINY


@pytest.fixture(scope="module")
def ray_train() -> Any:
    """The module, without the warnings of importing Ray."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from castpoi.scale import ray_train

    return ray_train


@pytest.fixture
def work(tmp_path: Path) -> dict[str, Any]:
    """What a process of the cluster receives."""
    odd_city().save(tmp_path / "city")
    return {
        "version": __version__,
        "city": tmp_path / "city",
        "out": tmp_path / "run",
        "start": None,
        "options": TrainingOptions(settings={**TINY, "epochs": "1", "threads": "1"}),
        "arguments": {"method": "castpoi-next", "seed": 3},
    }


def test_a_process_of_the_cluster_trains_as_the_command_does(
    ray_train: Any, work: dict[str, Any], tmp_path: Path
) -> None:
    ray_train._train(work)
    local = tmp_path / "local"
    train(work["city"], local, options=work["options"], **work["arguments"])
    name = "model.safetensors"
    assert (tmp_path / "run" / name).read_bytes() == (local / name).read_bytes()


def test_another_version_and_folders_that_a_machine_does_not_have_are_one_sentence_each(
    ray_train: Any, work: dict[str, Any], tmp_path: Path
) -> None:
    for name, value, kind in (
        ("version", "0.0.1", BadInput),
        ("start", tmp_path / "away", BrokenFolder),
        ("city", tmp_path / "away", BrokenFolder),
    ):
        with refused(kind):
            ray_train._train({**work, name: value})
    assert not (tmp_path / "run").exists()


def test_the_sentence_of_a_process_is_found_in_the_error_of_ray(ray_train: Any) -> None:
    from ray.train import WorkerGroupError

    sentence = BadInput("the run cannot be read")
    problem = WorkerGroupError("a long text", {1: RuntimeError("lost"), 0: sentence})
    assert ray_train.own_error(problem) is sentence
    assert ray_train.own_error(WorkerGroupError("lost", {0: RuntimeError()})) is None


def test_what_cannot_start_is_refused_before_ray_starts(
    ray_train: Any, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_train, "cores", lambda: [2, 1])
    monkeypatch.setattr(ray_train, "PATIENCE_SECONDS", 0)
    ray_train._wait_for_cores(3, 1)
    with refused(BadInput):
        ray_train._wait_for_cores(2, 2)
    in_memory = fit(odd_city(), METHODS.named("castpoi-next"), options=work["options"])
    for options in (
        TrainingOptions(start=in_memory),
        TrainingOptions(settings={"threads": "many"}),
    ):
        with refused(BadInput):
            ray_train.train_on_ray(work["city"], work["out"], workers=1, options=options)


@pytest.mark.slow
@pytest.mark.skipif("CASTPOI_RAY" not in os.environ, reason="takes minutes; set CASTPOI_RAY=1")
def test_a_killed_machine_costs_an_epoch_and_the_loss_is_that_of_one_process(
    tmp_path: Path,
) -> None:
    from tests.scale.lost_machine import SETTINGS

    town = prepare(synthesize(users=60, places=80, days=60), out=tmp_path / "town")
    fast = {
        "RAY_health_check_failure_threshold": "2",
        "RAY_health_check_period_ms": "2000",
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.scale.lost_machine", str(tmp_path / "town"), str(out)]
    subprocess.run(command, env=os.environ | fast, check=True, timeout=900)
    expected = fit(town, METHODS.named("castpoi-next"), options=TrainingOptions(settings=SETTINGS))
    found = (out / "log.jsonl").read_text()
    assert '"training resumed", "epochs": ' in found
    assert losses(found) == pytest.approx(losses(expected.log), rel=1e-5)
    assert {path.name for path in tmp_path.iterdir()} == {"town", "out"}


def losses(log: str) -> list[float]:
    events = map(json.loads, log.splitlines())
    return [event["loss"] for event in events if event["event"] == "epoch finished"]
