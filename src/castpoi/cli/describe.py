"""`castpoi data describe`: the numbers of a city as text, JSON or a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from castpoi.checkins.city import City, name_of
from castpoi.checkins.describe import Bucket, CityDescription, Quartiles, describe_city
from castpoi.cli.console import Console, output_options
from castpoi.core.errors import BadInput, extra_for
from castpoi.core.files import write_text, writing
from castpoi.core.quantities import day_words, distance_words, duration_words, share_words

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
