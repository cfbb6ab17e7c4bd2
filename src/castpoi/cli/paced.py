"""Commands that run many experiments: how many at once, on how many cores, and how it is shown."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from castpoi.cli.console import Console
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.plan import Planned
from castpoi.experiments.record import Record
from castpoi.experiments.runner import Failure, Pace, cores, run_plan
from castpoi.training.job import ignore

Command = Callable[..., None]


def paced(noun: str) -> Callable[[Command], Command]:
    """Give a command `--jobs`, `--threads` and `--any-code`, as a `pace`, and `--dry-run`.

    Their help speaks of a noun, such as experiments.
    """

    def paced_command(command: Command) -> Command:
        @click.option(
            "--jobs",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help=f"{noun.capitalize()} side by side.",
        )
        @click.option(
            "--threads",
            type=click.IntRange(min=1),
            help="Cores to share among the jobs; all by default.",
        )
        @click.option(
            "--dry-run", is_flag=True, help=f"List the {noun} and their time; run none of them."
        )
        @click.option(
            "--any-code",
            is_flag=True,
            help=f"Count {noun} that another version of the code has made.",
        )
        @wraps(command)
        def wrapped(
            *arguments: Any, jobs: int, threads: int | None, any_code: bool, **options: Any
        ) -> None:
            pace = Pace(jobs=jobs, threads=threads or cores(), any_code=any_code)
            command(*arguments, pace=pace, **options)

        return wrapped

    return paced_command


def run_shown(
    console: Console,
    plan: Sequence[Planned],
    folder: SuiteFolder,
    pace: Pace,
    *,
    record: Callable[[], Record],
    name: str,
) -> list[Failure]:
    """Run what a plan lacks, with a bar and a remark for each experiment; what failed."""
    with console.progress(shows_remaining=False) as progress:
        return run_plan(
            plan,
            folder,
            record=record,
            pace=pace,
            progress=progress,
            say=ignore if console.quiet else console.note,
            name=name,
        )


def end_with(failures: Sequence[Failure]) -> None:
    """End the command as failed, if something has."""
    if failures:
        click.get_current_context().exit(1)
