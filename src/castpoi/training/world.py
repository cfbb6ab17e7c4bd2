"""Which of several processes this one is, as `torchrun` says in the environment.

Known without torch, since counted methods do not need it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class World:
    """This process among those that train together."""

    rank: int = 0
    """Its number."""
    ranks: int = 1
    """How many there are."""
    local_rank: int = 0
    """Its number on this machine, which is also the number of its device."""

    @property
    def is_first(self) -> bool:
        """Whether it is the one that writes and speaks."""
        return self.rank == 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "World":
        """The world torchrun has made, or one process alone."""
        words = os.environ if environment is None else environment
        if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= words.keys():
            return cls()
        rank = int(words["RANK"])
        local_rank = int(words.get("LOCAL_RANK", rank))
        return cls(rank=rank, ranks=int(words["WORLD_SIZE"]), local_rank=local_rank)
