"""Output of `castpoi reproduce` and `castpoi tune`: the plan, the progress and the failures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from castpoi.cli.console import Console
from castpoi.core.quantities import duration_words
from castpoi.experiments.estimate import Estimate, Estimator, PastRun, remaining
from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import Planned, SuiteFolder
from castpoi.experiments.runner import Failure, Pace, Status, run_plan
from castpoi.training.job import ignore

PACE_TYPES: Final = {"jobs": click.IntRange(min=1), "threads": click.IntRange(min=1)}


def run_shown(
    console: Console,
    plan: Sequence[Planned],
    folder: SuiteFolder,
    pace: Pace,
    *,
    status: Callable[[], Status],
    past_runs: Sequence[PastRun],
    about: Mapping[str, Any],
    noun: str,
    dry_run: bool,
) -> list[Failure] | None:
    """Run the experiments of a plan that are not done, or only list all of them (None)."""
    if dry_run:
        _show_plan(console, plan, folder, pace, past_runs=past_runs, about=about, noun=noun)
        return None
    return run_plan(
        plan,
        folder,
        status=status,
        past_runs=past_runs,
        pace=pace,
        progress=console.progress(shows_remaining=False),
        report=ignore if console.quiet else console.note,
        name=noun,
    )


def _show_plan(
    console: Console,
    plan: Sequence[Planned],
    folder: SuiteFolder,
    pace: Pace,
    *,
    past_runs: Sequence[PastRun],
    about: Mapping[str, Any],
    noun: str,
) -> None:
    """List the experiments, which of them are done, and how long the others may take."""
    estimator = Estimator(past_runs, threads=pace.threads_per_job)
    nothing = Estimate(None, "")
    guessed = [
        (each, nothing if each.is_done else estimator.estimate(each.experiment)) for each in plan
    ]
    to_run = [guess for each, guess in guessed if not each.is_done]
    left = remaining(to_run, [], jobs=pace.jobs)
    rows = [
        [each.experiment.name, each.why or "done", guess.source, _time_of(guess)]
        for each, guess in guessed
    ]
    console.table([noun.removesuffix("s"), "state", "time from", "time"], rows, left=3)
    time_left = f": {left.words} on {pace.cores} cores" if to_run else ""
    console.print(f"{len(to_run)} of {len(plan)} {noun} are to be run{time_left}.")
    listed = [
        {**entry_of(each.experiment), "why": each.why}
        | {"seconds": guess.seconds, "source": guess.source}
        for each, guess in guessed
    ]
    console.result(
        {
            **about,
            "out": str(folder.root),
            noun: listed,
            "to_run": len(to_run),
            "seconds": round(left.seconds, 1),
            "all_known": left.is_complete,
        }
    )


def _time_of(guess: Estimate) -> str:
    return "" if guess.seconds is None else duration_words(guess.seconds)


def finish(
    console: Console,
    content: Mapping[str, Any],
    plan: Sequence[Planned],
    failures: Sequence[Failure],
    folder: SuiteFolder,
    *,
    title: str,
    noun: str,
    last: str,
) -> None:
    """Show what failed and how many are done, then a last line; exit with 1 if something failed."""
    failed = []
    for experiment, problem in ((each.experiment, each.problem) for each in failures):
        log = str(folder.log(experiment))
        console.print(f"FAILED {experiment.name}: {problem}")
        console.print(f"       its log: {log}")
        failed.append({**entry_of(experiment), "problem": problem, "log": log})
    before = sum(each.is_done for each in plan)
    console.print(
        f"{title}: {len(plan) - before - len(failed)} done now, {before} before, {len(failed)} "
        f"failed. Everything is in {folder.root}"
        + ("; the same command tries the failed ones again." if failed else ".")
    )
    if last:
        console.print(last)
    names = ", ".join(sorted(each.experiment.name for each in failures))
    error = {"error": f"{len(failed)} {noun} failed: {names}"} if failed else {}
    about = {"out": str(folder.root), "there_before": before, "failed": failed}
    console.result({**content, **about, **error})
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
