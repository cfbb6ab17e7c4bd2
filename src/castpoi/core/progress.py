"""How long work tells how far it is, without knowing who listens.

The command line passes bars; tests and libraries pass nothing and hear nothing.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, runtime_checkable


class Task(Protocol):
    """One piece of work under way."""

    def advance(self, amount: float = 1) -> None:
        """Say that this much more is done."""


@runtime_checkable
class TellingTask(Task, Protocol):
    """A task that can also show in a few words what is going on; not every one can."""

    def describe(self, text: str) -> None:
        """Show these words until others come."""


def describe(task: Task, text: str) -> None:
    """Say in a few words what is going on, to whoever can show it."""
    if isinstance(task, TellingTask):
        task.describe(text)


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
"""For those whom nobody watches."""
