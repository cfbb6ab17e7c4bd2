"""`castpoi reproduce`: all experiments of a suite, from a city to results."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from castpoi.cli.console import Console, speaks
from castpoi.cli.options import SEED, SeveralValues
from castpoi.cli.paced import end_with, paced, run_shown
from castpoi.cli.suite_tables import show_outcome, show_plan
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.plan import plan_of
from castpoi.experiments.record import SuiteRecord, check_rows
from castpoi.experiments.runner import Pace
from castpoi.experiments.suite_file import read_suite, suite_names


def _is_numbers(word: str) -> bool:
    return word.replace(",", "").isdigit()


def _is_value(word: str) -> bool:
    return not word.startswith("-")


@click.command(cls=SeveralValues, several={"--seeds": _is_numbers, "--only": _is_value})
@click.argument("cities", metavar="CITY...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--suite",
    "wanted",
    required=True,
    metavar="NAME",
    help=f"{', '.join(suite_names())}, or a file of your own (docs/reproduce.md).",
)
@click.option(
    "--seeds",
    multiple=True,
    type=SEED,
    metavar="N...",
    help="Seeds, as in '--seeds 42 43 44'; those of the suite unless told otherwise.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for all of it.")
@click.option("--only", multiple=True, metavar="ROW...", help="Only these rows; CITY comes first.")
@paced("experiments")
@click.option("--keep-runs", is_flag=True, help="Keep the trained weights.")
@speaks
def reproduce(
    console: Console,
    cities: tuple[Path, ...],
    *,
    wanted: str,
    seeds: tuple[int, ...],
    out: Path,
    only: tuple[str, ...],
    pace: Pace,
    dry_run: bool,
    keep_runs: bool,
) -> None:
    """Run all experiments of a suite on a CITY that are not in --out yet.

    Every row, city and seed is trained and evaluated. The command may be stopped or killed at any
    time; given again, it goes on where it was. An experiment that fails does not stop the others.
    """
    suite = read_suite(wanted)
    folders = cities or tuple(map(Path, suite.cities))
    if not folders:
        place = ", before --only" if only else ""  # which takes all words that follow it
        raise click.UsageError(f"Name a CITY{place}; this suite names none.")
    experiments = experiments_of(
        suite,
        [CityFolder.at(each) for each in folders],
        tuple(dict.fromkeys(seeds)) or suite.seeds,
        only,
    )
    folder = SuiteFolder(out)
    check_rows(folder, suite)
    plan = plan_of(experiments, folder, any_code=pace.any_code)
    if dry_run:
        show_plan(console, plan, folder, pace, about={"suite": suite.name})
        return
    record = partial(SuiteRecord, folder, suite, plan)
    pace = replace(pace, keep_runs=keep_runs)
    failures = run_shown(console, plan, folder, pace, record=record, name="suite")
    show_outcome(console, suite, plan, folder, failures)
    end_with(failures)
