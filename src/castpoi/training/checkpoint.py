"""Checkpoints: a training that is killed at any moment resumes with the same result.

    RUN.training/manifest.json           marks the folder as ours
    RUN.training/checkpoint.json         identity of the training, epochs, file of its tensors
    RUN.training/epoch-N.safetensors     weights, running mean, best weights, optimizer
    RUN.training/log.jsonl               the events so far

The tensors are written first, to a new file; then checkpoint.json is replaced in one move, so it
always names complete tensors. Loading runs no code from the folder.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from castpoi.core.config import differences
from castpoi.core.errors import BrokenFolder
from castpoi.core.files import read_json, write_json
from castpoi.core.staging import sync
from castpoi.evaluation.metrics import Metrics

STATE: Final = "checkpoint.json"

_TENSORS: Final = "epoch-{epoch}.safetensors"


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """The numbers of one epoch."""

    at_utc: str
    epoch: int  # the first is 1
    loss: float  # mean over its targets
    learning_rate: float  # of its last step
    metrics: Metrics  # on validation; empty if the city has none
    seconds: float  # validation included
    targets_per_second: float  # without validation


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """State of a training after an epoch."""

    records: list[EpochRecord]
    tensors: Mapping[str, Tensor]  # weights and optimizer
    threads: int  # a resumed training must use as many, since they change the order of sums


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """The folder with the checkpoints of one training."""

    folder: Path
    identity: Mapping[str, Any]  # all that the training depends on: version, city, seed, configs

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and remove the previous one."""
        name = _TENSORS.format(epoch=len(checkpoint.records))
        content = save({name: each.contiguous() for name, each in checkpoint.tensors.items()})
        (self.folder / name).write_bytes(content)
        sync(self.folder / name)
        state = {
            "identity": self.identity,
            "threads": checkpoint.threads,
            "epochs": [asdict(record) for record in checkpoint.records],
            "tensors": name,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        write_json(self.folder / STATE, state)
        sync(self.folder)  # before the previous tensors are removed
        self._remove_tensors(keep=name)

    def load(self) -> Checkpoint | None:
        """The last checkpoint, or None if there is none.

        Raises:
            BrokenFolder: it belongs to another training, or is damaged.
        """
        path = self.folder / STATE
        if not path.is_file():
            return None
        state = read_json(path)
        if different := differences(state.get("identity", {}), self.identity):
            raise BrokenFolder(f"it is of another training ({different})")
        try:
            content = (self.folder / state["tensors"]).read_bytes()
            if hashlib.sha256(content).hexdigest() != state["sha256"]:
                raise BrokenFolder("its tensors have changed since it was written")
            return Checkpoint(
                records=[EpochRecord(**record) for record in state["epochs"]],
                tensors=load(content),
                threads=state["threads"],
            )
        except (OSError, KeyError, TypeError, SafetensorError) as problem:
            raise BrokenFolder(f"it is damaged: {problem}") from problem

    def clear(self) -> None:
        """Remove all checkpoints."""
        (self.folder / STATE).unlink(missing_ok=True)
        self._remove_tensors(keep=None)

    def _remove_tensors(self, *, keep: str | None) -> None:
        for path in self.folder.glob(_TENSORS.format(epoch="*")):
            if path.name != keep:
                path.unlink()
