"""The page of a city: its numbers, charts, busiest places and preparation in one HTML file.

The page loads nothing from the network and names no user. Its map shows where places are and how
busy, never who visited them; private homes are left out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.describe import Bucket, CityDescription, busiest, checkins_per_place
from castpoi.core import quantities
from castpoi.core.quantities import counted
from castpoi.geo.distance import EARTH_RADIUS_KM
from castpoi.geo.land import Window, land_in, unwrapped
from castpoi.reports.page import render, text_of
from castpoi.reports.style import (
    BLUE,
    INK,
    LAND,
    ORANGE,
    SEA,
    Chart,
    from_top,
    grid_along,
    look,
    new_figure,
)

MAX_PLACES: Final = 20
MAX_DOTS: Final = 4000
"""Up to this many places have one dot each on the map; of more places, neighbours share one."""
_MAX_ZONES: Final = 6
_MAX_BUSIEST: Final = 100
_CELLS: Final = 64  # across the map, where neighbours share a dot
_LABEL_CHARACTERS: Final = 22
_KM_PER_DEGREE: Final = math.radians(1) * EARTH_RADIUS_KM
_MIN_ASPECT: Final = 0.6  # height of the map by its width
_MAX_ASPECT: Final = 1.2
_MIN_SPAN: Final = 0.005  # degrees, about half a kilometre
_MARGIN: Final = 0.05
_WEEKDAYS: Final = {
    day[:3]: day
    for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
}


@dataclass(frozen=True, kw_only=True)
class BusyPlace:
    """A line of the list of the busiest places."""

    name: str
    category: str
    checkins: int


def city_page(city: City, description: CityDescription, *, name: str = "city") -> str:
    """One self-contained HTML document about a city that is called `name`."""
    return render(
        "city.html.j2",
        css=text_of("page.css"),
        name=name,
        city=description,
        charts=_charts(city, description) if description.checkins else {},
        busiest=busiest_places(city),
        zones=_zone_words(description),
        steps=city.manifest.get("steps"),
        fingerprint=city.fingerprint,
        weekdays=_WEEKDAYS,
        revisit_window=REVISIT_WINDOW,
        words=quantities,
        version=__version__,
    )


def busiest_places(city: City) -> list[BusyPlace]:
    """The places with most check-ins; private homes are left out."""
    count = checkins_per_place(city)
    public = np.flatnonzero(~city.is_private)
    top = public[np.argsort(-count[public], kind="stable")][:MAX_PLACES]
    chosen = city.places[top].select(record.NAME, record.CATEGORY, record.PLACE_ID).rows()
    return [
        BusyPlace(
            name=name or category or "(no name)",
            category=(category or "") if name else f"no. …{identity[-6:]}",
            checkins=checkins,
        )
        for (name, category, identity), checkins in zip(chosen, count[top].tolist(), strict=True)
    ]


def _zone_words(description: CityDescription) -> str:
    """The time zones with most check-ins, and how many more there are."""
    named = [f"{zone.label} ({zone.share:.1%})" for zone in description.zones[:_MAX_ZONES]]
    more = len(description.zones) - _MAX_ZONES
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")


def _charts(city: City, description: CityDescription) -> dict[str, Chart]:
    """The charts of a city that has check-ins, by name; their texts are in the template."""
    splits = {"train": description.train, "validation": description.validation}
    splits |= {"test": description.test, "left out": description.left_out}
    whole = description.checkins
    rows = {
        "users": _trimmed(description.users_by_checkins),
        "split": [Bucket(label=s, count=n, share=n / whole) for s, n in splits.items() if n],
    }
    if description.median_distance_km is not None:
        rows["distances"] = _trimmed(description.distances)
        rows["gaps"] = _trimmed(description.gaps)
    if description.categories:
        rows["categories"] = description.top_categories
    charts = [
        _columns("hours", description.hours, every=3),
        _columns("weekdays", description.weekdays),
        *(_rows(name, buckets) for name, buckets in rows.items()),
        place_map(city),
        _popularity(description),
    ]
    return {chart.name: chart for chart in charts}


def _popularity(description: CityDescription) -> Chart:
    """Check-ins of places by rank, on two logarithmic axes."""
    shown = [(rank, count) for rank, count in description.popularity if count]
    ranks, counts = [rank for rank, _ in shown], [count for _, count in shown]
    with look():
        figure, (axes,) = new_figure(2.2)
        axes.loglog(ranks, counts, color=BLUE, linewidth=1.6)
        axes.fill_between(ranks, counts, 1, color=BLUE, alpha=0.1, linewidth=0)
        axes.set_ylim(bottom=1)
        axes.set_xlim(1, max(10, *ranks))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel("rank of the place")
        axes.set_ylabel("check-ins")
    return Chart(name="popularity", figure=figure)


def place_map(city: City) -> Chart:
    """Where the places are; a larger dot has more check-ins, the busiest ones are orange.

    Above a coarse outline of land and sea, equirectangular and to scale. Private homes and a few
    places far outside are not drawn.
    """
    count, lat = checkins_per_place(city), city.lat
    east, middle = unwrapped(city.lon)
    (west, right), (south, north) = _window(east), _window(lat)
    is_far = (east < west) | (east > right) | (lat < south) | (lat > north)
    is_private = city.is_private
    drawn = np.flatnonzero(~is_far & ~is_private)
    drawn = drawn[np.argsort(-count[drawn], kind="stable")]
    top = drawn[: min(busiest(len(drawn), 0.01), _MAX_BUSIEST)]
    is_shared = len(drawn) > MAX_DOTS
    squeeze = max(0.02, math.cos(math.radians((south + north) / 2)))
    # a city along a line has a map around it that is neither a stripe nor a column
    west, right = _widened(west, right, (north - south) / (_MAX_ASPECT * squeeze))
    south, north = _widened(south, north, (right - west) * squeeze * _MIN_ASPECT)
    aspect = (north - south) / ((right - west) * squeeze)
    dots = (east[drawn], lat[drawn], count[drawn])
    x, y, visits = _merged(*dots, cell=(right - west) / _CELLS) if is_shared else dots
    with look():
        figure, (axes,) = new_figure(2.9 * aspect + 0.2)
        most = max(1, int(count.max(initial=0)))
        axes.set_facecolor(SEA)
        for ring in land_in(Window(south, west + middle, north, right + middle)):
            axes.fill(*(ring - (middle, 0.0)).T, color=LAND, linewidth=0)
        axes.grid(visible=False)
        _draw_dots(axes, x, y, visits / most, color=BLUE, alpha=0.5)
        _draw_dots(axes, east[top], lat[top], count[top] / most, color=ORANGE)
        axes.set(xlim=(west, right), ylim=(south, north), aspect=1 / squeeze)
        digits = max(2, 1 - math.floor(math.log10(min(north - south, right - west))))
        axes.xaxis.set_major_formatter(FuncFormatter(_degrees("E", "W", middle, digits)))
        axes.yaxis.set_major_formatter(FuncFormatter(_degrees("N", "S", 0.0, digits)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(3))
        _scale_bar(axes, (right - west) * squeeze * _KM_PER_DEGREE)
    share = int(count[top].sum()) / max(1, int(count.sum()))
    notes = [f"A larger dot has more check-ins. Orange: the busiest, {share:.1%} of all check-ins."]
    notes += ["Neighbouring places share a dot."] if is_shared else []
    for number, why in ((is_far & ~is_private, "far outside"), (is_private, "private homes")):
        if number.sum():
            notes.append(f"Not drawn: {counted(int(number.sum()), 'place')} ({why}).")
    return Chart(name="map", caption=" ".join(notes), figure=figure)


def _columns(name: str, buckets: Sequence[Bucket], *, every: int = 1) -> Chart:
    """Vertical bars of shares."""
    at = range(len(buckets))
    with look():
        figure, (axes,) = new_figure(1.7)
        axes.bar(at, [100 * bucket.share for bucket in buckets], width=0.78, color=BLUE)
        axes.set_xticks(at[::every], [bucket.label for bucket in buckets[::every]])
        axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.margins(x=0.01)
        grid_along("y", [axes])
    return Chart(name=name, figure=figure)


def _rows(name: str, buckets: Sequence[Bucket]) -> Chart:
    """Horizontal bars of shares, each with its share and count."""
    at = from_top(buckets)
    with look():
        figure, (axes,) = new_figure(max(1.7, 0.5 + 0.19 * len(buckets)))
        shares = [100 * bucket.share for bucket in buckets]
        bars = axes.barh(at, shares, height=min(0.66, 0.11 * len(buckets)), color=BLUE)
        numbers = [f"{bucket.share:.1%}  ({bucket.count:,})" for bucket in buckets]
        axes.bar_label(bars, numbers, padding=3, fontsize=6.5, color=INK)
        axes.set_yticks(at, [_shortened(bucket.label) for bucket in buckets])
        axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlim(0, 128 * max((bucket.share for bucket in buckets), default=1.0))
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 100])  # room for a number
        axes.tick_params(axis="y", length=0)
        grid_along("x", [axes])
    return Chart(name=name, figure=figure)


def _trimmed(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """The buckets from the first to the last that is not empty."""
    filled = [position for position, bucket in enumerate(buckets) if bucket.count]
    return buckets[filled[0] : filled[-1] + 1] if filled else []


def _shortened(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS else label[: _LABEL_CHARACTERS - 1] + "…"


def _window(degrees: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the map along one axis; a few places far outside do not shrink the city."""
    low, high = float(degrees.min()), float(degrees.max())
    core_low, core_high = (float(cut) for cut in np.quantile(degrees, (0.01, 0.99)))
    core = max(core_high - core_low, _MIN_SPAN)
    if high - low > 2.5 * core:
        low, high = core_low - core * 0.1, core_high + core * 0.1
    half = max(high - low, _MIN_SPAN) * (0.5 + _MARGIN)
    return (low + high) / 2 - half, (low + high) / 2 + half


