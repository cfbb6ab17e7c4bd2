"""The table of cities: their size, their split, and the paper's counts where it has the city."""

from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.evaluation.result import IS_REVISIT
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.paper_values import PaperCity, paper_city
from castpoi.reports.table import NOTHING, Cell, Group, Table, count, number, percent, word

_COLUMNS = (
    "City",
    "Users",
    "Places",
    "Check-ins",
    "Check-ins of a user",
    "Targets",
    "Revisits %",
    "Fingerprint",
)


def city_table(evidence: Evidence) -> Table:
    """One line a city."""
    lines = []
    for city in evidence.splits:
        lines.append(_line(city))
        paper = paper_city(city.name, city.targets)
        if paper is not None:
            lines.append(_paper_line(paper))
    return Table(
        name="cities",
        title="Cities",
        caption=(
            f"Revisits: targets at a place among the user's {REVISIT_WINDOW} visits before. Equal "
            "fingerprints, equal splits. Places are all candidates of the city; the paper counts "
            "those that occur in its split."
        ),
        columns=_COLUMNS,
        groups=[Group(heading="", rows=lines)],
    )


def _line(city: CityEvidence) -> list[Cell]:
    users, checkins = city.users, city.checkins
    return [
        word(city.name),
        count(users),
        count(city.places),
        count(checkins),
        number(checkins / users, 1),
        count(city.targets),
        percent(city.findings[0].result.ranks[IS_REVISIT].mean(), 1),  # type: ignore[arg-type]
        word(city.fingerprint[:12], note=city.fingerprint),
    ]


def _paper_line(paper: PaperCity) -> list[Cell]:
    return [
        word(f"{paper.name}, in the paper"),
        count(paper.users),
        count(paper.places),
        count(paper.checkins),
        number(paper.checkins / paper.users, 1),
        count(paper.targets),
        NOTHING,
        NOTHING,
    ]
