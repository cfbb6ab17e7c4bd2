import hashlib
from pathlib import Path

import pytest
import torch

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import read_json, write_json
from castpoi.training.checkpoint import STATE, Checkpoint, Checkpoints
from tests import trapped_files
from tests.messages import refused
from tests.training.test_loop import epoch

IDENTITY = {"seed": 1, "model": {"width": 8, "edges": [1.0, 2.0]}}


def checkpoints(folder: Path, **changes: object) -> Checkpoints:
    return Checkpoints(folder=folder, identity=IDENTITY | changes)


def checkpoint(epochs: int) -> Checkpoint:
    return Checkpoint(
        records=[epoch(number, {"MRR": 0.1 * number, "HR@10": None}) for number in range(epochs)],
        tensors={
            "place": torch.arange(6.0).view(2, 3).mT + epochs,
            "step": torch.tensor(2.0),
        },
        threads=3,
    )


def test_a_loaded_checkpoint_equals_the_saved_one(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(checkpoint(2))
    found = checkpoints(tmp_path).load()
    assert found is not None
    assert found.records == checkpoint(2).records
    assert found.threads == 3
    for name, tensor in checkpoint(2).tensors.items():
        assert torch.equal(found.tensors[name], tensor)


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert checkpoints(tmp_path).load() is None


def test_only_the_last_checkpoint_is_kept(tmp_path: Path) -> None:
    for epochs in (1, 2, 3):
        checkpoints(tmp_path).save(checkpoint(epochs))
    assert sorted(path.name for path in tmp_path.iterdir()) == [STATE, "epoch-3.safetensors"]


def test_incomplete_tensors_after_a_kill_are_ignored(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(checkpoint(1))
    (tmp_path / "epoch-2.safetensors").write_bytes(b"half of")
    found = checkpoints(tmp_path).load()
    assert found is not None
    assert len(found.records) == 1
    checkpoints(tmp_path).save(checkpoint(2))
    assert len((checkpoints(tmp_path).load() or checkpoint(0)).records) == 2


def test_a_checkpoint_of_another_training_is_refused_with_the_differences(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(checkpoint(1))
    other = checkpoints(tmp_path, seed=2, model={"width": 16, "edges": [1.0, 2.0]})
    with refused(BrokenFolder):
        other.load()


def test_changed_tensors_are_noticed(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(checkpoint(1))
    path = tmp_path / "epoch-1.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with refused(BrokenFolder):
        checkpoints(tmp_path).load()


@pytest.mark.parametrize("kind", trapped_files.KINDS)
def test_tensors_that_would_run_code_are_not_opened(tmp_path: Path, kind: str) -> None:
    checkpoints(tmp_path).save(checkpoint(1))
    content = trapped_files.content(kind, tmp_path / "trap")
    (tmp_path / "epoch-1.safetensors").write_bytes(content)
    state = read_json(tmp_path / STATE)
    write_json(tmp_path / STATE, state | {"sha256": hashlib.sha256(content).hexdigest()})
    with refused(BrokenFolder):
        checkpoints(tmp_path).load()
    assert not (tmp_path / "trap").exists()


def test_missing_tensors_are_noticed(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(checkpoint(1))
    (tmp_path / "epoch-1.safetensors").unlink()
    with refused(BrokenFolder):
        checkpoints(tmp_path).load()


def test_clearing_removes_only_checkpoints(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(checkpoint(1))
    (tmp_path / "log.jsonl").write_text("")
    checkpoints(tmp_path).clear()
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
