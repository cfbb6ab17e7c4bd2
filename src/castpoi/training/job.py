"""A training as a trainer receives it: the options of the user, the job, the processes.

It does not import torch, which counted methods do not need.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.core.progress import Progress
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.run import Run, RunLog


def ignore(sentence: str) -> None:
    """Ignore a warning."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How to train a learned method."""

    preset: str | None = None
    """Settings to start from, by name.  [default: the method's first preset]"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Changes to the preset, by name, as text."""
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    """Where to train."""
    checkpoint_dir: Path | None = None
    """Folder for checkpoints and the log; None for none."""
    resume: bool = True
    """Resume the same training if it was interrupted."""
    tensorboard: Path | None = None
    """Write learning curves for TensorBoard (extra castpoi[tensorboard])."""
    start: Run | None = None
    """The run from which to continue; None to start from random weights."""
    warn: Callable[[str], None] = ignore
    """Receives warnings for the user."""

    @property
    def given(self) -> list[str]:
        """The options that were set, in words of the command line."""
        named = [
            ("--preset", self.preset is not None),
            ("--device", self.device != "cpu"),
            ("--from", self.start is not None),
        ]
        return [name for name, is_set in named if is_set] + list(self.settings)


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """One training of a learned method."""

    method: str
    part: str | None  # the split to predict later, never read; None if none is held out
    seed: int
    log: RunLog
    progress: Progress
    options: TrainingOptions  # with the preset, and with the settings that define the method

    def check_cpu(self) -> None:
        """Refuse another device, for a method that cannot use one."""
        device = self.options.device
        if device != "cpu":
            raise BadInput(f"{self.method} trains on the CPU, not on {device}; leave out --device")


class Trainer(Protocol):
    """The function that trains a learned method; named in `Method.trainer`."""

    def __call__(self, city: City, job: TrainingJob) -> SavableRanker[Any]:
        """Learn from `city.train`; one seed gives one ranker."""


@dataclass(frozen=True, kw_only=True)
class World:
    """Rank of this process among those that `torchrun` has started."""

    rank: int = 0
    ranks: int = 1  # number of processes
    local_rank: int = 0  # on this machine; also the number of its CUDA device

    @property
    def is_first(self) -> bool:
        """Whether it is the process that writes files and prints."""
        return self.rank == 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "World":
        """The processes started by torchrun, or a single one."""
        words = os.environ if environment is None else environment
        if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= words.keys():
            return cls()
        rank = int(words["RANK"])
        local_rank = int(words.get("LOCAL_RANK", rank))
        return cls(rank=rank, ranks=int(words["WORLD_SIZE"]), local_rank=local_rank)
