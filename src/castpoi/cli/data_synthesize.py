"""`castpoi data synthesize`: the raw check-ins of a city that does not exist."""

import shlex
from pathlib import Path
from time import perf_counter

import click

from castpoi.checkins.synthetic import SynthesisConfig, check_free, write_checkins
from castpoi.checkins.synthetic import synthesize as synthesize_checkins
from castpoi.cli.console import Console, speaks


@click.command()
@click.option("--users", type=int, default=SynthesisConfig.users, show_default=True, help="People.")
@click.option(
    "--places",
    type=int,
    default=SynthesisConfig.places,
    show_default=True,
    help="Places, homes and works included.",
)
@click.option(
    "--days", type=int, default=SynthesisConfig.days, show_default=True, help="Local days."
)
@click.option(
    "--checkins-per-day",
    type=float,
    default=SynthesisConfig.checkins_per_day,
    show_default=True,
    help="Of the mean person.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Same seed, same check-ins.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="A table (.parquet, .csv, .csv.gz, .tsv, .tsv.gz); a name without an ending is a folder.",
)
@click.option("--overwrite", is_flag=True, help="Replace a former synthetic city.")
@speaks
def synthesize(
    console: Console,
    users: int,
    places: int,
    days: int,
    checkins_per_day: float,
    seed: int,
    out: Path,
    overwrite: bool,
) -> None:
    """Make the check-ins of a synthetic city after the published laws of human mobility.

    The table is a source for 'castpoi data prepare'. It is for demonstrations and tests; it is
    never mixed into results on real cities.
    """
    began = perf_counter()
    config = SynthesisConfig(
        users=users, places=places, days=days, checkins_per_day=checkins_per_day
    )
    check_free(out, overwrite=overwrite)
    with console.progress() as progress:
        checkins = synthesize_checkins(config, seed=seed, progress=progress)
        with progress.task("writing"):
            table = write_checkins(checkins, out, config=config, seed=seed, overwrite=overwrite)
    summary = {
        "checkins": checkins.height,
        "users": checkins["user"].n_unique(),
        "places": checkins["place"].n_unique(),
        "days": days,
        "seed": seed,
        "out": str(out),
        "table": str(table),
        "seconds": round(perf_counter() - began, 3),
    }
    console.say(
        f"{checkins.height:,} check-ins of {summary['users']:,} people at {summary['places']:,} "
        f"places are in {table} ({summary['seconds']} s)."
    )
    console.say(f"Next: castpoi data prepare {shlex.quote(str(table))} --out CITY")
    console.result(summary)
