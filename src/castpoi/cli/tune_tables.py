"""What `castpoi tune` shows: the trials of a folder from best to worst, and the best to copy."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from castpoi.cli.console import Console
from castpoi.cli.suite_tables import error_of, show_failures, told
from castpoi.core.quantities import duration_words
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.job import training_words
from castpoi.experiments.plan import Planned
from castpoi.experiments.runner import Failure
from castpoi.experiments.tune_record import DONE, OUTDATED, read_tune

if TYPE_CHECKING:
    from castpoi.experiments.tune import Tune

_METRICS: Final = ("MRR", "HR@10")
_RUN: Final = "RUN"
"""Stands for a run that a person has yet to name."""


def show_trials(
    console: Console,
    tune: "Tune",
    plan: Sequence[Planned],
    folder: SuiteFolder,
    failures: Sequence[Failure],
) -> None:
    """Print the trials, what failed, and the command that trains the best of them."""
    content = read_tune(folder)
    done = [trial for trial in content["trials"] if trial["state"] == DONE]
    outdated = sum(trial["state"] == OUTDATED for trial in content["trials"])
    were_there = sum(each.is_there for each in plan)
    if done:
        _show_table(console, tune, done)
    show_failures(console, failures, folder)
    if outdated:
        console.say(
            f"{outdated} earlier trials were made by another version of the code and are left out; "
            "try them again, or count them with --any-code."
        )
    console.say(
        f"{len(plan) - were_there - len(failures)} trials done now, {were_there} there before, "
        f"{len(failures)} failed. All is in {folder.root}"
        + ("; the same command tries the failed ones again." if failures else ".")
    )
    command = _command(tune, done[0]) if done else None
    if command is not None:
        console.say(f"Best: {command}")
    console.result(
        content
        | {
            "command": command,
            "out": str(folder.root),
            "there_before": were_there,
            "failed": [told(failure, folder) for failure in failures],
        }
        | error_of(failures, "trials")
    )


def _show_table(console: Console, tune: "Tune", done: Sequence[Mapping[str, Any]]) -> None:
    setup = tune.setup
    tried = list(dict.fromkeys(name for trial in done for name in trial["settings"]))
    metrics = [setup.metric, *(metric for metric in _METRICS if metric != setup.metric)]
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
    console.say(
        f"{setup.method} ({setup.preset}) on {setup.city.name}: validation part, in percent, "
        f"best {setup.metric} first"
    )
    console.with_room_for([header, *rows]).table(header, rows, left=len(tried))


def _command(tune: "Tune", trial: Mapping[str, Any]) -> str:
    """The words that train the settings of a trial, for a run that may foretell the test part."""
    return shlex.join(["castpoi", *training_words(tune.experiment(trial["settings"]), _RUN)])
