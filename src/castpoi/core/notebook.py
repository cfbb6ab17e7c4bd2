"""Tables in a notebook: plain HTML in the style of the page around it."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = ""
) -> str:
    """A table with a caption; the first column is text, the others are numbers."""
    lines = [f"<table><caption style='text-align:left'>{escape(caption)}</caption><thead>"]
    lines.append(_row("th", columns))
    lines.append("</thead><tbody>")
    lines += [_row("td", row) for row in rows]
    return "".join([*lines, "</tbody></table>"])


def _row(tag: str, cells: Sequence[object]) -> str:
    return "".join(
        [
            "<tr>",
            *(
                f"<{tag} style='text-align:{'right' if at else 'left'}'>{escape(str(cell))}</{tag}>"
                for at, cell in enumerate(cells)
            ),
            "</tr>",
        ]
    )
