"""A map of the places of a city: where they are and how busy, never who went there or lives there.

Equirectangular, with longitudes shrunk by the cosine of the middle latitude, so that a kilometre
is as long eastward as northward. Beyond 4,000 places neighbours are drawn as one dot.

Shapes: P places, G dots.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.describe import busiest, checkins_per_place
from castpoi.core.quantities import counted
from castpoi.geo.distance import EARTH_RADIUS_KM
from castpoi.reports.svg import Dot, Graticule, Markup, dot_map, nice_step

MOST_DOTS: Final = 4000
MOST_STARS: Final = 100
"""Busiest places that are always drawn one by one and stand out."""

_STAR_SHADE: Final = 5
_NAME_LETTERS: Final = 80
_KM_PER_DEGREE: Final = math.radians(1) * EARTH_RADIUS_KM
_LEAST_SPAN: Final = 0.005  # degrees, about half a kilometre
_MARGIN: Final = 0.05
_ASPECTS: Final = (0.85, 1.8)


@dataclass(frozen=True, kw_only=True)
class PlaceMap:
    """A drawn map and what its legend says."""

    markup: Markup
    stars: int
    """Number of busiest places that stand out."""
    star_share: float
    """Part of all check-ins that they have."""
    beyond: int
    """Places too far away to be inside the frame."""
    private: int
    """Private homes, which are not drawn."""
    is_gridded: bool
    """Whether neighbours share a dot."""


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """The window of a map in degrees, with longitudes counted from `middle_lon`."""

    west: float
    south: float
    wide: float
    tall: float
    middle_lon: float
    squeeze: float
    """Cosine of the middle latitude."""

    @property
    def aspect(self) -> float:
        return self.wide * self.squeeze / self.tall

    @property
    def wide_km(self) -> float:
        return self.wide * self.squeeze * _KM_PER_DEGREE


def place_map(city: City) -> PlaceMap | None:
    """Draw the places of a city; None where it has none."""
    if not city.places.height:
        return None
    count = checkins_per_place(city)
    lat, lon = city.places[record.LAT].to_numpy(), city.places[record.LON].to_numpy()
    frame, x, y = _fit(lat, lon)
    inside = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)
    is_private = city.places[record.CATEGORY].is_in(record.PRIVATE_CATEGORIES).fill_null(False)
    private = is_private.to_numpy()
    by_count = np.argsort(-count, kind="stable")
    by_count = by_count[~private[by_count]]
    stars = by_count[: min(busiest(len(by_count), 0.01), MOST_STARS)]
    others = by_count[len(stars) :]
    others = others[inside[others]]
    is_gridded = len(others) + len(stars) > MOST_DOTS
    most = max(1, int(count.max()))
    dots = (
        _gridded(others, x, y, count, frame) if is_gridded else _single(others, x, y, count, city)
    )
    starred = _single(stars[inside[stars]], x, y, count, city)
    drawn = [_dot(dot, most) for dot in sorted(dots, key=lambda dot: -dot.count)]
    drawn += [_dot(star, most, shade=_STAR_SHADE) for star in starred]
    label = f"Map of {city.places.height:,} places; larger dots have more check-ins"
    return PlaceMap(
        markup=dot_map(drawn, _graticule(frame), label=label, aspect=frame.aspect),
        stars=len(stars),
        star_share=int(count[stars].sum()) / max(1, int(count.sum())),
        beyond=int((~inside & ~private).sum()),
        private=int(private.sum()),
        is_gridded=is_gridded,
    )


@dataclass(frozen=True)
class _Mark:
    x: float
    y: float
    count: int
    words: str


def _dot(mark: _Mark, most: int, shade: int | None = None) -> Dot:
    if shade is None:
        shade = min(4, int(5 * math.log1p(mark.count) / math.log1p(most)))
    radius = 0.28 + 1.3 * math.sqrt(mark.count / most)
    return Dot(x=mark.x, y=mark.y, radius=radius, shade=shade, tooltip=mark.words)


def _single(
    places: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    count: NDArray[np.int64],
    city: City,
) -> list[_Mark]:
    chosen = city.places[places]
    rows = zip(
        x[places].tolist(),
        y[places].tolist(),
        count[places].tolist(),
        chosen[record.NAME].to_list(),
        chosen[record.CATEGORY].to_list(),
        strict=True,
    )
    return [
        _Mark(across, down, visits, f"{_named(name, category)} · {counted(visits, 'check-in')}")
        for across, down, visits, name, category in rows
    ]


def _named(name: str | None, category: str | None) -> str:
    words = name or category or "a place without a name"
    return words if len(words) <= _NAME_LETTERS else words[: _NAME_LETTERS - 1] + "…"


def _gridded(
    places: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    count: NDArray[np.int64],
    frame: _Frame,
) -> list[_Mark]:
    """One mark a cell, in the middle of its places, on the finest grid that is small enough."""
    across, down = x[places], y[places]
    columns = 160
    while True:
        column = (across * columns).astype(np.int64)
        row = (down * columns / frame.aspect).astype(np.int64)
        cells, cell, size = np.unique(
            row * (columns + 1) + column, return_inverse=True, return_counts=True
        )
        if len(cells) <= MOST_DOTS - MOST_STARS:
            break
        columns = columns * 3 // 4
    visits = np.bincount(cell, weights=count[places]).astype(np.int64)
    middle_x = np.bincount(cell, weights=across) / size
    middle_y = np.bincount(cell, weights=down) / size
    rows = zip(middle_x.tolist(), middle_y.tolist(), visits.tolist(), size.tolist(), strict=True)
    return [
        _Mark(x, y, visits, f"{counted(size, 'place')} · {counted(visits, 'check-in')}")
        for x, y, visits, size in rows
    ]


def _fit(
    lat: NDArray[np.float64], lon: NDArray[np.float64]
) -> tuple[_Frame, NDArray[np.float64], NDArray[np.float64]]:
    """A frame around the places, and where in it each of them is, from the upper left. [P]"""
    turned = np.radians(lon)  # the mean direction: a city astride 180 degrees stays whole
    middle_lon = math.degrees(math.atan2(np.sin(turned).mean(), np.cos(turned).mean()))
    east = (lon - middle_lon + 180.0) % 360.0 - 180.0
    west, wide = _window(east)
    south, tall = _window(lat)
    squeeze = max(0.02, math.cos(math.radians(south + tall / 2)))
    least, most = _ASPECTS
    wider = max(wide, tall * least / squeeze)
    taller = max(tall, wide * squeeze / most)
    frame = _Frame(
        west=west - (wider - wide) / 2,
        south=south - (taller - tall) / 2,
        wide=wider,
        tall=taller,
        middle_lon=middle_lon,
        squeeze=squeeze,
    )
    x = (east - frame.west) / frame.wide
    y = 1 - (lat - frame.south) / frame.tall
    return frame, x, y


def _window(degrees: NDArray[np.float64]) -> tuple[float, float]:
    """Where a frame begins and how long it is; a few far strays do not shrink the city."""
    low, high = float(degrees.min()), float(degrees.max())
    core_low, core_high = (float(cut) for cut in np.quantile(degrees, (0.01, 0.99)))
    core = max(core_high - core_low, _LEAST_SPAN)
    if high - low > 2.5 * core:
        low, high = core_low - core * 0.1, core_high + core * 0.1
    span = max(high - low, _LEAST_SPAN)
    middle = (low + high) / 2
    return middle - span * (0.5 + _MARGIN), span * (1 + 2 * _MARGIN)


def _graticule(frame: _Frame) -> Graticule:
    step = nice_step(min(frame.wide, frame.tall), most=4)
    left = frame.west + frame.middle_lon
    meridians = [
        ((degree - left) / frame.wide, _degrees(degree, step, "E", "W"))
        for degree in _multiples(left, left + frame.wide, step)
    ]
    parallels = [
        (1 - (degree - frame.south) / frame.tall, _degrees(degree, step, "N", "S"))
        for degree in _multiples(frame.south, frame.south + frame.tall, step)
        if abs(degree) <= 90
    ]
    # a line too near an edge would have its words cut off or laid over others
    meridians = [(x, words) for x, words in meridians if 0.14 < x < 0.86]
    parallels = [(y, words) for y, words in parallels if 0.1 < y < 0.99]
    length_km = _round_down(frame.wide_km * 0.25)
    words = f"{length_km:g} km" if length_km >= 1 else f"{length_km * 1000:g} m"
    return Graticule(
        meridians=meridians, parallels=parallels, bar=(length_km / frame.wide_km, words)
    )


def _multiples(low: float, high: float, step: float) -> list[float]:
    return [step * turn for turn in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _degrees(degree: float, step: float, positive: str, negative: str) -> str:
    degree = (degree + 180.0) % 360.0 - 180.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    letter = positive if degree >= 0 else negative
    return f"{abs(degree):.{decimals}f}° {letter}"


def _round_down(length: float) -> float:
    """The greatest 1, 2 or 5 times a power of ten that is not above the length."""
    power = 10.0 ** math.floor(math.log10(length))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= length)
