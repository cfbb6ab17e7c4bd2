"""`castpoi data describe`: the numbers of a city as text, JSON or a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.cells import set_cell_size
from rich.text import Text

from castpoi.checkins.city import City
from castpoi.checkins.describe import Bucket, CityDescription, Quartiles, describe_city
from castpoi.cli.console import Console, speaks
from castpoi.core.errors import BadInput
from castpoi.core.files import write_text, writing
from castpoi.core.quantities import day_words, distance_words, duration_words, share_words

_PAGE: Final = b"<!doctype html>"
_RISING: Final = " ▁▂▃▄▅▆▇█"
_GROWING: Final = " ▏▎▍▌▋▊▉█"
_INK: Final = "blue"
_PLOT_ROWS: Final = 8
_BAR_WIDTH: Final = 32
_LABEL_WIDTH: Final = 22
_MOST_ZONES: Final = 3


@click.command()
@click.argument("city", type=click.Path(path_type=Path))
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write one self-contained page with charts and a map of the places.",
)
@click.option("--overwrite", is_flag=True, help="Replace a previous page.")
@speaks
def describe(console: Console, city: Path, html: Path | None, overwrite: bool) -> None:
    """Counts, rhythm and distances of CITY.

    Counts, check-ins per user, share of revisits, histograms of distances and gaps, and the curve
    of local hours. The page of --html has places and totals, no users; it needs no network.
    """
    if html is not None:
        _check_vacant(html, overwrite=overwrite)
    loaded = City.load(city)
    name = _name_of(city)
    description = describe_city(loaded)
    if html is not None:
        page = _page_of(loaded, description, name)
        with writing(html, option="--html"):
            html.parent.mkdir(parents=True, exist_ok=True)
            write_text(html, page)
    if console.as_json:
        about = {"fingerprint": loaded.fingerprint, "html": None if html is None else str(html)}
        console.result({**description.as_json(), **about})
        return
    _report(console, description, name)
    console.say(f"Fingerprint {loaded.fingerprint}")
    if html is not None:
        console.say(f"{html}: a page with charts and a map")


def _name_of(city: Path) -> str:
    """The folder of a city, or the one around it where that is just called "city"."""
    folder = city.resolve()
    return folder.parent.name if folder.name == "city" else folder.name


def _page_of(city: City, description: CityDescription, name: str) -> str:
    try:
        from castpoi.reports.city_page import city_page
    except ModuleNotFoundError as problem:
        raise BadInput(
            f"--html needs {problem.name}, which is not installed; pip install 'castpoi[report]'"
        ) from problem
    return city_page(city, description, name=name)


def _check_vacant(page: Path, *, overwrite: bool) -> None:
    if not page.exists():
        return
    if not overwrite:
        raise BadInput(f"{page} exists; choose another --html or replace it with --overwrite")
    with page.open("rb") as file:
        if file.read(len(_PAGE)) != _PAGE:
            raise BadInput(f"{page} exists and is not a page; choose another --html")


def _report(console: Console, description: CityDescription, name: str) -> None:
    console.say(name)
    console.say(_when_and_where(description))
    console.table(("", "count"), _counts(description))
    per = {"user": description.checkins_per_user, "place": description.checkins_per_place}
    console.table(
        ("check-ins per", "min", "25%", "median", "75%", "mean", "max"),
        [(thing, *_cells(quartiles)) for thing, quartiles in per.items() if quartiles],
    )
    if not description.checkins:
        return
    console.say()
    _show(console, "Check-ins by local hour", _hour_plot(description.hours))
    _show(console, "Check-ins by local weekday", _bars(description.weekdays))
    if description.median_distance_km is not None:
        median = distance_words(description.median_distance_km)
        stays = share_words(description.same_place_share)
        heading = f"Distance to the user's next visit: median {median}, {stays} at the same place"
        _show(console, heading, _bars(_until_last(description.distances)))
        heading = f"Gap to the user's next visit: median {_gap(description)}"
        _show(console, heading, _bars(_until_last(description.gaps)))
    _show(console, "Top categories", _bars(description.top_categories))
    console.say(
        f"Popularity: the busiest 1% of places have "
        f"{share_words(description.top_1_percent_share)} of the check-ins,\n"
        f"the busiest 10% {share_words(description.top_10_percent_share)}; "
        f"Gini coefficient {description.gini:.3f}"
    )


def _when_and_where(description: CityDescription) -> str:
    if not description.checkins:
        return "no check-ins"
    zones = [zone.label for zone in description.zones]
    named = ", ".join(zones[:_MOST_ZONES])
    more = f" and {len(zones) - _MOST_ZONES} more zones" if len(zones) > _MOST_ZONES else ""
    first, last = day_words(description.first_day), day_words(description.last_day)
    return f"{first} to {last}, {description.days:,} days\nin {named}{more}"


def _counts(description: CityDescription) -> list[tuple[str, str]]:
    counts = {
        "check-ins": description.checkins,
        "users": description.users,
        "places": description.places,
        "categories": description.categories,
        "train": description.train,
        "validation": description.validation,
        "test targets": description.test_targets,
        "left out": description.left_out,
    }
    rows = [(words, f"{count:,}") for words, count in counts.items()]
    rows.append(("revisits among test targets", share_words(description.revisit_share)))
    rows.append(("new places among test targets", share_words(description.new_share)))
    return rows


def _cells(counts: Quartiles) -> tuple[str, ...]:
    between = (counts.lower_quartile, counts.median, counts.upper_quartile, counts.mean)
    cells = (f"{number:,.1f}".removesuffix(".0") for number in between)
    return (f"{counts.min:,}", *cells, f"{counts.max:,}")


def _show(console: Console, heading: str, lines: Sequence[Text]) -> None:
    console.out.print(Text(heading, style="bold"))
    for line in lines:
        console.out.print(line)
    console.say()


def _hour_plot(hours: Sequence[Bucket]) -> list[Text]:
    """Vertical bars, two characters wide, over a labelled axis; 79 characters wide."""
    top = max(hour.share for hour in hours)
    lines = []
    for level in range(_PLOT_ROWS, 0, -1):
        tick = f"{top * level / _PLOT_ROWS:.1%}" if level in (_PLOT_ROWS, _PLOT_ROWS // 2) else ""
        cells = (_eighths(hour.share / top * _PLOT_ROWS, level - 1) for hour in hours)
        bars = "".join(_RISING[cell] * 2 + " " for cell in cells).rstrip()
        lines.append(Text.assemble(f"{tick:>5} {'┤' if tick else '│'}", (bars, _INK)))
    lines.append(Text(f"{'0%':>5} └{'─' * (3 * len(hours) - 1)}"))
    labels = (hour.label if number % 3 == 0 else "  " for number, hour in enumerate(hours))
    lines.append(Text((" " * 7 + " ".join(labels)).rstrip()))
    return lines


def _bars(buckets: Sequence[Bucket]) -> list[Text]:
    """Horizontal bars with label, share and count; the longest fills the width."""
    top = max((bucket.share for bucket in buckets), default=0.0) or 1.0
    lines = []
    for bucket in buckets:
        long = bucket.share / top * _BAR_WIDTH
        bar = "".join(_GROWING[_eighths(long, cell)] for cell in range(_BAR_WIDTH))
        label = set_cell_size(bucket.label, _LABEL_WIDTH)
        numbers = f" {share_words(bucket.share):>6} {bucket.count:>12,}"
        lines.append(Text.assemble(f"  {label} ", (bar, _INK), numbers))
    return lines


def _eighths(length: float, cell: int) -> int:
    """How many eighths of a cell a bar fills; a bar above zero shows at least one."""
    filled = round(length * 8) - 8 * cell
    return min(8, max(filled, 1 if length > 0 and cell == 0 else 0))


def _until_last(buckets: Sequence[Bucket]) -> list[Bucket]:
    """The buckets up to the last that is not empty."""
    last = max(position for position, bucket in enumerate(buckets) if bucket.count)
    return list(buckets[: last + 1])


def _gap(description: CityDescription) -> str:
    """The median gap in words."""
    hours = description.median_gap_hours
    return duration_words(None if hours is None else 3600 * hours)
