"""Progress of work: bars in a terminal, lines in a notebook, nothing anywhere else."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

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

_EVERY_SECONDS: Final = 1.0  # time between two updates of a notebook; shorter work is not shown


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


class NotebookLines:
    """A line of text for each piece of work under way, in one output of a cell."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._lines: list[_Line] = []
        self._shown_at = time.monotonic()

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Show a line while the block runs, and afterwards how long it took."""
        line = _Line(name, total, self.refresh)
        self._lines.append(line)
        try:
            yield line
        finally:
            self._lines.remove(line)
            if not self._lines and line.seconds >= _EVERY_SECONDS:
                self._show(f"{name}: {line.seconds:.0f} s")

    def refresh(self) -> None:
        """Show the lines, unless that was done a moment ago."""
        if time.monotonic() - self._shown_at >= _EVERY_SECONDS:
            self._shown_at = time.monotonic()
            self._show("\n".join(map(str, self._lines)))


@dataclass(eq=False)
class _Line:
    name: str
    total: float | None
    refresh: Callable[[], None]
    done: float = 0
    text: str = ""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        self.refresh()

    def describe(self, text: str) -> None:
        self.text = text
        self.refresh()

    def __str__(self) -> str:
        share = f"{self.done / self.total:.0%}" if self.total else ""
        return " · ".join(filter(None, [self.name, share, self.text, f"{self.seconds:.0f} s"]))


def _output_of_cell() -> Callable[[str], None]:
    """Shows a text in one output of the running cell, in place of the text before it."""
    display: Any = import_module("IPython.display")  # is there wherever a notebook runs
    handle, is_new = display.DisplayHandle(), [True]

    def show(text: str) -> None:
        display.display(display.Pretty(text), display_id=handle.display_id, update=not is_new.pop())
        is_new.append(False)

    return show


def shown() -> Progress:
    """Lines in a notebook, bars if standard error is a terminal, otherwise nothing."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if console.is_jupyter:
        return NotebookLines(_output_of_cell())
    return Bars(console) if console.is_terminal else SILENCE
