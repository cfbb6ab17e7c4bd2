"""How long work tells how far it is, without knowing who listens.

The command line passes bars; tests and libraries pass nothing and hear nothing.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol


class Task(Protocol):
    """One piece of work under way."""

    def advance(self, amount: float = 1) -> None:
        """Say that this much more is done."""


class Progress(Protocol):
    """Someone who wants to know how far the work is."""

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Begin a piece of work; `total` is None where the end cannot be foreseen."""


class Silence:
    """Progress that nobody watches."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Begin a piece of work and say nothing of it."""
        yield _SilentTask()


class _SilentTask:
    def advance(self, amount: float = 1) -> None:
        pass


SILENCE: Final[Progress] = Silence()
"""The default of everything that can show progress."""
