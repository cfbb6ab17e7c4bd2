"""Options of commands that run many experiments: how many at once, on how many cores, or none."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def paced(noun: str) -> Callable[[Command], Command]:
    """Give a command `--jobs`, `--threads`, `--dry-run` and `--any-code`, in words for a noun."""
    options = (
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help=f"{noun.capitalize()} side by side.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            help="Cores to share among the jobs; all unless told otherwise.",
        ),
        click.option(
            "--dry-run", is_flag=True, help=f"List the {noun} and their time; run none of them."
        ),
        click.option(
            "--any-code",
            is_flag=True,
            help=f"Count {noun} that another version of the code has made.",
        ),
    )

    def wrapped(command: Command) -> Command:
        for option in reversed(options):  # so that --help shows them in this order
            command = option(command)
        return command

    return wrapped
