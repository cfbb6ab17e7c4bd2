"""Charts of a city: its hours, weekdays, moves, categories, popularity, and a map of its places.

The map shows where places are and how busy, never who visited them; private homes are left out.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.describe import Bucket, CityDescription, busiest, checkins_per_place
from castpoi.core.quantities import counted, distance_words, duration_words, share_words
from castpoi.geo.distance import EARTH_RADIUS_KM
from castpoi.reports.style import BLUE, INK, ORANGE, Chart, grid_along, look, new_figure

MOST_DOTS: Final = 4000
"""Places of a map with a dot each; of more places, neighbours share one."""
_MOST_BUSIEST: Final = 100
_CELLS: Final = 64  # across the map, where neighbours share a dot
_LABEL_CHARACTERS: Final = 22
_KM_PER_DEGREE: Final = math.radians(1) * EARTH_RADIUS_KM
_LEAST_SPAN: Final = 0.005  # degrees, about half a kilometre
_MARGIN: Final = 0.05
_WEEKDAYS: Final = {
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Fri": "Friday",
    "Sat": "Saturday",
    "Sun": "Sunday",
}


def hours(description: CityDescription) -> Chart:
    """Share of check-ins in each local hour."""
    peak = max(description.hours, key=_count)
    trough = min(description.hours, key=_count)
    return _columns(
        "hours",
        f"Busiest from {peak.label}:00, quietest from {trough.label}:00",
        "Share of check-ins in each local hour.",
        description.hours,
        every=3,
    )


def weekdays(description: CityDescription) -> Chart:
    """Share of check-ins on each local weekday."""
    day = _WEEKDAYS[max(description.weekdays, key=_count).label]
    caption = "Share of check-ins on each local weekday."
    headline = f"{day} is the busiest day of the week"
    return _columns("weekdays", headline, caption, description.weekdays)


def distances(description: CityDescription) -> Chart:
    """Distances between consecutive check-ins."""
    return _rows(
        "distances",
        f"Half of all moves are within {distance_words(description.median_distance_km)}",
        "Distance between consecutive check-ins of a user; "
        f"{share_words(description.same_place_share)} stay at the same place.",
        _trimmed(description.distances),
    )


def gaps(description: CityDescription) -> Chart:
    """Time between consecutive check-ins."""
    median = duration_words(3600 * (description.median_gap_hours or 0.0))
    headline = f"Half of all gaps are within {median}"
    caption = "Time between consecutive check-ins of a user."
    return _rows("gaps", headline, caption, _trimmed(description.gaps))


def categories(description: CityDescription) -> Chart:
    """The most visited categories."""
    top = description.top_categories
    caption = f"The {len(top)} most visited categories, by share of check-ins."
    headline = f"{top[0].label} is the most visited category"
    return _rows("categories", headline, caption, top)


def users(description: CityDescription) -> Chart:
    """Users by their number of check-ins."""
    spread = description.checkins_per_user
    assert spread is not None  # a check-in has a user
    return _rows(
        "users",
        f"Half of the users have {spread.median:g} check-ins or fewer",
        f"Share of users by number of check-ins: {spread.min:,} to {spread.max:,}, mean "
        f"{spread.mean:,.1f}, middle half {spread.lower_quartile:g} to {spread.upper_quartile:g}.",
        _trimmed(description.users_by_checkins),
    )


def split(description: CityDescription) -> Chart:
    """Check-ins by split."""
    counts = {
        "train": description.train,
        "validation": description.validation,
        "test": description.test,
        "left out": description.left_out,
    }
    whole = max(1, description.checkins)
    buckets = [
        Bucket(label=name, count=count, share=count / whole)
        for name, count in counts.items()
        if count
    ]
    caption = "The city has no test split."
    if description.revisit_share is not None:
        caption = (
            f"{share_words(description.revisit_share)} of them return to one of the user's "
            f"{REVISIT_WINDOW} visits before; {share_words(description.new_share)} are new places."
        )
    headline = f"{counted(description.test_targets, 'test visit')} to predict"
    return _rows("split", headline, caption, buckets)


def popularity(description: CityDescription) -> Chart:
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
    return Chart(
        name="popularity",
        headline=f"The busiest 1% of places have {description.top_1_percent_share:.0%} of the "
        "check-ins",
        caption=f"The busiest 10% have {description.top_10_percent_share:.0%}; Gini coefficient "
        f"{description.gini:.2f}. Both axes are logarithmic.",
        figure=figure,
    )


def place_map(city: City) -> Chart:
    """Where the places are; a larger dot has more check-ins, the busiest ones are orange.

    Equirectangular and to scale. Private homes and a few places far outside are not drawn.
    """
    count = checkins_per_place(city)
    lat, lon = city.places[record.LAT].to_numpy(), city.places[record.LON].to_numpy()
    east, middle = _unwrapped(lon)
    (west, right), (south, north) = _window(east), _window(lat)
    is_far = (east < west) | (east > right) | (lat < south) | (lat > north)
    is_private = is_private_home(city)
    drawn = np.flatnonzero(~is_far & ~is_private)
    drawn = drawn[np.argsort(-count[drawn], kind="stable")]
    top = drawn[: min(busiest(len(drawn), 0.01), _MOST_BUSIEST)]
    is_shared = len(drawn) > MOST_DOTS
    squeeze = max(0.02, math.cos(math.radians((south + north) / 2)))
    aspect = min(1.2, max(0.6, (north - south) / ((right - west) * squeeze)))
    dots = (east[drawn], lat[drawn], count[drawn])
    x, y, visits = _merged(*dots, cell=(right - west) / _CELLS) if is_shared else dots
    with look():
        figure, (axes,) = new_figure(2.9 * aspect + 0.2)
        most = max(1, int(count.max(initial=0)))
        _draw_dots(axes, x, y, visits / most, color=BLUE, alpha=0.5)
        _draw_dots(axes, east[top], lat[top], count[top] / most, color=ORANGE)
        axes.set(xlim=(west, right), ylim=(south, north), aspect=1 / squeeze)
        axes.xaxis.set_major_formatter(FuncFormatter(_degrees("E", "W", middle)))
        axes.yaxis.set_major_formatter(FuncFormatter(_degrees("N", "S", 0.0)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(3))
        _scale_bar(axes, (right - west) * squeeze * _KM_PER_DEGREE)
    share = int(count[top].sum()) / max(1, int(count.sum()))
    notes = [f"A larger dot has more check-ins. Orange: the busiest, {share:.1%} of all check-ins."]
    if is_shared:
        notes.append("Neighbouring places share a dot.")
    for number, why in ((is_far & ~is_private, "far outside"), (is_private, "private homes")):
        if number.sum():
            notes.append(f"Not drawn: {counted(int(number.sum()), 'place')} ({why}).")
    headline = f"Map of {counted(city.places.height, 'place')}"
    return Chart(name="map", headline=headline, caption=" ".join(notes), figure=figure)


def is_private_home(city: City) -> NDArray[np.bool_]:
    """Which places are private homes. [P]"""
    private = city.places[record.CATEGORY].is_in(record.PRIVATE_CATEGORIES)
    return private.fill_null(False).to_numpy()


def _columns(
    name: str, headline: str, caption: str, buckets: Sequence[Bucket], *, every: int = 1
) -> Chart:
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
    return Chart(name=name, headline=headline, caption=caption, figure=figure)


def _rows(name: str, headline: str, caption: str, buckets: Sequence[Bucket]) -> Chart:
    """Horizontal bars of shares, each with its share and count."""
    at = range(len(buckets))[::-1]
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
        axes.tick_params(axis="y", length=0)
        grid_along("x", [axes])
    return Chart(name=name, headline=headline, caption=caption, figure=figure)


def _count(bucket: Bucket) -> int:
    return bucket.count


def _trimmed(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """The buckets from the first to the last that is not empty."""
    filled = [position for position, bucket in enumerate(buckets) if bucket.count]
    return buckets[filled[0] : filled[-1] + 1] if filled else []


def _shortened(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS else label[: _LABEL_CHARACTERS - 1] + "…"


def _unwrapped(lon: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Degrees east of the middle, and the middle: a city across 180 degrees stays whole. [P]"""
    turned = np.radians(lon)
    middle = math.degrees(math.atan2(np.sin(turned).mean(), np.cos(turned).mean()))
    return (lon - middle + 180.0) % 360.0 - 180.0, middle


