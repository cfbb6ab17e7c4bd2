"""`castpoi train`: train a method on a city."""

import shlex
from dataclasses import replace
from pathlib import Path

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import (
    FOLDER,
    SeveralValues,
    is_numbers,
    method_list,
    options_of,
    out_option,
    parsed,
    seed_option,
    seeds_option,
)
from castpoi.core.config import pairs_of
from castpoi.methods.registry import METHODS
from castpoi.methods.run import KNOWN_CHECKINS, Run
from castpoi.training.job import TrainingOptions, World
from castpoi.training.train import best_epoch
from castpoi.training.train import train as train_run


@click.command(
    cls=SeveralValues,
    several={"--seeds": is_numbers},
    epilog=method_list("Methods, and the [presets] of those that are trained:", METHODS),
)
@click.argument("city", type=FOLDER)
@click.option(
    "--model",
    default=METHODS.best.name,
    show_default=True,
    metavar="NAME",
    help="Name of the method, see below.",
)
@seed_option("Seed of the random numbers; the same seed gives the same run.")
@seeds_option(
    "Train one run for each of several seeds, as in '--seeds 42 43 44': OUT/42 and so on."
)
@out_option("The run to write.", replaces="a previous run")
@click.option(
    "--holdout",
    type=click.Choice(["test", "validation", "none"]),
    default="test",
    show_default=True,
    help="Split kept out of training, to evaluate the run on; none: train on all check-ins, for "
    "production, without an evaluation.",
)
@options_of(
    TrainingOptions,
    "options",
    only=("preset", "device", "resume"),
    types={"preset": parsed("NAME", str)},
)
@click.option(
    "--objective",
    type=click.Choice(["fast", "full", "sampled"]),
    help="The paper's objective (full), the same loss at a lower cost (fast), or an estimate of it "
    "at a cost independent of the number of places (sampled).  [default: that of the preset; "
    "sampled for castpoi-next with more than 50,000 places]",
)
@click.option(
    "--known-time",
    is_flag=True,
    help="CaST-POI also receives the time of the next visit, as in 'where to go now'; such results "
    "cannot be compared with others.",
)
@click.option("--epochs", metavar="N", help="Maximum number of passes over the train split.")
@click.option(
    "--epochs-from",
    type=FOLDER,
    metavar="RUN",
    help="Train for the number of epochs that was best in an earlier RUN of the method.",
)
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
    seeds: tuple[int, ...],
    out: Path,
    holdout: str,
    overwrite: bool,
    options: TrainingOptions,
    known_time: bool,
    epochs_from: Path | None,
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
    if epochs_from is not None:
        settings.append(f"epochs={best_epoch(epochs_from, METHODS.named(model))}")
    pairs = pairs_of([*settings, *changes])
    options = replace(options, settings=pairs, tensorboard=tensorboard, warn=console.note)
    runs = {out / str(each): each for each in seeds} or {out: seed}
    trained = []
    for folder, each in runs.items():
        run = train_run(
            city,
            folder,
            method=model,
            seed=each,
            part=None if holdout == "none" else holdout,
            overwrite=overwrite,
            progress=console.progress(),
            options=options,
        )
        if World.from_environment().is_first:
            trained.append(_show(console, run, city))
    if trained:
        result = f"--out RESULT{'S' * bool(seeds)}"
        path = shlex.quote(str(out))
        command = f"serve {path}" if holdout == "none" else f"evaluate {path} {result}"
        console.print(f"Next: castpoi {command}")
        console.result({"runs": trained} if seeds else trained[0])


def _show(console: Console, run: Run, city: Path) -> dict[str, object]:
    """Show where the run is; returns it for JSON."""
    seconds, part = run.manifest["wall_seconds"], run.manifest["part"]
    checkins = int(run.places[KNOWN_CHECKINS].sum())
    seen = f"{checkins:,} check-ins" if part else f"all {checkins:,} check-ins, none held out"
    console.print(
        f"{run.folder}: {run.method}, trained on {seen}, of {city} "
        f"(seed {run.seed}, {seconds:.1f} s)"
    )
    return {
        "method": run.method,
        "seed": run.seed,
        "part": part,
        "checkins": checkins,
        "fingerprint": run.fingerprint,
        "out": str(run.folder),
        "seconds": seconds,
    }
