"""Output of `castpoi reproduce` and `castpoi tune`: the plan, the progress and the failures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Job:
    """The experiments of a command: those that are done, and those to run."""

    console: Console
    plan: Sequence[Planned]
    folder: SuiteFolder
    pace: Pace
    past_runs: Sequence[PastRun]
    noun: str
    """Name of several experiments."""

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
            [each.experiment.name, each.why or "done", guess.source, _time_of(guess)]
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
            {**entry_of(each.experiment), "why": each.why}
            | {"seconds": guess.seconds, "source": guess.source}
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


def _time_of(guess: Estimate) -> str:
    return "" if guess.seconds is None else duration_words(guess.seconds)


def entry_of(experiment: Experiment) -> dict[str, object]:
    """An experiment for JSON."""
    return {
        "name": experiment.name,
        "city": experiment.city.name,
        "row": experiment.row.name,
        "seed": experiment.seed,
    }
