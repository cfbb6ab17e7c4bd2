"""`castpoi compare`: results side by side, with the best of every column marked."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from castpoi.cli.console import Console, output_options, width_of
from castpoi.cli.options import FOLDER
from castpoi.core.errors import BadInput
from castpoi.core.files import write_text, writing
from castpoi.evaluation.compare import Comparison
from castpoi.evaluation.metrics import METRICS, STRATA
from castpoi.experiments.folder import SUITE_FILE
from castpoi.library.compare import SHOWN, STARS, TESTED, metric_cells
from castpoi.library.compare import Comparison as TestedComparison
from castpoi.library.compare import compare as compare_results

_BEST: Final = "*"
_ENDINGS: Final = (".md", ".csv", ".tex")
_PARTS: Final = ("difference", "low", "high", "p", "wilcoxon_p", "bootstrap_p")


@click.command()
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--sort",
    "sort_by",
    type=click.Choice(METRICS, case_sensitive=False),
    default="MRR",
    show_default=True,
    help="Metric to sort by, best first.",
)
@click.option(
    "--against", metavar="METHOD", help="Test every other method against this one (HR@10, MRR)."
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="FILE",
    help="Also write the table: FILE.md, .csv or .tex.",
)
@output_options
def compare(
    console: Console,
    results: tuple[Path, ...],
    sort_by: str,
    against: str | None,
    out: Path | None,
) -> None:
    """Print results side by side.

    A RESULT is a result folder or a folder with results. All must be of one city, one split and
    the same targets; methods with known time are compared with each other only. Several seeds of
    one method become mean ± sample standard deviation.
    """
    for folder in results:
        if (folder / SUITE_FILE).is_file():
            raise BadInput(
                f"{folder} is the folder of a suite; give results in it, CITY/ROW/SEED, or make a "
                f"page of all with: castpoi report {shlex.quote(str(folder))}"
            )
    if out is not None:
        _check_free(out)
    found = compare_results(results, against=against, sort_by=sort_by)
    show_comparison(console, found.rows)
    tests = _show_tests(console, found) if against else {}
    if out is not None:
        texts = {".md": found.to_markdown, ".csv": found.to_csv, ".tex": found.to_latex}
        with writing(out):
            write_text(out, texts[out.suffix]())
        console.print(f"{out}: the table")
    console.result({**as_json(found.rows), **tests})


def _check_free(out: Path) -> None:
    if out.suffix not in _ENDINGS:
        raise click.UsageError(f"--out {out} must end in {', '.join(_ENDINGS)}.")
    if out.exists():
        raise BadInput(f"{out} exists; choose another --out")


def _show_tests(console: Console, found: TestedComparison) -> dict[str, object]:
    """Show the tests against one method; returns them for JSON."""
    rows = [
        (row.method, *(cell.text + cell.stars for cell in cells[-len(TESTED) :]))
        for row, cells in zip(found.rows.rows, found.table.groups[0].rows, strict=True)
    ]
    console.table((f"minus {found.against}", *TESTED), rows)
    console.print(f"Differences with 95 % intervals; {STARS}")
    columns = [f"{metric}_{part}" for metric in TESTED for part in _PARTS]
    return {"against": found.against, "tests": found.frame.select("method", *columns).to_dicts()}


def as_json(comparison: Comparison) -> dict[str, object]:
    """The comparison as one JSON object, with the best methods of every metric."""
    best = {metric: comparison.best(metric) for metric in METRICS}
    return {**asdict(comparison), "best": best}


def show_comparison(console: Console, comparison: Comparison) -> None:
    """Print the table in percent, with as many metrics as fit."""
    wide = _cells(comparison, METRICS)
    console = console.with_room_for(wide)
    fits = width_of(wide) <= console.out.width
    header, *rows = wide if fits else _cells(comparison, SHOWN)
    known = ", with known time" if comparison.known_time else ""
    title = f"{comparison.n:,} {comparison.part} targets{known}, in percent"
    console.table(header, rows, title=title)
    console.print(
        f"{_BEST} best of its column; split {comparison.fingerprint[:12]}"
        + ("" if fits else "; a wider terminal or --json shows all metrics")
    )


def _cells(comparison: Comparison, metrics: Sequence[str]) -> list[list[str]]:
    """Header and rows of the table, as text."""
    cells = [["method", *metrics, *(f"{stratum} HR@10" for stratum in STRATA)]]
    for row in comparison.rows:
        seeds = f" ({len(row.seeds)} seeds)" if len(row.seeds) > 1 else ""
        values = metric_cells(comparison, row, metrics)
        cells.append([row.method + seeds, *(each.full + _BEST * each.is_best for each in values)])
    return cells
