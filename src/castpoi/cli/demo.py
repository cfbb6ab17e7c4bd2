"""`castpoi demo`: every step on a synthetic city, from check-ins to one table of methods."""

import shlex
import time
from pathlib import Path
from typing import Final

import click

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, check_free, synthesize, write_checkins
from castpoi.cli.compare import as_json, show_comparison
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import out_option, port_option, seed_option
from castpoi.cli.serve import serve
from castpoi.core.files import check_vacant, write_json, writing
from castpoi.core.progress import Progress
from castpoi.evaluation.compare import Comparison, compare
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import Run
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit, train

# Small steps and few candidates per target, so that all methods are trained within three minutes.
_OF_TUNED: Final = {"batch": "128"}
_OF_FAST: Final = {"hard_candidates": "8", "drawn_candidates": "10"}
_TUNED: Final = "tuned"
_CHECKINS: Final = "checkins.csv.gz"


@click.command()
@out_option(
    "Folder for all files of the demo.",
    replaces="a previous demo; other files stay",
    required=False,
    default=Path("castpoi-demo"),
    show_default=True,
)
@seed_option("Of the city and the models.")
@click.option("--users", type=int, default=200, show_default=True, help="People of the city.")
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Passes of each training; slow baselines get fewer.",
)
@click.option("--serve", "serves", is_flag=True, help="At the end, serve a map until stopped.")
@port_option
@output_options
def demo(
    console: Console,
    out: Path,
    *,
    seed: int,
    users: int,
    epochs: int,
    overwrite: bool,
    serves: bool,
    port: int,
) -> None:
    """Run every step on a synthetic city, without network and files.

    Makes check-ins by published laws of human mobility, prepares a city, trains every method
    briefly, evaluates all methods under one protocol and prints one table. The best model is in
    OUT/run. With --serve the demo ends with a map of the city, in a browser.
    """
    if serves and console.as_json:
        raise click.UsageError(
            "--serve runs until stopped and --json ends with one object: leave one of them out; "
            "'castpoi serve' can serve the run of the demo afterwards"
        )
    began = time.perf_counter()
    _make_folder(out, overwrite=overwrite)
    progress = console.progress()
    with progress.task("demo", total=3) as steps:
        config = SynthesisConfig(users=users, places=max(4 * users, 200))
        checkins = synthesize(config, seed=seed, progress=progress)
        source = write_checkins(checkins, out / _CHECKINS, config=config, seed=seed, overwrite=True)
        city = prepare([source], out / "city", Preparation(), overwrite=True, progress=progress)
        steps.advance()
        run = train(
            out / "city", out / "run", method=METHODS.best.name, seed=seed, overwrite=True,
            progress=progress, options=_brief_training(METHODS.best, epochs),
        )  # fmt: skip
        steps.advance()
        comparison = compare(_results(city, run, out, epochs, progress), sort_by="MRR")
        steps.advance()
    _show(console, city, run, out, comparison, seconds=time.perf_counter() - began)
    if serves:
        console.print("\nOpen the address below in a browser for the map of the city.")
        quiet = {"as_json": False, "quiet": console.quiet, "debug": False}
        click.get_current_context().invoke(serve, run=run.folder, port=port, **quiet)


def _make_folder(out: Path, *, overwrite: bool) -> None:
    """Create the folder of a demo; refuse one with files that must not be replaced.

    Only the city, the run and the results of a previous demo are replaced, each when the new one is
    complete. Other files stay, such as the visits of a service (`run.visits.sqlite`).
    """
    check_vacant(out, kind="demo", overwrite=overwrite)
    check_free(out / _CHECKINS, overwrite=True)
    for name, kind in (("city", "city"), ("run", "run")):
        check_vacant(out / name, kind=kind, overwrite=True)
    for method in METHODS.names:
        check_vacant(out / "results" / method, kind="result", overwrite=True)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "manifest.json", {"kind": "demo"})


def _results(city: City, run: Run, out: Path, epochs: int, progress: Progress) -> list[Result]:
    """Train and evaluate every method on the test split."""
    results = []
    with progress.task("methods", total=len(METHODS.names)) as methods:
        for method in METHODS:
            options = _brief_training(method, epochs)
            ranker = run.ranker
            if method.name != run.method:
                trained = fit(city, method, seed=run.seed, progress=progress, options=options)
                ranker = trained.ranker
            result = evaluate(ranker, city, method=method.name, seed=run.seed, progress=progress)
            result.save(out / "results" / method.name, overwrite=True)
            results.append(result)
            methods.advance()
    return results


def _brief_training(method: Method, epochs: int) -> TrainingOptions | None:
    """The training of a method in a demo; None for a counting baseline."""
    if not method.needs_training:
        return None
    settings = {"epochs": str(max(1, round(method.demo_epochs * epochs)))}
    if _TUNED in method.presets:
        return TrainingOptions(preset=_TUNED, settings=settings | _OF_TUNED)
    return TrainingOptions(settings=settings | _OF_FAST)


def _show(
    console: Console, city: City, run: Run, out: Path, comparison: Comparison, *, seconds: float
) -> None:
    """Show the table of all methods, the files, and the next commands."""
    manifest = city.manifest
    console.print(
        f"A synthetic city of {manifest['users']:,} people, {manifest['places']:,} places and "
        f"{manifest['checkins']:,} check-ins (seed {run.seed}). Where will each of "
        f"{manifest['test']:,} people go next?"
    )
    show_comparison(console, comparison)
    names = ("run", "city", "city.html", "results")
    folder, town, page, results = (shlex.quote(str(out / name)) for name in names)
    console.print(
        "Trained methods had a few epochs only; 'castpoi train' uses all of them.\n"
        f"\nDone in {seconds:.1f} s. Everything is in {out}:\n"
        f"  {_CHECKINS}  the raw check-ins, a table like your own\n"
        f"  city/            cleaned, split and fingerprinted\n"
        f"  run/             {run.method}, trained\n"
        f"  results/         the rank of every target by every method\n"
        f"\nTry next:\n"
        f"  castpoi serve {folder}        (a map, in a browser)\n"
        f"  castpoi data describe {town} --html {page}\n"
        f"  castpoi data audit {town}\n"
        f"  castpoi compare {results}\n"
        f"  castpoi data prepare YOUR_TABLE.csv --out my-city"
    )
    console.result(
        {
            "out": str(out),
            "seconds": round(seconds, 3),
            "city": {key: manifest[key] for key in ("checkins", "users", "places", "test")},
            "run": {"method": run.method, "folder": str(run.folder)},
            "comparison": as_json(comparison),
        }
    )