def _widened(low: float, high: float, least: float) -> tuple[float, float]:
    """The same interval, with at least a length."""
    more = max(0.0, least - (high - low)) / 2
    return low - more, high + more


def _merged(
    x: NDArray[np.float64], y: NDArray[np.float64], count: NDArray[np.int64], *, cell: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """One dot for each cell of a grid, in the middle of its places. [cells] each"""
    cells = np.stack([np.floor(x / cell), np.floor(y / cell)])  # [2, P]
    _, owner, size = np.unique(cells, axis=1, return_inverse=True, return_counts=True)
    visits = np.bincount(owner, weights=count).astype(np.int64)
    return np.bincount(owner, weights=x) / size, np.bincount(owner, weights=y) / size, visits


def _draw_dots(
    axes: Axes,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    share: NDArray[np.float64],
    **look: Any,
) -> None:
    """Dots of few different sizes, which an SVG file stores once; large ones first."""
    area = 1.5 + np.round(20 * share) * 2  # square points
    for size in np.unique(area)[::-1]:
        axes.scatter(x[area == size], y[area == size], s=size, linewidth=0, **look)


def _degrees(
    positive: str, negative: str, middle: float, digits: int
) -> Callable[[float, int | None], str]:
    def words(value: float, _: int | None) -> str:
        degree = (value + middle + 180.0) % 360.0 - 180.0
        return f"{abs(degree):.{digits}f}° {positive if degree >= 0 else negative}"

    return words


def _scale_bar(axes: Axes, wide_km: float) -> None:
    """A bar of 1, 2 or 5 times a power of ten km, at most a quarter of the map."""
    power = 10.0 ** math.floor(math.log10(wide_km / 4))
    length = max(times * power for times in (1, 2, 5) if times * power <= wide_km / 4)
    across = axes.transAxes
    axes.plot([0.97 - length / wide_km, 0.97], [0.04, 0.04], color=INK, lw=1.6, transform=across)
    words = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    axes.text(0.97, 0.06, words, ha="right", va="bottom", fontsize=6.5, transform=across)
