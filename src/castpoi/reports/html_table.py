"""Tables on a page: sortable, with the deviation and the paper's value under the number."""

from collections.abc import Sequence
from typing import Final

from castpoi.reports.svg import Markup, element, joined
from castpoi.reports.table import Cell, Group, Table

_MANY: Final = 7  # columns; more of them stand closer
_VERY_MANY: Final = 12


def html_table(table: Table, group: Group) -> Markup:
    """One group of a table; a click on a heading sorts its lines (`report.js`)."""
    heads = [
        element(
            "th", element("button", column, type="button"), scope="col", class_=_kind(table, at)
        )
        for at, column in enumerate(table.columns)
    ]
    parts = [
        element("thead", element("tr", *heads)),
        element("tbody", *(_line(table, row) for row in group.rows)),
    ]
    if group.foot:
        parts.append(element("tfoot", *(_line(table, row) for row in group.foot)))
    drawn = element("table", *parts, class_=_look(table))
    name = ", ".join(filter(None, [table.title, group.heading]))
    return element("div", drawn, class_="scroll", tabindex="0", role="region", aria_label=name)


def _look(table: Table) -> str:
    """Many columns stand close; those of several groups stand below each other."""
    looks = {
        "dense": len(table.columns) > _MANY,
        "tight": len(table.columns) > _VERY_MANY,
        "even": len(table.groups) > 1 and table.words == 1,
    }
    return " ".join(["sortable", *(look for look, is_so in looks.items() if is_so)])


def _line(table: Table, row: Sequence[Cell]) -> Markup:
    cells = [_cell(cell, _kind(table, at), is_head=at == 0) for at, cell in enumerate(row)]
    return element("tr", *cells, class_="ours") if row[0].is_ours else element("tr", *cells)


def _cell(cell: Cell, kind: str, *, is_head: bool) -> Markup:
    """A cell; the first of a line is what the others are about."""
    text: Markup = element("span", cell.text, class_=_classes(cell))
    parts: list[str] = [element("a", cell.text, href=cell.link) if cell.link else text]
    if cell.marks:
        parts.append(element("sup", cell.marks))
    if cell.spread:
        parts.append(element("small", cell.spread))
    if cell.paper:
        parts.append(element("small", f"paper {cell.paper}", class_="paper"))
    attributes: dict[str, str | float] = {"class_": kind}
    sorted_by = cell.order if cell.value is None else cell.value
    if sorted_by is not None:
        attributes["data_value"] = f"{sorted_by:.10g}"
    if cell.note:
        attributes["title"] = cell.note
    if is_head:
        attributes["scope"] = "row"
    return element("th" if is_head else "td", joined(parts), **attributes)


def _classes(cell: Cell) -> str:
    named = {"best": cell.is_best, "strongest": cell.is_strongest, "faint": cell.is_faint}
    return " ".join(name for name, is_so in named.items() if is_so)


def _kind(table: Table, at: int) -> str:
    return "word" if at < table.words else "number"
