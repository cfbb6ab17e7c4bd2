"""`castpoi demo`: the whole road on a synthetic city, from check-ins to one honest table."""

import shutil
import time
from pathlib import Path
from typing import Any, Final

import click

from castpoi.checkins.city import City
from castpoi.checkins.preparation import Preparation
from castpoi.checkins.prepare import prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.cli.compare import as_json, show_comparison
from castpoi.cli.console import Console, speaks
from castpoi.cli.serve import serve
from castpoi.errors import BadInput
from castpoi.evaluation.compare import Comparison, compare
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from castpoi.files import is_folder_of, write_json
from castpoi.methods import METHODS, Method
from castpoi.progress import Progress
from castpoi.ranker import SavableRanker
from castpoi.run import Run
from castpoi.training.train import fit, train
from castpoi.training.trainer import TrainingOptions

_TUNED: Final = "tuned"
_EPOCHS_OF_A_BASELINE: Final = 5  # for each one of the best model


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("castpoi-demo"),
    show_default=True,
    help="Folder for everything the demo makes.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Of the city and the models.")
@click.option("--users", type=int, default=500, show_default=True, help="People of the city.")
@click.option("--epochs", type=int, default=3, show_default=True, help="Passes of the training.")
@click.option("--all", "train_all", is_flag=True, help="Train the learned baselines too: minutes.")
@click.option("--overwrite", is_flag=True, help="Replace a former demo.")
@click.option("--serve", "serves", is_flag=True, help="End on the map of the city, until stopped.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the map; 0 takes a free one.",
)
@speaks
def demo(
    console: Console,
    out: Path,
    *,
    seed: int,
    users: int,
    epochs: int,
    train_all: bool,
    overwrite: bool,
    serves: bool,
    port: int,
) -> None:
    """The whole road on a synthetic city: no network and no files needed.

    Makes check-ins after published laws of human mobility, prepares them into a city, trains the
    best model present, evaluates every method that only counts under one protocol (with --all those
    that learn, too) and prints one table. With --serve it ends on a map of the city, in a browser.
    """
    if serves and console.as_json:
        raise click.UsageError(
            "--serve goes on until stopped and --json ends with one object: leave one of them out, "
            "and serve the run of the demo with 'castpoi serve' afterwards"
        )
    began = time.perf_counter()
    _clear(out, overwrite=overwrite)
    with console.progress() as progress, progress.task("demo", total=3) as road:
        city = _made_city(out, users, seed, progress)
        road.advance()
        run = train(
            out / "city",
            out / "run",
            method=METHODS.best.name,
            seed=seed,
            progress=progress,
            options=TrainingOptions(settings={"epochs": str(epochs)}),
        )
        road.advance()
        epochs_of_others = epochs if train_all else None
        comparison = compare(
            _results(city, run, out, seed, epochs_of_others, progress), sort_by="MRR"
        )
        road.advance()
    _tell(console, city, run, comparison, seconds=time.perf_counter() - began)
    if serves:
        _serve_map(console, out / "run", port)


def _made_city(out: Path, users: int, seed: int, progress: Progress) -> City:
    """A synthetic city: its raw check-ins on disk, and what preparing makes of them."""
    config = SynthesisConfig(users=users, places=max(4 * users, 200))
    checkins = synthesize(config, seed=seed, progress=progress)
    source = write_checkins(checkins, out / "checkins.csv.gz", config=config, seed=seed)
    return prepare([source], out / "city", Preparation(), progress=progress).city


def _tell(
    console: Console, city: City, run: Run, comparison: Comparison, *, seconds: float
) -> None:
    """Show the table of all methods, and say what was made and what to try next."""
    manifest, out = city.manifest, run.folder.parent
    console.say(
        f"A synthetic city of {manifest['users']:,} people, {manifest['places']:,} places and "
        f"{manifest['checkins']:,} check-ins (seed {run.seed}). Where will each of "
        f"{manifest['test']:,} people go next?"
    )
    show_comparison(console, comparison)
    _say_what_next(console, out, run.method, seconds)
    console.result(
        {
            "out": str(out),
            "seconds": round(seconds, 3),
            "city": {key: manifest[key] for key in ("checkins", "users", "places", "test")},
            "run": {"method": run.method, "folder": str(run.folder)},
            "comparison": as_json(comparison),
        }
    )


def _serve_map(console: Console, run: Path, port: int) -> None:
    """Serve the run until stopped, as `castpoi serve` does."""
    console.say("\nOpen the address below in a browser: it is the map of the city.")
    quiet = {"as_json": False, "quiet": console.quiet, "debug": False}
    click.get_current_context().invoke(serve, run=run, port=port, **quiet)


def _clear(out: Path, *, overwrite: bool) -> None:
    """Make room for the demo; only a former demo is ever removed."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not is_folder_of(out, "demo"):
            raise BadInput(f"{out} exists and is not a demo; choose another --out")
        if not overwrite:
            raise BadInput(
                f"{out} already holds a demo; choose another --out or replace it with --overwrite"
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "manifest.json", {"kind": "demo"})


def _results(
    city: City, run: Run, out: Path, seed: int, epochs: int | None, progress: Progress
) -> list[Result]:
    """The run and every other method, evaluated on the test part; without epochs, what counts."""
    present = [
        method
        for method in METHODS
        if method.name == run.method or epochs is not None or not method.needs_training
    ]
    results = []
    with progress.task("methods", total=len(present)) as methods:
        for method in present:
            ranker = run.ranker if method.name == run.method else None
            result = evaluate(
                ranker or _fitted(method, city, seed, epochs, progress),
                city,
                method=method.name,
                seed=seed,
                part="test",
                progress=progress,
            )
            result.save(out / "results" / method.name)
            results.append(result)
            methods.advance()
    return results


def _fitted(
    method: Method, city: City, seed: int, epochs: int | None, progress: Progress
) -> SavableRanker[Any]:
    """A method to compare with; a baseline's step learns from more, so it takes more epochs."""
    options = None
    if epochs is not None and method.needs_training:
        is_tuned = _TUNED in method.presets
        options = TrainingOptions(
            preset=_TUNED if is_tuned else None,
            settings={"epochs": str(_EPOCHS_OF_A_BASELINE * epochs if is_tuned else epochs)},
        )
    return fit(method, city, seed=seed, progress=progress, options=options)


def _say_what_next(console: Console, out: Path, method: str, seconds: float) -> None:
    console.say(
        f"\nDone in {seconds:.1f} s. Everything is in {out}:\n"
        f"  checkins.csv.gz  the raw check-ins, as you might have them\n"
        f"  city/            cleaned, localised, split and fingerprinted\n"
        f"  run/             {method}, trained\n"
        f"  results/         the rank of every target under every method\n"
        f"\nTry next:\n"
        f"  castpoi serve {out}/run        (a map, in a browser)\n"
        f"  castpoi data describe {out}/city --html {out}/city.html\n"
        f"  castpoi data audit {out}/city\n"
        f"  castpoi compare {out}/results\n"
        f"  castpoi data prepare YOUR_TABLE.csv --out my-city"
    )
