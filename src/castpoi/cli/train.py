"""`castpoi train`: train a method on a city."""

import shlex
from dataclasses import replace
from pathlib import Path

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import (
    FOLDER,
    method_list,
    options_of,
    out_option,
    parsed,
    seed_option,
    split_option,
)
from castpoi.core.config import pairs_of
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run
from castpoi.training.job import TrainingOptions, World
from castpoi.training.train import train as train_run


@click.command(epilog=method_list("Methods, and the [presets] of those that are trained:", METHODS))
@click.argument("city", type=FOLDER)
@click.option(
    "--model",
    default=METHODS.best.name,
    show_default=True,
    metavar="NAME",
    help="Name of the method, see below.",
)
@seed_option("One seed gives one run.")
@out_option("The run to write.", replaces="a previous run")
@split_option
@options_of(
    TrainingOptions,
    "options",
    only=("preset", "device", "resume"),
    types={"preset": parsed("NAME", str)},
)
@click.option(
    "--objective",
    type=click.Choice(["fast", "full"]),
    help="The paper's objective (full), or the same loss at a lower cost.  [default: that of the "
    "preset]",
)
@click.option(
    "--known-time",
    is_flag=True,
    help="CaST-POI gets the time of the next visit, as in 'where to go now'; its results are "
    "compared with no others.",
)
@click.option("--epochs", metavar="N", help="Most passes over the train split.")
@click.option("--threads", metavar="N", help="CPU cores to use.  [default: all]")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change one setting of model or training, e.g. width=64 or spatial_bias=false.",
)
@click.option(
    "--tensorboard",
    type=FOLDER,
    metavar="FOLDER",
    help="Write learning curves for TensorBoard (extra castpoi[tensorboard]).",
)
@output_options
def train(
    console: Console,
    city: Path,
    *,
    model: str,
    seed: int,
    out: Path,
    part: str,
    overwrite: bool,
    options: TrainingOptions,
    known_time: bool,
    changes: tuple[str, ...],
    tensorboard: Path | None,
    **named: str | None,
) -> None:
    """Train a method on a CITY and write a run.

    The same command resumes a training that was interrupted. Several processes share the work with
    'torchrun --nproc-per-node N -m castpoi.cli.main train'.
    """
    settings = [f"{name}={value}" for name, value in named.items() if value is not None]
    settings += ["known_time=true"] if known_time else []
    options = replace(
        options,
        settings=pairs_of([*settings, *changes]),
        tensorboard=tensorboard,
        warn=console.note,
    )
    run = train_run(
        city,
        out,
        method=model,
        seed=seed,
        part=part,
        overwrite=overwrite,
        progress=console.progress(),
        options=options,
    )
    if World.from_environment().is_first:
        _show(console, run, city)


def _show(console: Console, run: Run, city: Path) -> None:
    """Show where the run is and the next command."""
    seconds = run.manifest["wall_seconds"]
    console.print(
        f"{run.folder}: {run.method}, trained on {city} (seed {run.seed}, {seconds:.1f} s)"
    )
    console.print(f"Next: castpoi evaluate {shlex.quote(str(run.folder))} --out RESULT")
    console.result(
        {
            "method": run.method,
            "seed": run.seed,
            "part": run.manifest["part"],
            "fingerprint": run.fingerprint,
            "out": str(run.folder),
            "seconds": seconds,
        }
    )
