"""Progress in a terminal or a notebook: bars while work runs, nothing where nobody looks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from castpoi.core.progress import SILENCE, Progress, Task


class Bars:
    """One bar for each piece of work; the display is there while there is work."""

    def __init__(self, console: Console, *, shows_remaining: bool = True) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *((TimeRemainingColumn(),) if shows_remaining else ()),
        )
        self.display = RichProgress(*columns, console=console, transient=True)

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Show a bar while the block runs."""
        if not self.display.tasks:
            self.display.start()
        bar = self.display.add_task(name, total=total)
        try:
            yield _Bar(self.display, bar, name)
        finally:
            self.display.remove_task(bar)
            if not self.display.tasks:
                self.display.stop()


@dataclass(frozen=True)
class _Bar:
    display: RichProgress
    bar: TaskID
    name: str

    def advance(self, amount: float = 1) -> None:
        self.display.advance(self.bar, amount)

    def describe(self, text: str) -> None:
        self.display.update(self.bar, description=f"{self.name} · {text}")


def shown(*, quiet: bool = False) -> Progress:
    """Bars in a notebook, or if standard error is a terminal."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if quiet or not (console.is_terminal or console.is_jupyter):
        return SILENCE
    return Bars(console)
