"""Model cards: the description, training data and metrics of a method."""

import re
from statistics import fmean

from castpoi.evaluation.metrics import METRICS
from castpoi.methods.outline import ORACLE, Row
from castpoi.methods.registry import METHODS
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.outlines import HEADLINE, is_not_paper_preset
from castpoi.reports.page import template
from castpoi.reports.table import Cell, Table, count, markdown, spread_cell


def model_card(evidence: Evidence, row: Row) -> str:
    """The card of a row in Markdown, for all cities where it has results."""
    cities = [city for city in evidence.cities if city.has(row)]
    card = template("card.md.j2", autoescape=False).render(
        row=row,
        method=METHODS.find(row.method),
        is_not_paper_preset=is_not_paper_preset(row),
        is_oracle=row.role == ORACLE,
        headline=HEADLINE,
        notes=notes,
        cities=[(city, markdown(_table(city, row)), _error(city, row)) for city in cities],
    )
    return card.rstrip("\n") + "\n"


def card_file(row: Row) -> str:
    """Name of the file of a card."""
    return re.sub(r"[^\w.=-]+", "-", row.name) + ".md"


def _table(city: CityEvidence, row: Row) -> Table:
    """Metrics over all targets, over revisits and over new places."""
    contender = city.contenders[row.name]
    strata = contender.results[0].strata
    numbers = {"all": city.targets, **{name: int(own["n"] or 0) for name, own in strata.items()}}

    def cell(side: str, metric: str) -> Cell:
        return spread_cell(contender.spread(metric, None if side == "all" else side))

    lines = [
        {"Metric": Cell(metric), **{side: cell(side, metric) for side in numbers}}
        for metric in METRICS
    ]
    lines.append({"Metric": Cell("targets"), **{side: count(n) for side, n in numbers.items()}})
    seeds = ", ".join(str(each.seed) for each in city.of(row.name))
    over = f"mean over seeds {seeds}" if "," in seeds else f"seed {seeds}"
    return Table.of_lines(
        {"": lines},
        name="card",
        title=f"Metrics on {city.name}",
        caption=f"In percent, {over if row.has_seeds else 'without seeds'}. Revisit: one of the "
        "user's 512 visits before.",
    )


def _error(city: CityEvidence, row: Row) -> float | None:
    """Calibration error of the softmax of a method that has one."""
    results = city.contenders[row.name].results if row.has_seeds else ()
    errors = [result.beyond.calibration.expected_error for result in results]
    return fmean(errors) if errors else None
