"""Output of a command: tables and sentences, or one JSON object.

Tables and sentences go to standard output, progress and logs to standard error. With `--json`
standard output is exactly one JSON object.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import click
from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from castpoi.core.progress import SILENCE, Progress
from castpoi.library.progress import Bars


@dataclass(frozen=True)
class Console:
    """The output of one command."""

    as_json: bool  # print one JSON object instead of sentences
    quiet: bool = False  # no progress bars
    out: RichConsole = field(default_factory=lambda: RichConsole(soft_wrap=True, highlight=False))
    err: RichConsole = field(
        default_factory=lambda: RichConsole(stderr=True, soft_wrap=True, highlight=False)
    )

    def print(self, text: str = "") -> None:
        """Print a sentence, not with `--json`. Markup is not interpreted."""
        if not self.as_json:
            self.out.print(text, markup=False)

    def note(self, text: str) -> None:
        """Print a remark to standard error."""
        self.err.print(text, markup=False)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        title: str | None = None,
        left: int = 1,
    ) -> None:
        """Print a table, not with `--json`; the first `left` columns are text, the others numbers.

        Markup is not interpreted.
        """
        if self.as_json:
            return
        heading = None if title is None else Text(title, style="bold")
        table = Table(title=heading, title_justify="left", header_style="bold")
        for position, column in enumerate(columns):
            table.add_column(Text(column), justify="left" if position < left else "right")
        for row in rows:
            table.add_row(*map(Text, row))
        self.out.print(table, soft_wrap=False)

    def with_room_for(self, cells: Sequence[Sequence[str]]) -> "Console":
        """The console; if it writes to a file, it is made wide enough for a table."""
        if self.out.is_terminal:
            return self
        width = max(width_of(cells), self.out.width)
        return replace(self, out=RichConsole(soft_wrap=True, highlight=False, width=width))

    def result(self, content: dict[str, Any]) -> None:
        """Print the one JSON object of `--json`; nothing otherwise."""
        if self.as_json:
            click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False))

    def progress(self, *, shows_remaining: bool = True) -> Progress:
        """Progress bars, if standard error is a terminal; `shows_remaining` adds the time left."""
        if self.quiet or not self.err.is_terminal:
            return SILENCE
        return Bars(self.err, shows_remaining=shows_remaining)


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--json`, `--quiet` and `--debug`, and a `Console` as first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
    @click.option("--quiet", is_flag=True, help="No progress bars.")
    @click.option("--debug", is_flag=True, help="Show the full traceback of an error.")
    @wraps(command)
    def wrapped(*arguments: Any, as_json: bool, quiet: bool, debug: bool, **options: Any) -> None:
        command(Console(as_json=as_json, quiet=quiet), *arguments, **options)

    return wrapped


def width_of(cells: Sequence[Sequence[str]]) -> int:
    """Characters that a table needs: the widest cell of each column, plus rules and blanks."""
    return sum(max(map(len, column)) + 3 for column in zip(*cells, strict=True)) + 1
