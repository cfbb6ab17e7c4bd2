"""`castpoi data audit`, `export`, `synthesize` and `fetch`: check, write, make or download
check-ins."""

import shlex
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import click

from castpoi.checkins.audit import audit as audit_city
from castpoi.checkins.city import City
from castpoi.checkins.export import export_recbole
from castpoi.checkins.fetch import DATASETS
from castpoi.checkins.fetch import fetch as fetch_dataset
from castpoi.checkins.synthetic import SynthesisConfig, check_free, write_checkins
from castpoi.checkins.synthetic import synthesize as synthesize_checkins
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import DEFAULT_SEED, FOLDER, SEED, options_of, out_option

_MARKS = {"passed": "passed", "warned": "WARNED", "failed": "FAILED"}


@click.command(epilog="Exit code 0 if no check failed, 1 if one did.")
@click.argument("city", type=FOLDER)
@output_options
def audit(console: Console, city: Path) -> None:
    """Check a CITY for leakage, wrong clocks and implausible data.

    Checks: fingerprint, time order, targets in their own history, unseen users or places, overlap
    of the splits, training on later check-ins, share of revisits, rhythm, local clock, teleports,
    popularity skew.
    """
    with console.progress().task("auditing"):
        outcomes = audit_city(City.load(city, verify=False))
    rows = [(each.check, _MARKS[each.status], each.finding) for each in outcomes]
    console.table(("check", "outcome", "finding"), rows, left=3)
    counts = {status: sum(each.status == status for each in outcomes) for status in _MARKS}
    console.print(", ".join(f"{count} {status}" for status, count in counts.items()))
    console.result({"checks": [asdict(each) for each in outcomes], **counts})
    if counts["failed"]:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("city", type=FOLDER)
@out_option("The file to write, NAME.inter; NAME.item is next to it.", replaces="previous files")
@output_options
def export(console: Console, city: Path, *, out: Path, overwrite: bool) -> None:
    """Write a CITY as the atomic files of RecBole.

    NAME.inter has user_id, item_id, timestamp and split of every check-in of the split, NAME.item
    the places. 'castpoi data prepare NAME.inter' reads both again.
    """
    loaded = City.load(city)
    items = export_recbole(loaded, out, overwrite=overwrite)
    kept = len(loaded.trajectories)
    console.print(f"{out}: {kept:,} check-ins; {items}: {loaded.places.height:,} places.")
    console.result({"checkins": kept, "places": loaded.places.height, "out": str(out)})


@click.command()
@options_of(SynthesisConfig, "config", only=("users", "places", "days", "checkins_per_day"))
@click.option(
    "--seed",
    type=SEED,
    metavar="N",
    default=DEFAULT_SEED,
    show_default=True,
    help="Seed of the random numbers; the same seed gives the same table.",
)
@out_option(
    "A table (.parquet, .csv, .csv.gz, .tsv, .tsv.gz); a name without an ending is a folder.",
    replaces="a previous synthetic city",
)
@output_options
def synthesize(
    console: Console, *, config: SynthesisConfig, seed: int, out: Path, overwrite: bool
) -> None:
    """Make the check-ins of a synthetic city, by published laws of human mobility.

    The table is a source for 'castpoi data prepare'. It is for demonstrations and tests, never
    mixed into results on real cities.
    """
    began = perf_counter()
    check_free(out, overwrite=overwrite)
    progress = console.progress()
    checkins = synthesize_checkins(config, seed=seed, progress=progress)
    with progress.task("writing"):
        table = write_checkins(checkins, out, config=config, seed=seed, overwrite=overwrite)
    summary = {
        "checkins": checkins.height,
        "users": checkins["user"].n_unique(),
        "places": checkins["place"].n_unique(),
        "days": config.days,
        "seed": seed,
        "out": str(out),
        "table": str(table),
        "seconds": round(perf_counter() - began, 3),
    }
    console.print(
        f"{table}: {checkins.height:,} check-ins of {summary['users']:,} people at "
        f"{summary['places']:,} places ({summary['seconds']} s)."
    )
    console.print(f"Next: castpoi data prepare {shlex.quote(str(table))} --out CITY")
    console.result(summary)


@click.command()
@click.argument("dataset", type=click.Choice(list(DATASETS)))
@click.option(
    "--out",
    "folder",
    type=FOLDER,
    default=Path("data"),
    show_default=True,
    metavar="FOLDER",
    help="Folder for the file.",
)
@output_options
def fetch(console: Console, dataset: str, folder: Path) -> None:
    """Download a public data set, resuming a partial download, and check it.

    nyc and tky are the Foursquare check-ins of Yang et al. (2015), gowalla and brightkite those
    of Cho et al. (2011). FILE.source.json next to the file has its address, its SHA-256 and the
    citation. A file that exists already is checked and kept.
    """
    fetched = fetch_dataset(dataset, folder, progress=console.progress())
    done = "downloaded" if fetched.downloaded else "already there"
    resumed = " (resumed)" if fetched.resumed else ""
    console.print(
        f"{fetched.file}: {done}{resumed} and checked, {fetched.rows:,} rows, "
        f"{fetched.bytes:,} bytes ({fetched.checksum})."
    )
    recipe = f" --recipe {name}" if (name := DATASETS[dataset].recipe) else ""
    file = shlex.quote(str(fetched.file))
    console.print(f"Next: castpoi data prepare {file}{recipe} --out {dataset}")
    console.result(
        {
            **asdict(fetched),
            "file": str(fetched.file),
            "seconds": round(fetched.seconds, 3),
            "verified": True,  # a file that fails a check is an error
        }
    )
