"""The arguments of every attack: a folder, small inputs, a seed, and progress reports."""

import sys
from dataclasses import dataclass
from pathlib import Path

from chaos.commands import Inputs


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The arguments of one attack."""

    folder: Path
    """A work folder: empty at the start, removed at the end."""
    inputs: Inputs
    seed: int
    workers: int = 2
    """Commands that run at the same time."""

    def report(self, text: str) -> None:
        """Report progress on standard error."""
        print(f"  {text}", file=sys.stderr, flush=True)
