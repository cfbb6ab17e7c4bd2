"""The page of a city: its numbers, rhythm, distances and places in one HTML file.

The file asks the network for nothing and names no user; `page.css` gives it its look. Each
figure is headed by what it shows, and below that by how it was counted.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

from castpoi import __version__
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.describe import NOT_GIVEN, Bucket, CityDescription
from castpoi.core.quantities import (
    counted,
    day_words,
    distance_words,
    duration_words,
    share_words,
)  # fmt: skip
from castpoi.reports.place_map import place_map
from castpoi.reports.svg import Markup, columns_chart, curve_chart, element, joined, rows_chart

_WEEKDAYS: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
# Neither script nor any address: the browser itself keeps the page's word.
_HEAD: Final = (
    '<meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)


def city_page(city: City, description: CityDescription, *, name: str = "city") -> str:
    """One self-contained HTML document about a city that is called `name`."""
    css = files("castpoi.reports").joinpath("page.css").read_text(encoding="utf-8")
    title = f"{name} · castpoi"
    head = element("head", Markup(_HEAD), element("title", title), element("style", Markup(css)))
    sections = [_header(description, name), _cards(description)]
    if description.checkins:
        sections += [_rhythm(description), _moves(description), _where(city, description)]
        sections += [_who(description)]
    sections.append(_origin(city, description))
    body = element("body", element("main", *sections), _footer())
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _header(description: CityDescription, name: str) -> Markup:
    return element(
        "header",
        element("p", "A city in numbers", class_="eyebrow"),
        element("h1", name),
        element("p", *_lede(description), class_="lede"),
    )


def _lede(description: CityDescription) -> list[str]:
    if not description.checkins:
        return ["This city has no check-ins."]
    words: list[str] = [
        element("strong", counted(description.checkins, "check-in")),
        f" of {counted(description.users, 'user')} at {counted(description.places, 'place')}, "
        f"from {day_words(description.first_day)} to {day_words(description.last_day)}.",
    ]
    if description.revisit_share is not None:
        words += [
            " Of the visits to be foretold, ",
            element("strong", f"{description.revisit_share:.0%} go back"),
            " to a place the user knows.",
        ]
    return words


def _cards(description: CityDescription) -> Markup:
    cards = {
        "check-ins": f"{description.checkins:,}",
        "users": f"{description.users:,}",
        "places": f"{description.places:,}",
        "categories": f"{description.categories:,}",
        "days": f"{description.days:,}",
        "test targets that are revisits": share_words(description.revisit_share),
        "median distance to the next visit": distance_words(description.median_distance_km),
        "median gap to the next visit": _gap(description),
    }
    return element(
        "dl",
        *(
            element("div", element("dt", term), element("dd", number), class_="card")
            for term, number in cards.items()
        ),
        class_="cards",
    )


def _rhythm(description: CityDescription) -> Markup:
    hours, weekdays = description.hours, description.weekdays
    peak, trough = _greatest(hours), _least(hours)
    day = _WEEKDAYS[weekdays.index(_greatest(weekdays))]
    return _section(
        "Rhythm",
        _pair(
            _figure(
                f"The day peaks at {peak.label}:00 and is quietest at {trough.label}:00",
                "Share of check-ins in each local hour.",
                columns_chart(hours, label="Check-ins by local hour", every=3),
            ),
            _figure(
                f"{day} is the busiest day of the week",
                "Share of check-ins on each local weekday.",
                columns_chart(weekdays, label="Check-ins by local weekday"),
            ),
        ),
    )


def _moves(description: CityDescription) -> Markup:
    if description.median_distance_km is None:
        note = element("p", "No user checks in twice, so there is no move to measure.")
        return _section("From one visit to the next", element("div", note, class_="sheet"))
    return _section(
        "From one visit to the next",
        _pair(
            _figure(
                f"Half of all moves are within {distance_words(description.median_distance_km)}",
                "Distance between consecutive check-ins of a user; "
                f"{share_words(description.same_place_share)} stay at the same place.",
                rows_chart(_trimmed(description.distances), label="Distance between visits"),
            ),
            _figure(
                f"Half of all gaps are within {_gap(description)}",
                "Time between consecutive check-ins of a user.",
                rows_chart(_trimmed(description.gaps), label="Gap between visits"),
            ),
        ),
    )


def _where(city: City, description: CityDescription) -> Markup:
    beside = [_split(description)]
    if description.categories:
        beside.insert(0, _categories(description.top_categories))
    return _section("Places", _pair(_map_figure(city), joined(beside), extra="wide-left"))


def _categories(categories: Sequence[Bucket]) -> Markup:
    leader = next(category for category in categories if category.label != NOT_GIVEN)
    shown = f"The {len(categories)} most visited" if len(categories) > 1 else "The only category"
    return _figure(
        f"{leader.label} leads",
        f"{shown}, by share of check-ins.",
        rows_chart(categories, label="Check-ins by category"),
    )


def _map_figure(city: City) -> Markup:
    drawn = place_map(city)
    if drawn is None:
        return _figure("No places", "This city has no places to draw.")
    ring = Markup('<svg aria-hidden="true"><circle class="dot shade-5" cx="5" cy="5" r="5"/></svg>')
    notes = ["A larger dot has more check-ins."]
    if drawn.is_gridded:
        notes.append("Neighbouring places share a dot.")
    if drawn.beyond:
        lies = "lies" if drawn.beyond == 1 else "lie"
        notes.append(f"{counted(drawn.beyond, 'place')} {lies} beyond the frame.")
    if drawn.private:
        notes.append(f"{counted(drawn.private, 'private home')} not drawn.")
    stars = counted(drawn.stars, "busiest place") if drawn.stars > 1 else "the busiest place"
    legend = element("span", ring, f"{stars} ({drawn.star_share:.1%} of check-ins)")
    return _figure(
        f"Where the {counted(city.places.height, 'place')} are"
        if city.places.height > 1
        else "Where the place is",
        " ".join(notes),
        drawn.markup,
        element("p", legend, class_="legend"),
    )


def _who(description: CityDescription) -> Markup:
    spread = description.checkins_per_user
    assert spread is not None  # a check-in has a user
    return _section(
        "Many and few",
        _pair(
            _figure(
                f"Half of the users have {_plain(spread.median)} check-ins or fewer",
                f"Share of users by number of check-ins: {spread.min:,} to {spread.max:,}, "
                f"mean {spread.mean:,.1f}, "
                f"middle half {_plain(spread.lower_quartile)} to {_plain(spread.upper_quartile)}.",
                rows_chart(_trimmed(description.users_by_checkins), label="Check-ins per user"),
            ),
            _popularity(description),
        ),
    )


def _popularity(description: CityDescription) -> Markup:
    return _figure(
        f"The busiest 1% of places have {description.top_1_percent_share:.0%} of the check-ins",
        f"The busiest 10% have {description.top_10_percent_share:.0%}; Gini coefficient "
        f"{description.gini:.2f}. Both axes are logarithmic.",
        curve_chart(
            description.popularity,
            label="Check-ins of places by rank",
            across="rank of the place",
            upward="check-ins",
        ),
    )


def _split(description: CityDescription) -> Markup:
    named = ("train", "validation", "test", "left out")
    counts = (description.train, description.validation, description.test, description.left_out)
    buckets = [
        Bucket(label=part, count=count, share=count / description.checkins)
        for part, count in zip(named, counts, strict=True)
        if count
    ]
    note = "This split has no test part."
    if description.revisit_share is not None:
        note = (
            f"{share_words(description.revisit_share)} go back to a place among the user's "
            f"{REVISIT_WINDOW} visits before; {share_words(description.new_share)} are new."
        )
    heading = f"{counted(description.test_targets, 'visit')} to foretell"
    return _figure(heading, note, rows_chart(buckets, label="Check-ins by part of the split"))


_MOST_ZONES: Final = 6
_STEP_COLUMNS: Final = {
    "Before": "checkins_before",
    "After": "checkins_after",
    "Users": "users_after",
    "Places": "places_after",
}


def _origin(city: City, description: CityDescription) -> Markup:
    steps = city.manifest.get("steps")
    known = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    table = element("p", "The manifest names no steps.")
    if known:
        note = "Check-ins before and after each step, and the users and places that are left."
        table = joined([element("p", note), _steps_table(known)])
    print_ = element("p", element("code", city.fingerprint))
    why = element("p", "SHA-256 of the split's content: equal fingerprints, equal cities.")
    zones = element("p", _zone_words(description.zones))
    return _section(
        "How it was prepared",
        element(
            "div",
            element("div", element("h3", "Steps"), table, class_="sheet"),
            _pair(
                element("div", element("h3", "Time zones"), zones, class_="sheet"),
                element("div", element("h3", "Fingerprint"), print_, why, class_="sheet"),
            ),
            class_="stack",
        ),
    )


def _zone_words(zones: Sequence[Bucket]) -> str:
    """The zones with most check-ins, and how many more there are."""
    if not zones:
        return "No zone, for there is no place."
    named = ", ".join(f"{zone.label} ({zone.share:.1%})" for zone in zones[:_MOST_ZONES])
    more = len(zones) - _MOST_ZONES
    return f"{named} and {more:,} more." if more > 0 else f"{named}."


def _steps_table(steps: Sequence[dict[str, Any]]) -> Markup:
    heads = [element("th", words, scope="col") for words in ("Step", *_STEP_COLUMNS)]
    rows = [
        element(
            "tr",
            element("td", str(step.get("step", "–"))),
            *(element("td", _number(step.get(key))) for key in _STEP_COLUMNS.values()),
        )
        for step in steps
    ]
    return element("table", element("thead", element("tr", *heads)), element("tbody", joined(rows)))


def _footer() -> Markup:
    return element(
        "footer",
        f"Made by castpoi {__version__}. This page shows places and sums: "
        "no user is named and no trajectory is drawn.",
    )


def _section(heading: str, *parts: str) -> Markup:
    return element("section", element("h2", heading), *parts)


def _pair(left: str, right: str, extra: str = "") -> Markup:
    columns = (element("div", side, class_="stack") for side in (left, right))
    return element("div", *columns, class_=f"pair {extra}".strip())


def _figure(finding: str, how: str, *parts: str) -> Markup:
    caption = element("figcaption", element("h3", finding), element("p", how))
    return element("figure", caption, *parts)


def _trimmed(buckets: Sequence[Bucket]) -> list[Bucket]:
    """The buckets from the first to the last that hold something."""
    filled = [position for position, bucket in enumerate(buckets) if bucket.count]
    return list(buckets[filled[0] : filled[-1] + 1]) if filled else []


def _greatest(buckets: Sequence[Bucket]) -> Bucket:
    return max(buckets, key=lambda bucket: bucket.count)


def _least(buckets: Sequence[Bucket]) -> Bucket:
    return min(buckets, key=lambda bucket: bucket.count)


def _plain(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "–"


def _gap(description: CityDescription) -> str:
    """The median gap in words."""
    hours = description.median_gap_hours
    return duration_words(None if hours is None else 3600 * hours)
