"""`castpoi reproduce`: all experiments of a suite; `castpoi tune`: a search of settings.

Both show a plan, run what is missing, and end with what failed (`Job`).
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from castpoi.cli.compare import as_json, show_comparison
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import (
    FOLDER,
    Seed,
    Seeds,
    SeveralValues,
    is_numbers,
    method_list,
    options_of,
)
from castpoi.core.config import pairs_of
from castpoi.core.quantities import duration_words
from castpoi.evaluation.compare import compare
from castpoi.evaluation.result import Result
from castpoi.experiments.estimate import Estimate, Estimator, PastRun, remaining
from castpoi.experiments.experiment import CityFolder, Experiment, experiments_of
from castpoi.experiments.folder import Planned, SuiteFolder, SuiteStatus, check_rows
from castpoi.experiments.runner import Failure, Pace, Status, run_plan
from castpoi.experiments.suite import DEFAULT_SEEDS, read_suite, suite_names
from castpoi.methods.registry import METHODS
from castpoi.training.job import ignore

if TYPE_CHECKING:
    from castpoi.experiments.tune import Tuning

PACE_TYPES: Final = {"jobs": click.IntRange(min=1), "threads": click.IntRange(min=1)}
_METRICS: Final = ("MRR", "HR@10")
_LEARNED = [method for method in METHODS if method.needs_training]


@dataclass(frozen=True, kw_only=True)
class Job:
    """The experiments of a command: those that are done, and those to run."""

    console: Console
    plan: Sequence[Planned]
    folder: SuiteFolder
    pace: Pace
    past_runs: Sequence[PastRun]
    noun: str  # name of several experiments

    def run(self, status: Callable[[], Status]) -> list[Failure]:
        """Run the experiments that are not done; returns those that failed."""
        return run_plan(
            self.plan,
            self.folder,
            status=status,
            past_runs=self.past_runs,
            pace=self.pace,
            progress=self.console.progress(shows_remaining=False),
            report=ignore if self.console.quiet else self.console.note,
            name=self.noun,
        )

    def show(self, about: Mapping[str, Any]) -> None:
        """List the experiments, which of them are done, and how long the others may take."""
        estimator = Estimator(self.past_runs, threads=self.pace.threads_per_job)
        guessed = [
            (each, Estimate(None, "") if each.is_done else estimator.estimate(each.experiment))
            for each in self.plan
        ]
        to_run = [guess for each, guess in guessed if not each.is_done]
        left = remaining(to_run, [], jobs=self.pace.jobs)
        rows = [
            [
                *(each.experiment.name, each.why or "done", guess.source),
                duration_words(guess.seconds) if guess.source else "",
            ]
            for each, guess in guessed
        ]
        self.console.table(
            [self.noun.removesuffix("s"), "state", "time from", "time"], rows, left=3
        )
        time_left = f": {left.words} on {self.pace.cores} cores" if to_run else ""
        self.console.print(
            f"{len(to_run)} of {len(self.plan)} {self.noun} are to be run{time_left}."
        )
        listed = [
            {**entry_of(each.experiment), "why": each.why, **asdict(guess)}
            for each, guess in guessed
        ]
        self.console.result(
            {
                **about,
                "out": str(self.folder.root),
                self.noun: listed,
                "to_run": len(to_run),
                "seconds": round(left.seconds, 1),
                "all_known": left.is_complete,
            }
        )

    def finish(
        self, content: Mapping[str, Any], failures: Sequence[Failure], *, title: str, last: str
    ) -> None:
        """Show what failed and how much is done, then a last line; exit with 1 after a failure."""
        print_line, root = self.console.print, self.folder.root
        failed = []
        for failure in failures:
            log = str(self.folder.log(failure.experiment))
            print_line(f"FAILED {failure.experiment.name}: {failure.problem}")
            print_line(f"       its log: {log}")
            failed.append({**entry_of(failure.experiment), "problem": failure.problem, "log": log})
        before = sum(each.is_done for each in self.plan)
        print_line(
            f"{title}: {len(self.plan) - before - len(failed)} done now, {before} before, "
            f"{len(failed)} failed. Everything is in {root}"
            + ("; the same command tries the failed ones again." if failed else ".")
        )
        if last:
            print_line(last)
        names = ", ".join(sorted(each.experiment.name for each in failures))
        error = {"error": f"{len(failed)} {self.noun} failed: {names}"} if failed else {}
        about = {"out": str(root), "there_before": before, "failed": failed}
        self.console.result({**content, **about, **error})
        if failed:
            click.get_current_context().exit(1)


def entry_of(experiment: Experiment) -> dict[str, object]:
    """An experiment for JSON."""
    return {
        "name": experiment.name,
        "city": experiment.city.name,
        "row": experiment.row.name,
        "seed": experiment.seed,
    }


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
    several={"--seeds": is_numbers, "--only": lambda word: not word.startswith("-")},
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


@dataclass(frozen=True, kw_only=True)
class _TuneOptions:
    """The options of `castpoi tune`."""

    model: Annotated[str, "NAME"]
    """A learned method, see below."""
    preset: Annotated[str, "NAME"] | None = None
    """Settings to start from, see below.  [default: the method's first]"""
    tries: Annotated[tuple[str, ...], "NAME=A,B..."]
    """Values of a setting to try; with several --try all their combinations."""
    changes: Annotated[tuple[str, ...], "NAME=VALUE"] = ()
    """Change one setting in all trials, e.g. epochs=10."""
    at_most: Annotated[int, click.IntRange(min=1), "N"] | None = None
    """Try at most N of the combinations, drawn at random by the seed."""
    seed: Seed = DEFAULT_SEEDS[0]
    """Seed of every training."""
    out: Path
    """Folder for everything."""
    dry_run: bool = False
    """List the trials and their time; run none."""


@click.command(epilog=method_list("Methods that are learned, and their [presets]:", _LEARNED))
@click.argument("city", type=FOLDER)
@options_of(_TuneOptions, "options", names={"tries": "try", "changes": "set"})
@options_of(Pace, "pace", leave_out=["keep_runs"], types=PACE_TYPES)
@output_options
def tune(console: Console, city: Path, *, options: _TuneOptions, pace: Pace) -> None:
    """Try settings of a method on a CITY and rank them by validation alone.

    Every combination of the values is trained and compared by the validation split, at the epoch
    that training keeps. The test split is never ranked. OUT/tune.json holds all trials, best first;
    weights are not kept. The command may be stopped or killed at any time; given again, it resumes.
    A trial that fails does not stop the others.
    """
    from castpoi.experiments.tune import TuneStatus, tuning_of  # torch, which --help can do without

    tuning = tuning_of(
        CityFolder.at(city), method=options.model, preset=options.preset,
        settings=pairs_of(options.changes), tries=options.tries, seed=options.seed,
        at_most=options.at_most,
    )  # fmt: skip
    folder = SuiteFolder(options.out)
    read = partial(TuneStatus, folder, tuning, any_code=pace.any_code)
    before = read()
    job = Job(
        console=console, plan=before.plan, folder=folder, pace=pace, noun="trials",
        past_runs=before.past_runs(),
    )  # fmt: skip
    if options.dry_run:
        job.show(tuning.setup)
        return
    failures = job.run(lambda: read().save())
    content = read().content
    content["command"] = command = _show_trials(console, tuning, content["trials"])
    last = "" if command is None else f"Best: {command}"
    job.finish(content, failures, title="Trials", last=last)


def _show_trials(
    console: Console, tuning: "Tuning", trials: Sequence[Mapping[str, Any]]
) -> str | None:
    """Show the trials that are done, best first; returns the command that trains the best one."""
    done = [trial for trial in trials if trial["state"] == "done"]
    if done:
        _show_table(console, tuning, done)
    if outdated := sum(trial["state"] == "other code" for trial in trials):
        console.print(
            f"{outdated} earlier trials were made by another version of the method and are left "
            "out; try them again, or keep them with --any-code."
        )
    best = next((tuning.experiment(trial["settings"]) for trial in done), None)
    return None if best is None else shlex.join(best.training_words("RUN"))


def _show_table(console: Console, tuning: "Tuning", done: Sequence[Mapping[str, Any]]) -> None:
    tried = list(dict.fromkeys(name for trial in done for name in trial["settings"]))
    metrics = [tuning.metric, *(metric for metric in _METRICS if metric != tuning.metric)]
    header = [*tried, *metrics, "best epoch", "epochs", "time"]
    rows = [
        [
            *(trial["settings"].get(name, "") for name in tried),
            *(f"{100 * trial['validation'][metric]:.2f}" for metric in metrics),
            f"{trial['best_epoch']}",
            f"{trial['epochs']}",
            duration_words(trial["seconds"]),
        ]
        for trial in done
    ]
    console.print(
        f"{tuning.method} ({tuning.preset}) on {tuning.city.name}: validation split, in percent, "
        f"best {tuning.metric} first"
    )
    console.with_room_for([header, *rows]).table(header, rows, left=len(tried))
