"""`castpoi report`: results become one page, tables, figures and model cards."""

import shlex
from pathlib import Path

import click

from castpoi.cli.console import Console, speaks
from castpoi.core.files import check_vacant
from castpoi.core.quantities import counted
from castpoi.reports.report import Report, write_report


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The report to write; DIR/report unless told otherwise.",
)
@click.option("--overwrite", is_flag=True, help="Replace a former report.")
@speaks
def report(console: Console, folder: Path, out: Path | None, overwrite: bool) -> None:
    """One page about all results in DIR.

    DIR is the folder of a suite ('castpoi reproduce') or any folder with results below it. The
    report holds report.html, which needs no network, the tables as Markdown, CSV and LaTeX, the
    figures as SVG and PNG, and a model card for every method. It shows what is there and says what
    is missing.
    """
    out = folder / "report" if out is None else out
    check_vacant(out, kind="report", overwrite=overwrite)
    command = shlex.join(["castpoi", "report", str(folder), "--out", str(out)])
    with console.progress() as progress:
        made = write_report(folder, out, overwrite=overwrite, command=command, progress=progress)
    _show(console, made, out)
    console.result(
        {
            "out": str(out),
            "page": str(out / "report.html"),
            "cities": [city.name for city in made.evidence.cities],
            "rows": [row.name for row in made.evidence.rows],
            "results": len(made.evidence.results),
            "tables": [table.name for table in made.tables],
            "figures": [chart.name for chart in made.charts],
            "tests": len(made.verdicts.all),
            "missing": list(made.missing),
        }
    )


def _show(console: Console, made: Report, out: Path) -> None:
    evidence = made.evidence
    console.say(
        f"{counted(len(evidence.results), 'result')} of {counted(len(evidence.rows), 'row')} on "
        f"{', '.join(city.name for city in evidence.cities)}: "
        f"{counted(len(made.tables), 'table')}, {counted(len(made.charts), 'figure')}, "
        f"{counted(len(made.verdicts.all), 'test')}."
    )
    for gap in made.missing:
        console.say(f"  missing: {gap}")
    console.say(f"Written: {out / 'report.html'}")
