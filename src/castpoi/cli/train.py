"""`castpoi train`: train a method on a city."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import (
    DEFAULT_SEED,
    FOLDER,
    Seed,
    Seeds,
    SeveralValues,
    is_numbers,
    method_list,
    options_of,
    out_option,
)
from castpoi.core.config import pairs_of
from castpoi.core.errors import extra_for
from castpoi.methods.registry import METHODS
from castpoi.methods.run import KNOWN_CHECKINS, Run, load_run
from castpoi.training.job import TrainingOptions, World
from castpoi.training.train import best_epoch
from castpoi.training.train import train as train_here


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The method, its seeds, and its most common settings."""

    model: Annotated[str, "NAME"] = METHODS.best.name
    """Name of the method, see below."""
    seed: Seed = DEFAULT_SEED
    """Seed of the random numbers; the same seed gives the same run."""
    seeds: Seeds = ()
    """Train one run for each of several seeds, as in '--seeds 42 43 44': OUT/42 and so on."""
    holdout: Literal["test", "validation", "none"] = "test"
    """Split kept out of training, to evaluate the run on; none: train on all check-ins, for
    production, without an evaluation."""
    objective: Literal["fast", "full", "sampled"] | None = None
    """The paper's objective (full), the same loss at a lower cost (fast), or an estimate of it at a
    cost independent of the number of places (sampled).  [default: that of the preset; sampled for
    castpoi-next with more than 50,000 places]"""
    known_time: bool = False
    """CaST-POI also receives the time of the next visit, as in 'where to go now'; such results
    cannot be compared with others."""
    from_run: Annotated[Path, "RUN"] | None = None
    """Continue from an earlier RUN of the method, with its settings, on a newer city: one epoch of
    the check-ins since then, at a lower learning rate; known places keep their vectors."""
    epochs: Annotated[str, "N"] | None = None
    """Maximum number of passes over the train split."""
    epochs_from: Annotated[Path, "RUN"] | None = None
    """Train for the number of epochs that was best in an earlier RUN of the method."""
    threads: Annotated[str, "N"] | None = None
    """CPU cores to use.  [default: all]"""
    engine: Literal["local", "ray"] = "local"
    """local: this machine; ray: several processes of a Ray cluster (extra castpoi[ray])."""
    workers: Annotated[int, click.IntRange(min=1), "N"] | None = None
    """With --engine ray: number of processes.  [default: 2]"""
    address: Annotated[str, "HOST:PORT"] | None = None
    """With --engine ray: the cluster.  [default: one on this machine]"""
    changes: Annotated[tuple[str, ...], "NAME=VALUE"] = ()
    """Change one setting of model or training, e.g. width=64 or spatial_bias=false."""

    @property
    def settings(self) -> dict[str, str]:
        """The settings that differ from the preset, as text."""
        named = {name: getattr(self, name) for name in ("objective", "epochs", "threads")}
        words = [f"{name}={value}" for name, value in named.items() if value is not None]
        words += ["known_time=true"] if self.known_time else []
        if self.epochs_from is not None:
            words.append(f"epochs={best_epoch(self.epochs_from, METHODS.named(self.model))}")
        return pairs_of([*words, *self.changes])


@click.command(
    cls=SeveralValues,
    several={"--seeds": is_numbers},
    epilog=method_list("Methods, and the [presets] of those that are trained:", METHODS),
)
@click.argument("city", type=FOLDER)
@out_option("The run to write.", replaces="a previous run")
@options_of(_Options, "options", names={"changes": "set", "from_run": "from"})
@options_of(
    TrainingOptions,
    "training",
    only=("preset", "device", "resume", "tensorboard"),
    types={"preset": "NAME", "tensorboard": "FOLDER"},
)
@output_options
def train(
    console: Console,
    city: Path,
    *,
    options: _Options,
    training: TrainingOptions,
    out: Path,
    overwrite: bool,
) -> None:
    """Train a method on a CITY and write a run.

    The same command resumes a training that was interrupted. Several processes share the work with
    'torchrun --nproc-per-node N -m castpoi.cli.main train'.
    """
    start = None if options.from_run is None else load_run(options.from_run)
    training = replace(training, settings=options.settings, start=start, warn=console.note)
    train_run = _engine(options, console)
    seeds, is_for_production = options.seeds, options.holdout == "none"
    runs = {out / str(each): each for each in seeds} or {out: options.seed}
    trained = []
    for folder, each in runs.items():
        run = train_run(
            city,
            folder,
            method=options.model,
            seed=each,
            part=None if is_for_production else options.holdout,
            overwrite=overwrite,
            options=training,
        )
        if World.from_environment().is_first:
            trained.append(_show(console, run, city))
    if trained:
        result = f"--out RESULT{'S' * bool(seeds)}"
        path = shlex.quote(str(out))
        command = f"serve {path}" if is_for_production else f"evaluate {path} {result}"
        console.print(f"Next: castpoi {command}")
        console.result({"runs": trained} if seeds else trained[0])


def _engine(options: _Options, console: Console) -> Callable[..., Run]:
    """The function that trains: here, or on a Ray cluster."""
    if options.engine == "local":
        if options.workers is not None or options.address is not None:
            raise click.UsageError("--workers and --address go with --engine ray.")
        return partial(train_here, progress=console.progress())
    with extra_for("--engine ray", "ray"):
        from castpoi.scale.ray_train import train_on_ray
    return partial(train_on_ray, workers=options.workers or 2, address=options.address)


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
