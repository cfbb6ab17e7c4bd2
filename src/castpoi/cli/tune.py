"""`castpoi tune`: search the settings of a method on the validation split of a city."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, Seed, method_list, options_of
from castpoi.cli.plans import PACE_TYPES, Job
from castpoi.core.config import pairs_of
from castpoi.core.quantities import duration_words
from castpoi.experiments.experiment import CityFolder
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.runner import Pace
from castpoi.experiments.suite import DEFAULT_SEEDS
from castpoi.methods.registry import METHODS

if TYPE_CHECKING:
    from castpoi.experiments.tune import Tuning

_METRICS: Final = ("MRR", "HR@10")
_LEARNED = [method for method in METHODS if method.needs_training]


@dataclass(frozen=True, kw_only=True)
class _Options:
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
@options_of(_Options, "options", names={"tries": "try", "changes": "set"})
@options_of(Pace, "pace", leave_out=["keep_runs"], types=PACE_TYPES)
@output_options
def tune(console: Console, city: Path, *, options: _Options, pace: Pace) -> None:
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
