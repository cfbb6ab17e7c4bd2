"""Progress of long work: a protocol that the command line implements with bars."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol


class Task(Protocol):
    """One piece of work in progress."""

    def advance(self, amount: float = 1) -> None:
        """Report that this much more is done."""

    def describe(self, text: str) -> None:
        """Show a short text until the next one."""


class Progress(Protocol):
    """Receives the progress of work."""

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Begin a piece of work; `total` is None if it is not known."""


class Silence:
    """Progress that is not shown; also its tasks."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Begin a piece of work."""
        yield self

    def advance(self, amount: float = 1) -> None:
        """Show nothing."""

    def describe(self, text: str) -> None:
        """Show nothing."""


SILENCE: Final = Silence()
