"""Rank of this process among those that `torchrun` has started, from the environment.

It does not import torch, which counted methods do not need.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class World:
    """Rank of this process, and number of processes."""

    rank: int = 0
    """Its number among all processes."""
    ranks: int = 1
    """Number of processes."""
    local_rank: int = 0
    """Its number on this machine, and of its device."""

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