def _window(degrees: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the map along one axis; a few places far outside do not shrink the city."""
    low, high = float(degrees.min()), float(degrees.max())
    core_low, core_high = (float(cut) for cut in np.quantile(degrees, (0.01, 0.99)))
    core = max(core_high - core_low, _LEAST_SPAN)
    if high - low > 2.5 * core:
        low, high = core_low - core * 0.1, core_high + core * 0.1
    half = max(high - low, _LEAST_SPAN) * (0.5 + _MARGIN)
    return (low + high) / 2 - half, (low + high) / 2 + half


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


def _degrees(positive: str, negative: str, middle: float) -> Callable[[float, int | None], str]:
    def words(value: float, _: int | None) -> str:
        degree = (value + middle + 180.0) % 360.0 - 180.0
        return f"{abs(degree):.2f}° {positive if degree >= 0 else negative}"

    return words


def _scale_bar(axes: Axes, wide_km: float) -> None:
    """A bar of 1, 2 or 5 times a power of ten km, at most a quarter of the map."""
    power = 10.0 ** math.floor(math.log10(wide_km / 4))
    length = max(times * power for times in (1, 2, 5) if times * power <= wide_km / 4)
    across = axes.transAxes
    axes.plot([0.97 - length / wide_km, 0.97], [0.04, 0.04], color=INK, lw=1.6, transform=across)
    words = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    axes.text(0.97, 0.06, words, ha="right", va="bottom", fontsize=6.5, transform=across)
