"""`castpoi reproduce`: all experiments of a suite, from a city to results."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import click

from castpoi.cli.compare import as_json, show_comparison
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, Seeds, SeveralValues, is_numbers, options_of
from castpoi.cli.plans import PACE_TYPES, Job, entry_of
from castpoi.evaluation.compare import compare
from castpoi.evaluation.result import Result
from castpoi.experiments.estimate import PastRun
from castpoi.experiments.experiment import CityFolder, Experiment, experiments_of
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.runner import Pace
from castpoi.experiments.status import SuiteStatus, check_rows
from castpoi.experiments.suite import read_suite, suite_names


def _is_value(word: str) -> bool:
    return not word.startswith("-")


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The options of `castpoi reproduce`."""

    suite: Annotated[str, "NAME"]
    """One of the suites below, or a file of your own (docs/reproduce.md)."""
    seeds: Seeds = ()
    """Seeds, as in '--seeds 42 43 44'; by default those of the suite."""
    out: Path
    """Folder for everything."""
    only: Annotated[tuple[str, ...], "ROW..."] = ()
    """Only these rows; give CITY before this option."""
    dry_run: bool = False
    """List the experiments and their time; run none."""


@click.command(
    cls=SeveralValues,
    several={"--seeds": is_numbers, "--only": _is_value},
    epilog=f"Suites: {', '.join(suite_names())}.",
)
@click.argument("cities", metavar="CITY...", nargs=-1, type=FOLDER)
@options_of(_Options, "options")
@options_of(Pace, "pace", types=PACE_TYPES)
@output_options
def reproduce(console: Console, cities: tuple[Path, ...], *, options: _Options, pace: Pace) -> None:
    """Run all experiments of a suite on a CITY that are not in --out yet.

    Every row, city and seed is trained and evaluated. The command may be stopped or killed at any
    time; given again, it resumes. An experiment that fails does not stop the others.
    """
    suite = read_suite(options.suite)
    folders = cities or tuple(map(Path, suite.cities))
    if not folders:
        place = ", before --only" if options.only else ""  # which takes all words that follow it
        raise click.UsageError(f"Name a CITY{place}; this suite names none.")
    found = [CityFolder.at(each) for each in folders]
    experiments = experiments_of(suite, found, tuple(dict.fromkeys(options.seeds)), options.only)
    folder = SuiteFolder(options.out)
    check_rows(folder, suite)
    plan = folder.plan(experiments, any_code=pace.any_code)
    job = Job(
        console=console, plan=plan, folder=folder, pace=pace, noun="experiments",
        past_runs=[PastRun.of(record) for _, record in folder.found()],
    )  # fmt: skip
    if options.dry_run:
        job.show({"suite": suite.name})
        return
    failures = job.run(partial(SuiteStatus, folder, suite, plan))
    failed = {failure.experiment.name for failure in failures}
    done = [each.experiment for each in plan if each.experiment.name not in failed]
    page = shlex.join(["castpoi", "report", str(options.out)])
    content = {
        "suite": suite.name,
        "done": [entry_of(each) for each in done],
        "cities": _show_results(console, done, folder),
        "report": page,
    }
    last = f"Tables, figures and tests on one page: {page}" if done else ""
    job.finish(content, failures, title=suite.name, last=last)


def _show_results(
    console: Console, done: Sequence[Experiment], folder: SuiteFolder
) -> dict[str, object]:
    """Compare the results of each city, one line per row of the suite; known time apart."""
    by_city: dict[str, list[Result]] = {}
    for experiment in done:
        result = Result.load(folder.result(experiment))
        labelled = {**result.manifest, "method": experiment.row.label}
        city = experiment.city.name + (" (time known)" if result.known_time else "")
        by_city.setdefault(city, []).append(replace(result, manifest=labelled))
    comparisons = {city: compare(results) for city, results in by_city.items()}
    for city, comparison in comparisons.items():
        console.print(f"{city}:")
        show_comparison(console, comparison)
    return {city: as_json(comparison) for city, comparison in comparisons.items()}
