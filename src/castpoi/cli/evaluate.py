"""`castpoi evaluate`: rank every target of a city."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import click

from castpoi.checkins.city import City
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, method_list, options_of, out_option
from castpoi.core.files import check_vacant, find_folders
from castpoi.evaluation.metrics import METRICS, STRATA
from castpoi.evaluation.result import Result
from castpoi.experiments.evaluate import evaluate_counted, evaluate_run
from castpoi.library.evaluate import evaluate_lists
from castpoi.methods.registry import METHODS
from castpoi.methods.run import city_of, load_run

_ABOUT: Final = ("method", "seed", "fingerprint", "part", "known_time")


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The options about what is evaluated."""

    city: Path | None = None
    """The city to rank.  [default: the city that the run was trained on]"""
    model: Annotated[str, "NAME"] | None = None
    """A method without training, instead of a run."""
    lists: Annotated[Path, "FILE"] | None = None
    """Lists made elsewhere, instead of a run: a csv, jsonl or parquet file with user, place, and
    rank or score."""
    split: Literal["test", "validation"] = "test"
    """Split to predict; the method uses only check-ins before it."""


@click.command(
    epilog=method_list(
        "Methods without training:", (method for method in METHODS if not method.needs_training)
    )
)
@click.argument("run", type=FOLDER, required=False)
@out_option(
    "The result to write; of several runs, the folder for them.", replaces="a previous result"
)
@options_of(_Source, "source")
@output_options
def evaluate(
    console: Console, run: Path | None, *, source: _Source, out: Path, overwrite: bool
) -> None:
    """Rank every target of a RUN's city, or of --city with --model or --lists; write a result.

    RUN may be a folder of runs ('castpoi train --seeds'): each gets a result in OUT.
    """
    if sum(each is not None for each in (run, source.model, source.lists)) > 1:
        raise click.UsageError(
            "Give a RUN, --model or --lists, and only one of them: a run already has a method."
        )
    runs = [] if run is None else find_folders([run], "run")
    pairs = [(each, out / each.name) for each in runs] if runs != [run] else [(run, out)]
    done = []
    for each, target in pairs or [(None, out)]:
        check_vacant(target, kind="result", overwrite=overwrite)
        result = _evaluate(console, each, source, target)
        result.save(target, overwrite=overwrite, run=each)
        _show(console, result)
        console.print(f"{target}: {result.ranks.height:,} ranked targets.")
        about = {name: result.manifest[name] for name in _ABOUT}
        done.append({**result.summary(), **about, "out": str(target)})
    console.print(f"Next: castpoi compare {shlex.quote(str(out))} RESULT...")
    console.result({"results": done} if len(done) > 1 else done[0])


def _evaluate(console: Console, run: Path | None, source: _Source, out: Path) -> Result:
    """The result of a run, a counting baseline or lists, with the command that makes it."""
    options = {"--city": source.city, "--model": source.model, "--lists": source.lists}
    options |= {"--out": out, "--split": source.split}
    words = [str(word) for each in options.items() if each[1] is not None for word in each]
    command = shlex.join(["castpoi", "evaluate", *([] if run is None else [str(run)]), *words])
    city, part = source.city, source.split
    progress = console.progress()
    if run is not None:
        loaded = load_run(run)
        found = city_of(loaded, city)
        return evaluate_run(loaded, found, part=part, progress=progress, command=command)
    if city is not None and source.model is not None:
        found = City.load(city)
        return evaluate_counted(source.model, found, part=part, progress=progress, command=command)
    if city is not None and source.lists is not None:
        result = evaluate_lists(source.lists, City.load(city), name=source.lists.stem, split=part)
        result.manifest.update(city=str(city.resolve()), command=command)
        return result
    raise click.UsageError("Give a RUN, or --city with --model or --lists.")


def _show(console: Console, result: Result) -> None:
    """Show one result in percent: all targets, revisits, new places."""
    sides = [{**result.metrics, "n": result.ranks.height}, *(result.strata[s] for s in STRATA)]
    rows = [["targets", *(f"{side['n']:,}" for side in sides)]]
    for metric in METRICS:
        fractions = [side[metric] for side in sides]
        rows.append([metric, *("-" if f is None else f"{100 * f:.2f}" for f in fractions)])
    known_time = " with known time" if result.known_time else ""
    console.table(
        ["%", "overall", *STRATA],
        rows,
        title=f"{result.method}{known_time} on the {result.part} split ({result.seconds:.1f} s)",
    )
