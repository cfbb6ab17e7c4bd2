"""Checkpoints: a training that is killed at any moment goes on as if nothing had happened.

    RUN.training/manifest.json           says that the folder is ours
    RUN.training/checkpoint.json         which training it is, its epochs, its tensors' file
    RUN.training/epoch-N.safetensors     weights, running mean, best weights, optimizer
    RUN.training/log.jsonl               what happened so far

The tensors are written first, under a name of their own; then checkpoint.json is replaced in one
move. So at any moment it speaks of tensors that are whole. Reading runs no code from the folder.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import read_json, write_json
from castpoi.core.staging import sync
from castpoi.training.selection import EpochRecord

STATE: Final = "checkpoint.json"

_TENSORS: Final = "epoch-{epoch}.safetensors"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where a training stands after an epoch."""

    records: list[EpochRecord]
    """All epochs so far."""
    tensors: Mapping[str, Tensor]
    """Weights and optimizer, by name."""
    frame: Mapping[str, int] = field(default_factory=dict)
    """What the machine decided at the start and must stay: threads."""


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """The folder in which the checkpoints of one training rest."""

    folder: Path
    identity: Mapping[str, Any]
    """What makes two trainings the same: version, city, seed, configs."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and forget the one before."""
        name = _TENSORS.format(epoch=len(checkpoint.records))
        content = save({name: each.contiguous() for name, each in checkpoint.tensors.items()})
        (self.folder / name).write_bytes(content)
        sync(self.folder / name)
        state = {
            "identity": self.identity,
            "frame": dict(checkpoint.frame),
            "epochs": [record.to_dict() for record in checkpoint.records],
            "tensors": name,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        write_json(self.folder / STATE, state)
        sync(self.folder)  # before the tensors of the last checkpoint go
        self._remove_tensors(but=name)

    def load(self) -> Checkpoint | None:
        """The last checkpoint, or None if there is none.

        Raises:
            BrokenFolder: it is of another training, or damaged; the text says why.
        """
        path = self.folder / STATE
        if not path.is_file():
            return None
        state = read_json(path)
        different = differences(state.get("identity", {}), self.identity)
        if different:
            raise BrokenFolder(f"it is of another training ({different})")
        try:
            content = (self.folder / state["tensors"]).read_bytes()
            if hashlib.sha256(content).hexdigest() != state["sha256"]:
                raise BrokenFolder("its tensors are not those it was written with")
            return Checkpoint(
                records=[EpochRecord(**record) for record in state["epochs"]],
                tensors=load(content),
                frame=state["frame"],
            )
        except (OSError, KeyError, TypeError, SafetensorError) as problem:
            raise BrokenFolder(f"it is damaged: {problem}") from problem

    def clear(self) -> None:
        """Forget all checkpoints."""
        (self.folder / STATE).unlink(missing_ok=True)
        self._remove_tensors(but=None)

    def _remove_tensors(self, *, but: str | None) -> None:
        for path in self.folder.glob(_TENSORS.format(epoch="*")):
            if path.name != but:
                path.unlink()


def differences(one: Mapping[str, Any], other: Mapping[str, Any], within: str = "") -> str:
    """In what two nested mappings differ, in words like `seed 1, not 2`; empty if in nothing."""
    found = []
    for name in sorted({*one, *other}):
        mine, theirs = one.get(name), other.get(name)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            found.append(differences(mine, theirs, f"{within}{name}."))
        elif mine != theirs:
            found.append(f"{within}{name} {_short(mine)}, not {_short(theirs)}")
    return "; ".join(filter(None, found))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 20 else text[:12]
