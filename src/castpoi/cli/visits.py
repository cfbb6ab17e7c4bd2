"""The visit store of a service: `castpoi visits export` and `castpoi evaluate-log`."""

import shlex
from contextlib import closing
from pathlib import Path

import click
import polars as pl

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, out_option, store_option
from castpoi.core.errors import BadInput, extra_for
from castpoi.methods.run import load_run
from castpoi.recommend.changed_places import cold_places
from castpoi.serving.settings import default_store


@click.command()
@store_option("RUN.visits.sqlite, with --run")
@click.option("--run", type=FOLDER, help="The run that is served; adds the details of its places.")
@click.option(
    "--places",
    "new_places",
    type=FOLDER,
    metavar="FILE",
    help="The new places that the service ranks as well, as for 'castpoi serve --places'.",
)
@out_option("The table to write: .parquet or .csv.", replaces="a previous table")
@output_options
def export(
    console: Console,
    *,
    store: str | None,
    run: Path | None,
    new_places: Path | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Write the visits of a service to a table for 'castpoi data prepare'.

    The table has user, place and time (UTC); with --run also lat, lon, category and name of each
    place, and no visits at other places. The table includes the check-ins that the service imported
    and no erased user. Only its owner can read it. The service may keep running.
    """
    with extra_for("the visit store", "serve"):
        from castpoi.serving.export import export_visits
        from castpoi.serving.store import VisitStore
        from castpoi.serving.store_engine import check_exists
    if run is None and (store is None or new_places is not None):
        raise click.UsageError("Give --store or --run; with --places, give --run.")
    if out.suffix not in (".parquet", ".csv"):
        raise BadInput(f"{out} is not a name for a table; end it in .parquet or .csv")
    if out.exists() and not overwrite:
        raise BadInput(f"{out} already exists; choose another --out or replace it with --overwrite")
    places = None if run is None else load_run(run).places
    if places is not None and new_places is not None:
        places = pl.concat([places, cold_places(new_places, places)])
    store = store or default_store(run or Path())
    check_exists(store)
    with closing(VisitStore(store)) as opened:
        counts = export_visits(opened, out, places, progress=console.progress())
    console.print(
        f"{out}: {counts['visits']:,} visits of {counts['users']:,} users at {counts['places']:,} "
        "places."
    )
    if counts["left_out"]:
        console.note(
            f"Left out {counts['left_out']:,} visits at places that the run does not have; "
            "--places adds places."
        )
    console.print(f"Next: castpoi data prepare {shlex.quote(str(out))} --out CITY")
    console.result({**counts, "out": str(out)})


@click.command("evaluate-log")
@click.argument("log", type=FOLDER)
@store_option(required=True)
@output_options
def evaluate_log(console: Console, log: Path, store: str) -> None:
    """Compare the answers of a LOG with the visits that followed: hit rate and MRR of each run.

    LOG is the file of 'castpoi serve --answer-log', --store the visit store of that service. An
    answer is compared with the next visit of its user; of several answers before one visit only the
    last counts. HR@5: share of visits to one of the first five places shown.
    """
    with extra_for("the visit store", "serve"):
        from castpoi.serving.answer_log import evaluate_log as evaluated
        from castpoi.serving.store import VisitStore
        from castpoi.serving.store_engine import check_exists
    check_exists(store)
    with closing(VisitStore(store)) as opened:
        rows = evaluated(log, opened)
    numbers = [name for name in rows[0] if name not in ("run", "model")] if rows else []
    console.table(
        ["run", "model", *numbers],
        [[row["run"] or "-", row["model"], *(_shown(row[name]) for name in numbers)]
         for row in rows],
        left=2,
    )  # fmt: skip
    console.result({"rows": rows})


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{100 * value:.1f} %"
