"""Tables and small maps in a notebook: plain HTML and SVG, without a network."""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_NUMBER: Final = re.compile(r"[-+−–]?[\d.,]*( .*\d.*)?[%*†]*$")
"""A number, also with a deviation or an interval, or no value."""
_SIDE: Final = 220  # pixels
_MARGIN: Final = 14


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    points: Sequence[tuple[float, float]] = (),
) -> str:
    """A table with a caption, numbers to the right, and a map of `points` (lat, lon) beside it."""
    texts = [list(map(str, row)) for row in rows]
    sides = [
        "right" if at and all(_NUMBER.match(row[at]) for row in texts) else "left"
        for at in range(len(columns))
    ]
    table = "".join(
        ["<table><thead>", _row("th", columns, sides), "</thead><tbody>"]
        + [_row("td", row, sides) for row in texts]
        + ["</tbody></table>"]
    )
    return (
        f"<div>{escape(caption)}</div>"
        f"<div style='display:flex;flex-wrap:wrap;gap:1em'>{table}{_map_of(points)}</div>"
    )


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    pairs = zip(cells, sides, strict=True)
    shown = (f"<{tag} style='text-align:{side}'>{escape(cell)}</{tag}>" for cell, side in pairs)
    return f"<tr>{''.join(shown)}</tr>"


def _map_of(points: Sequence[tuple[float, float]]) -> str:
    """Numbered points on a blank square, north up, the first ones on top, with a scale."""
    if not points:
        return ""
    middle = sum(lat for lat, _ in points) / len(points)
    shrink = math.cos(math.radians(middle))  # a degree of longitude is shorter than one of latitude
    x, y = [lon * shrink for _, lon in points], [-lat for lat, _ in points]
    span = max(max(x) - min(x), max(y) - min(y)) or 0.01
    left, top = (min(each) - (span - max(each) + min(each)) / 2 for each in (x, y))  # centred
    dots = []
    for number, (across, down) in enumerate(zip(x, y, strict=True), start=1):
        at = [_MARGIN + _SIDE * part / span for part in (across - left, down - top)]
        dots.append(
            f"<circle cx='{at[0]:.1f}' cy='{at[1]:.1f}' r='9' fill='#2563eb' stroke='white'/>"
            f"<text x='{at[0]:.1f}' y='{at[1] + 3.5:.1f}' font-size='10' fill='white' "
            f"text-anchor='middle'>{number}</text>"
        )
    whole = _SIDE + 2 * _MARGIN
    km = span * 111.2  # kilometres of a degree
    return (
        f"<svg width='{whole}' height='{whole + 18}' role='img' aria-label='map'>"
        f"<rect width='{whole}' height='{whole}' fill='#8881'/>{''.join(reversed(dots))}"
        f"<text x='{_MARGIN}' y='{whole + 13}' font-size='11' fill='gray'>"
        f"north up, {km:.2g} km across</text></svg>"
    )
