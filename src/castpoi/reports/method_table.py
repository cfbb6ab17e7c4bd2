"""The table of methods: what every row of a report is, in a sentence."""

from castpoi.core.errors import UnknownMethod
from castpoi.methods.outline import ORACLE, Row
from castpoi.methods.registry import METHODS
from castpoi.reports.evidence import Evidence
from castpoi.reports.learning_log import parameters_of
from castpoi.reports.model_card import card_file
from castpoi.reports.table import Cell, Group, Table, count, word


def method_table(evidence: Evidence) -> Table:
    """One line a row, with the number of its parameters on the first city that tells it."""
    return Table(
        name="methods",
        title="Methods",
        caption=(
            "Parameters: numbers that are learned, on the first city of this report whose log "
            "tells them; most of them are vectors of places, so they grow with the city. Methods "
            "with none only count. A variant is trained anew, unless its card tells that it has "
            "the same weights as another row."
        ),
        columns=["Method", "What it is", "Parameters"],
        groups=[
            Group(
                heading="",
                rows=[
                    [
                        Cell(text=row.label, link=f"cards/{card_file(row)}"),
                        word(what_it_is(row)),
                        _parameters(evidence, row),
                    ]
                    for row in evidence.rows
                ],
            )
        ],
        words=2,
    )


def what_it_is(row: Row) -> str:
    """The method of a row in a sentence, and what was changed about it."""
    try:
        words = METHODS.named(row.method).line
    except UnknownMethod:
        is_oracle = row.role == ORACLE
        unknown = "a method this castpoi does not know"
        words = "an oracle of our copy, no method" if is_oracle else unknown
    changed = ", ".join(f"{name}={value}" for name, value in row.settings.items())
    preset = f"; preset {row.preset}" if row.preset else ""
    return f"{words}{preset}{f'; with {changed}' if changed else ''}"


def _parameters(evidence: Evidence, row: Row) -> Cell:
    if not row.is_learned:
        return word("none")
    told = (parameters_of(finding) for city in evidence.cities for finding in city.of(row.name))
    number = next((number for number in told if number is not None), None)
    return word("not told") if number is None else count(number)
