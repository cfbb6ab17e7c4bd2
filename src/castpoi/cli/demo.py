"""`castpoi demo`: every step on a synthetic city, from check-ins to one table of methods."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import click

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, check_free, synthesize, write_checkins
from castpoi.cli.compare import as_json, show_comparison
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import DEFAULT_SEED, PORT, Seed, options_of, out_option
from castpoi.cli.serve import serve
from castpoi.core.files import check_vacant, write_json, writing
from castpoi.core.progress import Progress
from castpoi.core.provenance import Stopwatch
from castpoi.evaluation.compare import Comparison, compare
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from castpoi.experiments.folder import clear
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import Run
from castpoi.serving.settings import ServiceSettings
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit, settings_of, train

_SIZE: Final = (200, 3)
_QUICK_SIZE: Final = (30, 1)  # people and epochs, by default and with --quick
_NETWORK: Final = "core"
"""The sequence model of the demo: quickly trained, and the best of them after few epochs."""

# Small steps and few candidates per target, on one core, which is as fast for so small a city and
# four times as fast where the cores are busy: castpoi-next and CORE take half a minute.
_SMALL: Final = {"threads": "1", "batch": "128", "hard_candidates": "8", "drawn_candidates": "10"}
_TUNED: Final = "tuned"
_CHECKINS: Final = "checkins.csv.gz"


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The options of `castpoi demo`."""

    seed: Seed = DEFAULT_SEED
    """Seed of the city and of the models."""
    users: int | None = None
    """People of the city.  [default: 200; 30 with --quick]"""
    epochs: Annotated[int, click.IntRange(min=1)] | None = None
    """Passes of each training; slow baselines get fewer.  [default: 3; 1 with --quick]"""
    all: bool = False
    """Every method; takes several minutes."""
    quick: bool = False
    """The smallest city, in seconds, to test castpoi."""
    serve: bool = False
    """At the end, serve a map until stopped."""
    port: Annotated[int, PORT] = ServiceSettings.port
    """Port to listen on; 0 takes a free one."""


@click.command()
@out_option(
    "Folder for all files of the demo.",
    replaces="a previous demo; other files stay",
    required=False,
    default=Path("castpoi-demo"),
    show_default=True,
)
@options_of(_Options, "options")
@output_options
def demo(console: Console, *, out: Path, overwrite: bool, options: _Options) -> None:
    """Run every step on a synthetic city, in a minute; it needs no network and no files of yours.

    Makes check-ins by published laws of human mobility, prepares a city, trains castpoi-next and
    CORE briefly, evaluates them and the counting baselines under one protocol and prints one table.
    The best model is in OUT/run. With --serve the demo ends with a map of the city, in a browser.
    """
    if options.serve and console.as_json:
        raise click.UsageError(
            "--serve runs until stopped and --json ends with one object: leave one of them out; "
            "'castpoi serve' can serve the run of the demo afterwards"
        )
    default_users, default_epochs = _QUICK_SIZE if options.quick else _SIZE
    users, epochs = options.users or default_users, options.epochs or default_epochs
    _make_folder(out, overwrite=overwrite)
    steps = _Steps(console, console.progress())
    steps.note(f"preparing a synthetic city of {users:,} people")
    config = SynthesisConfig(users=users, places=max(4 * users, 200))
    seed, progress = options.seed, steps.progress
    checkins = synthesize(config, seed=seed, progress=progress)
    source = write_checkins(checkins, out / _CHECKINS, config=config, seed=seed, overwrite=True)
    city = prepare([source], out / "city", Preparation(), overwrite=True, progress=progress)
    steps.note(f"training {METHODS.best.name}")
    run = train(
        out / "city", out / "run", method=METHODS.best.name, seed=seed, overwrite=True,
        progress=progress, options=_brief_training(METHODS.best, epochs),
    )  # fmt: skip
    comparison = compare(_results(city, run, out, epochs, steps, options.all), sort_by="MRR")
    _show(console, city, run, out, comparison, seconds=steps.watch.seconds)
    if options.serve:
        console.print("\nOpen the address below in a browser for the map of the city.")
        quiet = {"as_json": False, "quiet": console.quiet, "debug": False}
        click.get_current_context().invoke(serve, run=run.folder, port=options.port, **quiet)


@dataclass(frozen=True)
class _Steps:
    """The steps of a demo: a line for each, also where standard error is no terminal, and bars."""

    console: Console
    progress: Progress
    watch: Stopwatch = field(default_factory=Stopwatch)

    def note(self, text: str) -> None:
        """Print the beginning of a step."""
        if not self.console.quiet:
            self.console.note(f"[{self.watch.seconds:3.0f} s] {text}")


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


def _results(
    city: City, run: Run, out: Path, epochs: int, steps: _Steps, trains_all: bool
) -> list[Result]:
    """Train and evaluate all methods, or the counting baselines and two others."""
    results, progress, chosen = [], steps.progress, (METHODS.best.name, _NETWORK)
    compared = [
        each
        for each in METHODS
        if (each.is_available if trains_all else not each.needs_training or each.name in chosen)
    ]
    for number, method in enumerate(compared, start=1):
        is_trained = method.name == run.method or not method.needs_training
        verb = "evaluating" if is_trained else "training and evaluating"
        steps.note(f"{verb} {method.name}, method {number} of {len(compared)}")
        options = _brief_training(method, epochs)
        ranker = run.ranker
        if method.name != run.method:
            ranker = fit(city, method, seed=run.seed, progress=progress, options=options).ranker
        result = evaluate(ranker, city, method=method.name, seed=run.seed, progress=progress)
        result.save(out / "results" / method.name, overwrite=True)
        results.append(result)
    for method in METHODS:
        if method not in compared:
            clear(out / "results" / method.name, "result")  # of a previous demo with --all
    return results


def _brief_training(method: Method, epochs: int) -> TrainingOptions | None:
    """The training of a method in a demo; None for a counting baseline."""
    if not method.needs_training:
        return None
    wanted = {"epochs": str(max(1, round(method.demo_epochs * epochs))), **_SMALL}
    known = settings_of(method) if method.is_ours else {"epochs", "threads"}
    return TrainingOptions(
        preset=_TUNED if _TUNED in method.presets else None,
        settings={name: value for name, value in wanted.items() if name in known},
    )


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
    shown = {row.method for row in comparison.rows}
    left_out = [each.name for each in METHODS if each.is_available and each.name not in shown]
    if left_out:
        console.print(f"'castpoi demo --all' also has, in several minutes: {', '.join(left_out)}.")
    names = ("run", "city", "city.html", "results")
    folder, town, page, results = (shlex.quote(str(out / name)) for name in names)
    console.print(
        "Trained methods had a few epochs only; 'castpoi train' uses all of them.\n"
        f"\nDone in {seconds:.1f} s. Everything is in {out}:\n"
        f"  {_CHECKINS}  the raw check-ins, a table like your own\n"
        f"  city/            cleaned, split and fingerprinted\n"
        f"  run/             {run.method}, trained\n"
        f"  results/         the rank of every target by each method\n"
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
