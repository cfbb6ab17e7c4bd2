"""`castpoi train`: from a city and the name of a method to a run."""

import shlex
from pathlib import Path

import click

from castpoi.cli.console import Console, speaks
from castpoi.cli.method_list import method_list
from castpoi.cli.seeds import SEED
from castpoi.core.config import pairs_of
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run
from castpoi.training.train import train as train_run
from castpoi.training.trainer import TrainingOptions
from castpoi.training.world import World


@click.command(epilog=method_list("Methods, and the [presets] of those that are learned:", METHODS))
@click.argument("city", type=click.Path(path_type=Path))
@click.option(
    "--model",
    default=METHODS.best.name,
    show_default=True,
    metavar="NAME",
    help="Name of the method, see below.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="One seed gives one run.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The run to write.")
@click.option(
    "--part",
    type=click.Choice(["test", "validation"]),
    default="test",
    show_default=True,
    help="The part that will be foretold; the run may know only what comes before it.",
)
@click.option("--overwrite", is_flag=True, help="Replace a former run.")
@click.option(
    "--preset",
    metavar="NAME",
    help="Settings of a learned method to start from, see below.  [default: the method's first]",
)
@click.option(
    "--objective",
    type=click.Choice(["fast", "full"]),
    help="The paper's objective (full), or the same loss computed cheaply.  [default: that of the "
    "preset]",
)
@click.option(
    "--known-time",
    is_flag=True,
    help="CaST-POI is told when the next visit is, as when somebody asks where to go now; its "
    "results stand apart from all others.",
)
@click.option("--epochs", metavar="N", help="Most passes over the train part.")
@click.option("--threads", metavar="N", help="Cores to use; all unless told otherwise.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change one setting of model or training, e.g. width=64 or spatial_bias=false.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "mps"]),
    default="cpu",
    show_default=True,
    help="Where a learned method is trained.",
)
@click.option(
    "--resume/--no-resume",
    default=True,
    show_default=True,
    help="Continue the very same training if it was interrupted.",
)
@click.option(
    "--tensorboard",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Draw the curves of a learned method here (extra castpoi[tensorboard]).",
)
@speaks
def train(
    console: Console,
    city: Path,
    *,
    model: str,
    seed: int,
    out: Path,
    part: str,
    overwrite: bool,
    preset: str | None,
    known_time: bool,
    changes: tuple[str, ...],
    device: str,
    resume: bool,
    tensorboard: Path | None,
    **named: str | None,
) -> None:
    """Train a method on a CITY and write a run.

    A training that was interrupted goes on where it stopped when the same command is given again.
    Several processes share the work with 'torchrun --nproc-per-node N -m castpoi.cli.main train'.
    """
    asked = [f"{name}={value}" for name, value in named.items() if value is not None]
    asked += ["known_time=true"] if known_time else []
    options = TrainingOptions(
        preset=preset,
        settings=pairs_of([*asked, *changes]),
        device=device,
        resume=resume,
        say=console.note,
    )
    with console.progress() as progress:
        run = train_run(
            city,
            out,
            method=model,
            seed=seed,
            part=part,
            overwrite=overwrite,
            progress=progress,
            options=options,
            tensorboard=tensorboard,
        )
    if World.from_environment().is_first:
        _tell(console, run, city)


def _tell(console: Console, run: Run, city: Path) -> None:
    """Say that the run is whole, and what to do with it."""
    seconds = run.manifest["wall_seconds"]
    console.say(
        f"{run.method} is trained on {city} (seed {run.seed}, {seconds:.1f} s): {run.folder}"
    )
    console.say(f"Next: castpoi evaluate {shlex.quote(str(run.folder))} --out RESULT")
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
