"""`castpoi data describe`, `audit`, `export`, `synthesize` and `fetch`."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Final

import click
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from castpoi.checkins.audit import audit as audit_city
from castpoi.checkins.city import City, name_of
from castpoi.checkins.describe import Bucket, CityDescription, Quartiles, describe_city
from castpoi.checkins.export import export_recbole
from castpoi.checkins.fetch import DATASETS
from castpoi.checkins.fetch import fetch as fetch_dataset
from castpoi.checkins.synthetic import SynthesisConfig, check_free, write_checkins
from castpoi.checkins.synthetic import synthesize as synthesize_checkins
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import DEFAULT_SEED, FOLDER, SEED, options_of, out_option
from castpoi.core.errors import BadInput, extra_for
from castpoi.core.files import write_text, writing
from castpoi.core.quantities import day_words, distance_words, duration_words, share_words

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


_PAGE: Final = b"<!doctype html>"
_BAR_WIDTH: Final = 32
_LABEL_WIDTH: Final = 22
_MAX_ZONES: Final = 3


@click.command()
@click.argument("city", type=click.Path(path_type=Path))
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write one self-contained page with charts and a map of the places.",
)
@click.option("--overwrite", is_flag=True, help="Replace a previous page.")
@output_options
def describe(console: Console, city: Path, html: Path | None, overwrite: bool) -> None:
    """Show counts, rhythm and distances of a CITY.

    Counts, check-ins per user, share of revisits, histograms of distances and gaps, and check-ins
    by local hour. The page of --html has places and totals, no users; it needs no network.
    """
    if html is not None:
        _check_vacant(html, overwrite=overwrite)
    loaded = City.load(city)
    name = name_of(city.resolve())
    description = describe_city(loaded)
    if html is not None:
        _write_page(html, loaded, description, name)
    if not console.as_json:
        _show(console, description, name)
    console.print(f"Fingerprint {loaded.fingerprint}")
    if html is not None:
        console.print(f"{html}: a page with charts and a map")
    about = {"fingerprint": loaded.fingerprint, "html": None if html is None else str(html)}
    console.result({**description.as_json(), **about})


def _check_vacant(page: Path, *, overwrite: bool) -> None:
    if not page.exists():
        return
    if not overwrite:
        raise BadInput(f"{page} exists; choose another --html or replace it with --overwrite")
    with page.open("rb") as file:
        if file.read(len(_PAGE)) != _PAGE:
            raise BadInput(f"{page} exists and is not a page; choose another --html")


def _write_page(page: Path, city: City, description: CityDescription, name: str) -> None:
    with extra_for("--html", "report"):
        from castpoi.reports.city_page import city_page
    html = city_page(city, description, name=name)
    with writing(page, option="--html"):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_text(page, html)


def _show(console: Console, description: CityDescription, name: str) -> None:
    console.print(name)
    console.print(_when_and_where(description))
    console.table(("", "count"), _counts(description))
    per = {"user": description.checkins_per_user, "place": description.checkins_per_place}
    console.table(
        ("check-ins per", "min", "25%", "median", "75%", "mean", "max"),
        [(thing, *_cells(quartiles)) for thing, quartiles in per.items() if quartiles],
    )
    if not description.checkins:
        return
    _show_bars(console, "Check-ins by local hour", description.hours)
    _show_bars(console, "Check-ins by local weekday", description.weekdays)
    if description.median_distance_km is not None:
        median = distance_words(description.median_distance_km)
        stays = share_words(description.same_place_share)
        heading = f"Distance to the user's next visit: median {median}, {stays} at the same place"
        _show_bars(console, heading, description.distances)
        gap = duration_words(3600 * (description.median_gap_hours or 0))
        _show_bars(console, f"Gap to the user's next visit: median {gap}", description.gaps)
    _show_bars(console, "Top categories", description.top_categories)
    console.print(
        f"\nPopularity: the busiest 1% of places have "
        f"{share_words(description.top_1_percent_share)} of the check-ins,\n"
        f"the busiest 10% {share_words(description.top_10_percent_share)}; "
        f"Gini coefficient {description.gini:.3f}"
    )


def _when_and_where(description: CityDescription) -> str:
    if not description.checkins:
        return "no check-ins"
    zones = [zone.label for zone in description.zones]
    named = ", ".join(zones[:_MAX_ZONES])
    more = f" and {len(zones) - _MAX_ZONES} more zones" if len(zones) > _MAX_ZONES else ""
    first, last = day_words(description.first_day), day_words(description.last_day)
    return f"{first} to {last}, {description.days:,} days\nin {named}{more}"


def _counts(description: CityDescription) -> list[tuple[str, str]]:
    names = ("check-ins", "users", "places", "private places", "categories")
    rows = [
        (name, f"{getattr(description, name.replace(' ', '_').replace('-', '')):,}")
        for name in (*names, "train", "validation", "test targets", "left out")
    ]
    rows.append(("revisits among test targets", share_words(description.revisit_share)))
    rows.append(("new places among test targets", share_words(description.new_share)))
    return rows


def _cells(counts: Quartiles) -> tuple[str, ...]:
    between = (counts.lower_quartile, counts.median, counts.upper_quartile, counts.mean)
    cells = (f"{number:,.1f}".removesuffix(".0") for number in between)
    return (f"{counts.min:,}", *cells, f"{counts.max:,}")


def _show_bars(console: Console, heading: str, buckets: Sequence[Bucket]) -> None:
    """A bar with share and count for each bucket up to the last one that is not empty."""
    top = max((bucket.share for bucket in buckets), default=0.0) or 1.0
    last = max((number for number, bucket in enumerate(buckets, 1) if bucket.count), default=0)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL_WIDTH, no_wrap=True, overflow="ellipsis")
    for justify in ("left", "right", "right"):
        grid.add_column(justify=justify)
    for bucket in buckets[:last]:
        end = max(bucket.share, top / 8 / _BAR_WIDTH if bucket.count else 0)
        bar = Bar(top, 0, end, width=_BAR_WIDTH, color="blue")
        grid.add_row(Text(bucket.label), bar, share_words(bucket.share), f"{bucket.count:,}")
    console.out.print("\n", Text(heading, style="bold"), sep="")
    console.out.print(grid, soft_wrap=False)
