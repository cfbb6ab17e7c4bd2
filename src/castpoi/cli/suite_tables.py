"""What `castpoi reproduce` shows: the plan of a suite, and what came of it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from castpoi.cli.compare import as_json, show_comparison
from castpoi.cli.console import Console
from castpoi.core.quantities import duration_words
from castpoi.evaluation.compare import Comparison, compare
from castpoi.evaluation.result import Result
from castpoi.experiments.estimate import Estimate, Estimator, Former, remaining
from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.plan import Planned
from castpoi.experiments.runner import Failure, Pace
from castpoi.experiments.suite import Suite


def show_plan(
    console: Console,
    plan: Sequence[Planned],
    folder: SuiteFolder,
    pace: Pace,
    *,
    about: Mapping[str, Any],
    noun: str = "experiments",
) -> None:
    """List the experiments with what is there and how long the others may take."""
    estimator = Estimator(map(Former.of, folder.proofs()), threads=pace.threads_a_job)
    guessed = [(each, _guess(each, estimator)) for each in plan]
    to_run = [guess for each, guess in guessed if not each.is_there]
    left = remaining(to_run, [], jobs=pace.jobs)
    console.table(
        [noun.removesuffix("s"), "state", "time from", "time"],
        [
            [each.experiment.name, each.why or "there", guess.source, _time(guess)]
            for each, guess in guessed
        ],
        left=3,
    )
    words = f": {left.words} on {pace.threads} cores" if to_run else ""
    console.say(f"{len(to_run)} of {len(plan)} {noun} are to be run{words}.")
    console.result(
        {
            **about,
            "out": str(folder.root),
            noun: [
                {**_named(each.experiment), "why": each.why, **_seconds(guess)}
                for each, guess in guessed
            ],
            "to_run": len(to_run),
            "seconds": round(left.seconds, 1),
            "all_known": left.is_whole,
        }
    )


def show_outcome(
    console: Console,
    suite: Suite,
    plan: Sequence[Planned],
    folder: SuiteFolder,
    failures: Sequence[Failure],
) -> None:
    """Print the results of every city side by side, then what failed and where its log is."""
    failed = {failure.experiment.name for failure in failures}
    done = [each.experiment for each in plan if each.experiment.name not in failed]
    were_there = sum(each.is_there for each in plan)
    comparisons = _comparisons(done, folder)
    for city, comparison in comparisons.items():
        console.say(f"{city}:")
        show_comparison(console, comparison)
    show_failures(console, failures, folder)
    console.say(
        f"{suite.name}: {len(done) - were_there} done now, {were_there} there before, "
        f"{len(failures)} failed. All is in {folder.root}"
        + ("; the same command tries the failed ones again." if failures else ".")
    )
    page = shlex.join(["castpoi", "report", str(folder.root)])
    if done:
        console.say(f"Tables, figures and tests on one page: {page}")
    content = {
        "suite": suite.name,
        "out": str(folder.root),
        "done": [_named(each) for each in done],
        "there_before": were_there,
        "failed": [told(failure, folder) for failure in failures],
        "cities": {city: as_json(comparison) for city, comparison in comparisons.items()},
        "report": page,
    }
    console.result(content | error_of(failures))


def show_failures(console: Console, failures: Sequence[Failure], folder: SuiteFolder) -> None:
    """Name what failed, why, and where its log is."""
    for failure in failures:
        console.say(f"FAILED {failure.experiment.name}: {failure.problem}")
        console.say(f"       its log: {folder.log(failure.experiment)}")


def error_of(failures: Sequence[Failure], noun: str = "experiments") -> dict[str, str]:
    """The error of a JSON object; nothing where nothing failed."""
    names = ", ".join(sorted(failure.experiment.name for failure in failures))
    return {"error": f"{len(failures)} {noun} failed: {names}"} if failures else {}


def _comparisons(done: Sequence[Experiment], folder: SuiteFolder) -> dict[str, Comparison]:
    """The results of each city side by side, one line a row of the suite; known time apart."""
    by_city: dict[str, list[Result]] = {}
    for experiment in done:
        result = Result.load(folder.result(experiment))
        labelled = {**result.manifest, "method": experiment.row.label}
        city = experiment.city.name + (" (time known)" if result.known_time else "")
        by_city.setdefault(city, []).append(replace(result, manifest=labelled))
    return {city: compare(results) for city, results in by_city.items()}


def _guess(planned: Planned, estimator: Estimator) -> Estimate:
    return Estimate(None, "") if planned.is_there else estimator.estimate(planned.experiment)


def _time(guess: Estimate) -> str:
    return "" if guess.seconds is None else duration_words(guess.seconds)


def _seconds(guess: Estimate) -> dict[str, object]:
    return {"seconds": guess.seconds, "source": guess.source}


def told(failure: Failure, folder: SuiteFolder) -> dict[str, object]:
    """A failure in JSON's words."""
    log = str(folder.log(failure.experiment))
    return {**_named(failure.experiment), "problem": failure.problem, "log": log}


def _named(experiment: Experiment) -> dict[str, object]:
    return {
        "name": experiment.name,
        "city": experiment.city.name,
        "row": experiment.row.name,
        "seed": experiment.seed,
    }
