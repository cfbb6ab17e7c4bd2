"""`castpoi tune`: which settings of a method do best on the validation part of a city."""

from functools import partial
from pathlib import Path

import click

from castpoi.cli.console import Console, speaks
from castpoi.cli.options import SEED, method_list
from castpoi.cli.paced import end_with, paced, run_shown
from castpoi.cli.suite_tables import show_plan
from castpoi.cli.tune_tables import show_trials
from castpoi.core.config import pairs_of
from castpoi.experiments.experiment import CityFolder
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.plan import plan_of
from castpoi.experiments.runner import Pace
from castpoi.experiments.suite import DEFAULT_SEEDS
from castpoi.experiments.trials import tried_of
from castpoi.experiments.tune_record import TuneRecord, check_setup
from castpoi.methods.registry import METHODS

_LEARNED = [method for method in METHODS if method.needs_training]


@click.command(epilog=method_list("Methods that are learned, and their [presets]:", _LEARNED))
@click.argument("city", type=click.Path(path_type=Path))
@click.option("--model", required=True, metavar="NAME", help="A learned method, see below.")
@click.option(
    "--preset",
    metavar="NAME",
    help="Settings to start from, see below.  [default: the method's first]",
)
@click.option(
    "--try",
    "tries",
    required=True,
    multiple=True,
    metavar="NAME=A,B...",
    help="Values of a setting to try; with several --try all their combinations.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change one setting in all trials, e.g. epochs=10.",
)
@click.option(
    "--at-most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Where there are more combinations, draw N of them by the seed.",
)
@click.option(
    "--seed",
    type=SEED,
    default=DEFAULT_SEEDS[0],
    show_default=True,
    help="Seed of every training.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for all of it.")
@paced("trials")
@speaks
def tune(
    console: Console,
    city: Path,
    *,
    model: str,
    preset: str | None,
    tries: tuple[str, ...],
    changes: tuple[str, ...],
    at_most: int | None,
    seed: int,
    out: Path,
    pace: Pace,
    dry_run: bool,
) -> None:
    """Try settings of a method on a CITY and rank them by validation alone.

    Every combination of the values is trained; it is judged by the validation part, at the epoch
    that training keeps. The test part is never ranked. OUT/tune.json holds all trials, best first;
    weights are not kept. The command may be stopped or killed at any time; given again, it goes on
    where it was. A trial that fails does not stop the others.
    """
    from castpoi.experiments.tune import tune_of  # it needs torch, and --help stays quick

    asked = tune_of(
        CityFolder.at(city),
        method=model,
        preset=preset,
        settings=pairs_of(changes),
        tried=tried_of(tries),
        seed=seed,
        at_most=at_most,
    )
    folder = SuiteFolder(out)
    check_setup(folder, asked.setup)
    plan = plan_of(asked.experiments, folder, any_code=pace.any_code)
    if dry_run:
        show_plan(console, plan, folder, pace, about=asked.setup.to_dict(), noun="trials")
        return
    record = partial(TuneRecord, folder, asked.setup, plan, any_code=pace.any_code)
    failures = run_shown(console, plan, folder, pace, record=record, name="trials")
    show_trials(console, asked, plan, folder, failures)
    end_with(failures)
