"""Progress of long work: a protocol that the command line implements with bars."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, runtime_checkable


class Task(Protocol):
    """One piece of work in progress."""

    def advance(self, amount: float = 1) -> None:
        """Report that this much more is done."""


@runtime_checkable
class DescribedTask(Task, Protocol):
    """A task that can also show a short text."""

    def describe(self, text: str) -> None:
        """Show a text until the next one."""


def describe(task: Task, text: str) -> None:
    """Show a short text, if the task can."""
    if isinstance(task, DescribedTask):
        task.describe(text)


class Progress(Protocol):
    """Receives the progress of work."""

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Begin a piece of work; `total` is None if it is not known."""


class Silence:
    """Progress that is not shown."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Begin a piece of work."""
        yield _SilentTask()


class _SilentTask:
    def advance(self, amount: float = 1) -> None:
        pass


SILENCE: Final[Progress] = Silence()
