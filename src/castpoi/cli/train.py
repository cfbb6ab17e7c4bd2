"""`castpoi train`: from a city and the name of a method to a run."""

from pathlib import Path

import click

from castpoi.cli.console import Console, speaks
from castpoi.cli.method_list import method_list
from castpoi.methods import METHODS


@click.command(epilog=method_list("Methods:", METHODS))
@click.argument("city", type=click.Path(path_type=Path))
@click.option("--model", required=True, metavar="NAME", help="Name of the method, see below.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
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
@speaks
def train(
    console: Console, city: Path, model: str, seed: int, out: Path, part: str, overwrite: bool
) -> None:
    """Train a method on a CITY and write a run."""
    from castpoi.training.train import train as train_run

    with console.progress() as progress:
        run = train_run(
            city, out, method=model, seed=seed, part=part, overwrite=overwrite, progress=progress
        )
    seconds = run.manifest["wall_seconds"]
    console.say(f"{model} is trained on {city} (seed {seed}, {seconds:.1f} s): {out}")
    console.say(f"Next: castpoi evaluate {out} --out RESULT")
    console.result(
        {
            "method": model,
            "seed": seed,
            "part": part,
            "fingerprint": run.fingerprint,
            "out": str(out),
            "seconds": seconds,
        }
    )
