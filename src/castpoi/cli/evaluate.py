"""`castpoi evaluate`: rank every target of a city."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from castpoi.checkins.city import City
from castpoi.cli.console import Console, speaks
from castpoi.cli.options import FOLDER, method_list, out_option, split_option
from castpoi.core.errors import BadInput
from castpoi.core.files import check_vacant
from castpoi.core.progress import Progress
from castpoi.evaluation.evaluate import evaluate as evaluate_ranker
from castpoi.evaluation.metrics import METRICS, STRATA
from castpoi.evaluation.result import Result
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run, city_of, load_run
from castpoi.reports.biases import read_biases
from castpoi.training.train import fit


@dataclass(frozen=True)
class _Subject:
    """A ranker to evaluate, its city, and their origin."""

    ranker: SavableRanker[Any]
    city: City
    method: str
    seed: int
    origin: dict[str, Any]


@click.command(
    epilog=method_list(
        "Methods without training:", (method for method in METHODS if not method.needs_training)
    )
)
@click.argument("run", type=FOLDER, required=False)
@click.option(
    "--city", type=FOLDER, help="The city to rank.  [default: the city that the run was trained on]"
)
@click.option("--model", metavar="NAME", help="A method without training, instead of a run.")
@out_option("The result to write.", replaces="a previous result")
@split_option
@speaks
def evaluate(
    console: Console,
    run: Path | None,
    city: Path | None,
    model: str | None,
    out: Path,
    part: str,
    overwrite: bool,
) -> None:
    """Rank every target of a RUN's city, or of --city with --model, and write a result."""
    if run is not None and model is not None:
        raise click.UsageError(
            "Give either a RUN or --model, not both: a run already has a method."
        )
    check_vacant(out, kind="result", overwrite=overwrite)
    with console.progress() as progress:
        if run is not None:
            subject = _from_run(run, city, part)
        elif city is not None and model is not None:
            subject = _from_method(city, model, part, progress)
        else:
            raise click.UsageError("Give a RUN, or both --city and --model.")
        result = evaluate_ranker(
            subject.ranker,
            subject.city,
            method=subject.method,
            seed=subject.seed,
            part=part,
            origin={**subject.origin, "command": _command(run, city, model, out, part)},
            progress=progress,
        )
    result.save(out, overwrite=overwrite)
    _show(console, result, out)


def _show(console: Console, result: Result, out: Path) -> None:
    """Show a result that is written, and the next command."""
    _show_table(console, result)
    console.say(f"{out}: {result.ranks.height:,} ranked targets.")
    console.say(f"Next: castpoi compare {shlex.quote(str(out))} RESULT...")
    console.result(
        {
            **result.summary(),
            "method": result.method,
            "seed": result.seed,
            "fingerprint": result.fingerprint,
            "part": result.part,
            "known_time": result.known_time,
            "out": str(out),
        }
    )


def _show_table(console: Console, result: Result) -> None:
    """One result in percent: all targets, revisits, new places."""
    sides = [{**result.metrics, "n": result.ranks.height}, *(result.strata[s] for s in STRATA)]
    rows = [["targets", *(f"{side['n']:,}" for side in sides)]]
    rows += [[metric, *(_percent(side[metric]) for side in sides)] for metric in METRICS]
    known_time = " with known time" if result.known_time else ""
    console.table(
        ["%", "overall", *STRATA],
        rows,
        title=f"{result.method}{known_time} on the {result.part} part ({result.seconds:.1f} s)",
    )


def _from_run(folder: Path, city_folder: Path | None, part: str) -> _Subject:
    run = load_run(folder)
    run.check_may_predict(part)
    city = city_of(run, city_folder)
    origin: dict[str, Any] = {
        "run": str(folder.resolve()),
        "city": str((city_folder or run.city).resolve()),
        "row": run.row,
        "trained": _how_trained(run),
    }
    learned = read_biases(folder)  # a few numbers, so that reports can do without the weights
    if learned:
        origin["learned"] = learned
    return _Subject(run.ranker, city, run.method, run.seed, origin)


def _how_trained(run: Run) -> dict[str, Any]:
    """Origin and cost of the run, for a result that is kept longer than the run."""
    noted = ("commit", "started_utc", "wall_seconds", "peak_memory_mb")
    return {
        "config": run.ranker.config,
        **{name: run.manifest[name] for name in noted if name in run.manifest},
    }


def _from_method(city_folder: Path, name: str, part: str, progress: Progress) -> _Subject:
    method = METHODS.named(name)
    if method.needs_training:
        raise BadInput(
            f"{name} needs training; first 'castpoi train {city_folder} --model {name} --out RUN', "
            "then 'castpoi evaluate RUN'"
        )
    city = City.load(city_folder)
    ranker = fit(method, city, part=part, progress=progress)
    return _Subject(ranker, city, name, 0, {"city": str(city_folder.resolve())})


def _command(run: Path | None, city: Path | None, model: str | None, out: Path, part: str) -> str:
    """The command that makes this result again."""
    words = ["castpoi", "evaluate"] + ([str(run)] if run else [])
    options = {"--city": city, "--model": model, "--out": out, "--part": part}
    for option, value in options.items():
        words += [option, str(value)] if value is not None else []
    return shlex.join(words)


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.2f}"
