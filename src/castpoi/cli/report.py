"""`castpoi report`: one page, tables, figures and model cards about results."""

import shlex
from pathlib import Path

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, out_option
from castpoi.core.files import check_vacant
from castpoi.core.quantities import counted
from castpoi.reports.report import Report, write_report


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@out_option(
    "The report to write.  [default: DIR/report]", replaces="a previous report", required=False
)
@click.option(
    "--ours",
    metavar="NAME",
    multiple=True,
    help="The method or row that the report is about; may be given several times. All others are "
    "baselines.  [default: those of the suite, else castpoi and castpoi-next]",
)
@output_options
def report(
    console: Console, folder: Path, out: Path | None, ours: tuple[str, ...], overwrite: bool
) -> None:
    """Write one page about all results in DIR.

    DIR is the folder of a suite ('castpoi reproduce') or any folder with results in it. The report
    has report.html, which needs no network, tables as Markdown, CSV and LaTeX, figures as SVG and
    PNG, and a model card for every method. It lists missing results.
    """
    out = folder / "report" if out is None else out
    check_vacant(out, kind="report", overwrite=overwrite)
    named = [word for name in ours for word in ("--ours", name)]
    command = shlex.join(["castpoi", "report", str(folder), *named, "--out", str(out)])
    made = write_report(
        folder,
        out,
        ours=ours,
        overwrite=overwrite,
        command=command,
        progress=console.progress(),
    )
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
    console.print(
        f"{counted(len(evidence.results), 'result')} of {counted(len(evidence.rows), 'row')} on "
        f"{', '.join(city.name for city in evidence.cities)}: "
        f"{counted(len(made.tables), 'table')}, {counted(len(made.charts), 'figure')}, "
        f"{counted(len(made.verdicts.all), 'test')}."
    )
    for gap in made.missing:
        console.print(f"  missing: {gap}")
    console.print(f"{out / 'report.html'}: the page, to open in a browser")
