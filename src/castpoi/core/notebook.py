"""Tables and small maps in a notebook: plain HTML and SVG, without a network."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_SIDE: Final = 220  # pixels
_MARGIN: Final = 12


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


def point_map(points: Sequence[tuple[float, float]]) -> str:
    """Numbered points (lat, lon) on a blank square, north up; needs no network."""
    if not points:
        return ""
    middle = sum(lat for lat, _ in points) / len(points)
    shrink = math.cos(math.radians(middle))  # a degree of longitude is shorter than one of latitude
    x, y = [lon * shrink for _, lon in points], [-lat for lat, _ in points]
    span = max(max(x) - min(x), max(y) - min(y)) or 1.0
    dots = []
    for number, (across, down) in enumerate(zip(x, y, strict=True), start=1):
        left = _MARGIN + _SIDE * (across - min(x)) / span
        top = _MARGIN + _SIDE * (down - min(y)) / span
        dots.append(
            f"<circle cx='{left:.1f}' cy='{top:.1f}' r='9' fill='#2563eb' fill-opacity='.8'/>"
            f"<text x='{left:.1f}' y='{top + 3.5:.1f}' font-size='10' fill='white' "
            f"text-anchor='middle'>{number}</text>"
        )
    whole = _SIDE + 2 * _MARGIN
    return f"<svg width='{whole}' height='{whole}' role='img'>{''.join(dots)}</svg>"
