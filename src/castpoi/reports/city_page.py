"""The page of a city: its numbers, charts, busiest places and preparation in one HTML file.

The page loads nothing from the network and names no user.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.describe import CityDescription, checkins_per_place
from castpoi.core import quantities
from castpoi.reports import city_figures
from castpoi.reports.page import render, text_of
from castpoi.reports.style import Chart

MOST_PLACES: Final = 20
_MOST_ZONES: Final = 6


@dataclass(frozen=True, kw_only=True)
class BusyPlace:
    """A line of the list of the busiest places."""

    name: str
    category: str
    checkins: int


def city_page(city: City, description: CityDescription, *, name: str = "city") -> str:
    """One self-contained HTML document about a city that is called `name`."""
    charts = draw_city(city, description) if description.checkins else {}
    return render(
        "city.html.j2",
        css=text_of("page.css"),
        name=name,
        city=description,
        charts=charts,
        busiest=busiest_places(city),
        zones=_zone_words(description),
        steps=_steps(city.manifest.get("steps")),
        fingerprint=city.fingerprint,
        revisit_window=REVISIT_WINDOW,
        words=quantities,
        version=__version__,
    )


def draw_city(city: City, description: CityDescription) -> dict[str, Chart]:
    """The charts of a city that has check-ins, by name."""
    charts = [city_figures.hours(description), city_figures.weekdays(description)]
    if description.median_distance_km is not None:
        charts += [city_figures.distances(description), city_figures.gaps(description)]
    if description.categories:
        charts.append(city_figures.categories(description))
    charts += [
        city_figures.place_map(city),
        city_figures.popularity(description),
        city_figures.users(description),
        city_figures.split(description),
    ]
    return {chart.name: chart for chart in charts}


def busiest_places(city: City) -> list[BusyPlace]:
    """The places with most check-ins; private homes are left out."""
    count = checkins_per_place(city)
    public = np.flatnonzero(~city_figures.is_private_home(city))
    top = public[np.argsort(-count[public], kind="stable")][:MOST_PLACES]
    chosen = city.places[top].select(record.NAME, record.CATEGORY).rows()
    return [
        BusyPlace(name=name or "(no name)", category=category or "", checkins=checkins)
        for (name, category), checkins in zip(chosen, count[top].tolist(), strict=True)
    ]


def _zone_words(description: CityDescription) -> str:
    """The time zones with most check-ins, and how many more there are."""
    named = [f"{zone.label} ({zone.share:.1%})" for zone in description.zones[:_MOST_ZONES]]
    more = len(description.zones) - _MOST_ZONES
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")


def _steps(steps: object) -> list[dict[str, Any]]:
    """The steps of a manifest, which may have been edited by hand."""
    found = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return [
        {
            "name": str(step.get("step", "–")),
            "removed": _removed(step.get("checkins_before"), step.get("checkins_after")),
            **{key: _number(step.get(f"{key}_after")) for key in ("checkins", "users", "places")},
        }
        for step in found
    ]


def _removed(before: object, after: object) -> str:
    whole = isinstance(before, int) and isinstance(after, int)
    return f"{before - after:,}" if whole else "–"  # type: ignore[operator]


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "–"
