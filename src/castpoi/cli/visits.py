"""`castpoi visits export`: the visits of a service as a table."""

import shlex
from contextlib import closing
from pathlib import Path

import click
import polars as pl

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, out_option, store_option
from castpoi.core.errors import BadInput, extra_for
from castpoi.methods.run import load_run
from castpoi.recommend.cold_places import cold_places
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
