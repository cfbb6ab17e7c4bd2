"""Inline SVG charts for HTML pages: columns, rows, a curve and a map of dots.

Positions across are percentages and text is in pixels, so a chart fills any width, from a phone
to a wide screen, and its labels keep their size. Colours come from the classes of `page.css`.
Text is escaped by construction: `element` takes any string as text unless it is `Markup`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from castpoi.checkins.describe import Bucket


class Markup(str):
    """Text that is markup already and is not escaped again."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str | float) -> Markup:
    """One element; `class_` and `stroke_width` are written class and stroke-width."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Parts side by side; what is not markup is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.5g}%"


def _chart(label: str, height: float, *parts: str) -> Markup:
    return element(
        "svg", *parts, class_="chart", width="100%", height=height, role="img", aria_label=label
    )


_LEFT: Final = 0.09
_TOP: Final = 10
_FOOT: Final = 24


def columns_chart(
    buckets: Sequence[Bucket], *, label: str, every: int = 1, height: int = 190
) -> Markup:
    """Upright bars with a scale of shares; every `every`-th bar is labelled below."""
    top = max((bucket.share for bucket in buckets), default=0.0)
    step = nice_step(top or 1.0)
    ceiling = step * math.ceil(round((top or 1.0) / step, 9))
    plot = height - _TOP - _FOOT
    parts: list[str] = []
    for tick in range(round(ceiling / step) + 1):
        y = _TOP + plot * (1 - tick * step / ceiling)
        decimals = 0 if step >= 0.01 else 1
        parts.append(_rule(y))
        parts.append(_text(f"{tick * step:.{decimals}%}", _LEFT - 0.015, y + 4, "end"))
    width = (1 - _LEFT) / max(1, len(buckets))
    air = 0.12 if len(buckets) > 12 else 0.2  # of a column, on either side of its bar
    for position, bucket in enumerate(buckets):
        x = _LEFT + width * position
        tall = plot * bucket.share / ceiling
        parts.append(
            element(
                "rect",
                _title(bucket),
                class_="bar",
                x=_percent(x + width * air),
                y=_TOP + plot - tall,
                width=_percent(width * (1 - 2 * air)),
                height=tall,
                rx=2,
            )
        )
        if position % every == 0:
            parts.append(_text(bucket.label, x + width / 2, height - 6, "middle"))
    return _chart(label, height, *parts)


_ROW: Final = 37
_COUNT_WIDTH: Final = 64
_LABEL_LETTERS: Final = 26


def rows_chart(buckets: Sequence[Bucket], *, label: str) -> Markup:
    """Lying bars, each under its label, share and count; the longest fills the width."""
    top = max((bucket.share for bucket in buckets), default=0.0) or 1.0
    parts: list[str] = []
    for position, bucket in enumerate(buckets):
        y = position * _ROW
        long = bucket.share / top
        parts += [
            _text(_shortened(bucket.label), 0, y + 15, "start", class_="row-label"),
            _text(f"{bucket.share:.1%}", 1, y + 15, "end", class_="share", dx=-_COUNT_WIDTH),
            _text(f"{bucket.count:,}", 1, y + 15, "end"),
            element("rect", class_="track", x=0, y=y + 22, width="100%", height=6, rx=3),
            element(
                "rect",
                _title(bucket),
                class_="bar",
                x=0,
                y=y + 22,
                width=_percent(long),
                height=6,
                rx=3,
            ),
        ]
    return _chart(label, _ROW * len(buckets), *parts)


_DETAIL: Final = 1000  # units of the curve's own square, stretched over the plot


def curve_chart(
    points: Sequence[tuple[int, int]],
    *,
    label: str,
    across: str,
    upward: str,
    height: int = 300,
) -> Markup:
    """A curve on two logarithmic axes, with `across` and `upward` naming them.

    Points at zero have no place on such axes and are left away.
    """
    shown = [(x, y) for x, y in points if x > 0 and y > 0]
    if not shown:
        return _chart(label, 40, _text("nothing to show", 0.5, 24, "middle"))
    xs, ys = _LogAxis.over([x for x, _ in shown]), _LogAxis.over([y for _, y in shown])
    top, plot = _TOP + 18, height - _TOP - 18 - _FOOT - 16
    parts: list[str] = [_text(upward, 0, 12, "start", class_="axis-title")]
    for tick in ys.decades():
        y = top + plot * (1 - ys.at(tick))
        parts += [_rule(y), _text(_compact(tick), _LEFT - 0.015, y + 4, "end")]
    for tick in xs.decades():
        x = _LEFT + (1 - _LEFT) * xs.at(tick)
        anchor = "end" if xs.at(tick) > 0.97 else "middle"
        parts.append(_text(_compact(tick), x, top + plot + 18, anchor))
    parts.append(_text(across, 1, height - 4, "end", class_="axis-title"))
    parts.append(_curve([(xs.at(x), ys.at(y)) for x, y in shown], top, plot))
    for x, y in shown:
        centre = _percent(_LEFT + (1 - _LEFT) * xs.at(x))
        note = element("title", f"{across} {x:,}: {y:,} {upward}")
        height_at = top + plot * (1 - ys.at(y))
        parts.append(element("circle", note, class_="knot", cx=centre, cy=height_at, r=4))
    return _chart(label, height, *parts)


def _curve(points: Sequence[tuple[float, float]], top: float, plot: float) -> Markup:
    line = " ".join(f"{x * _DETAIL:.4g},{(1 - y) * _DETAIL:.4g}" for x, y in points)
    first, last = points[0][0] * _DETAIL, points[-1][0] * _DETAIL
    return element(
        "svg",
        element("polygon", class_="area", points=f"{first:g},{_DETAIL} {line} {last:g},{_DETAIL}"),
        element("polyline", class_="line", points=line, vector_effect="non-scaling-stroke"),
        x=_percent(_LEFT),
        y=top,
        width=_percent(1 - _LEFT),
        height=plot,
        viewBox=f"0 0 {_DETAIL} {_DETAIL}",
        preserveAspectRatio="none",
        overflow="visible",
    )


@dataclass(frozen=True)
class _LogAxis:
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[int]) -> "_LogAxis":
        """From the decade below the least value to a little above the greatest."""
        low = math.floor(math.log10(min(values)))
        return cls(low, max(math.log10(max(values)), low + 1.0))

    def at(self, value: float) -> float:
        return (math.log10(value) - self.low) / (self.high - self.low)

    def decades(self) -> list[int]:
        return [10**power for power in range(int(self.low), math.floor(self.high) + 1)]


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A mark on a map; positions are fractions of its width and height from the upper left."""

    x: float
    y: float
    radius: float
    """Percent of the size of the map."""
    shade: int
    """0 (faint) to 4 (strong), or 5 for the marks to look at first."""
    tooltip: str


@dataclass(frozen=True, kw_only=True)
class Graticule:
    """What tells where and how large a map is; positions are fractions."""

    meridians: Sequence[tuple[float, str]]
    parallels: Sequence[tuple[float, str]]
    bar: tuple[float, str]
    """Length of the scale bar and its words."""


def dot_map(dots: Sequence[Dot], graticule: Graticule, *, label: str, aspect: float) -> Markup:
    """Dots over thin meridians and parallels, in the order given; `aspect` is width / height."""
    lines, words = _net(graticule)
    marks = [
        element(
            "circle",
            element("title", dot.tooltip),
            class_=f"dot shade-{dot.shade}",
            cx=_percent(dot.x),
            cy=_percent(dot.y),
            r=f"{dot.radius:.3g}%",
        )
        for dot in dots
    ]
    return element(
        "svg",
        *lines,
        *marks,
        *words,
        _scale_bar(*graticule.bar),
        class_="map",
        width="100%",
        style=f"aspect-ratio:{aspect:.4g}",
        role="img",
        aria_label=label,
    )


def _net(graticule: Graticule) -> tuple[list[Markup], list[Markup]]:
    """The lines of a graticule, which lie under the dots, and its words, which lie above."""
    lines, words = [], []
    for x, degrees in graticule.meridians:
        at = _percent(x)
        lines.append(element("line", class_="rule", x1=at, x2=at, y1=0, y2="100%"))
        words.append(_text(degrees, x, 14, "start", dx=4))
    for y, degrees in graticule.parallels:
        at = _percent(y)
        lines.append(element("line", class_="rule", x1=0, x2="100%", y1=at, y2=at))
        words.append(_text(degrees, 0, at, "start", dx=6, dy=-5))
    return lines, words


def _scale_bar(length: float, words: str) -> Markup:
    right, y = 0.965, "96%"
    left = right - length
    bar = element("line", class_="scale", x1=_percent(left), x2=_percent(right), y1=y, y2=y)
    return joined([bar, _text(words, right, y, "end", class_="scale-label", dy=-7)])


def nice_step(top: float, most: int = 4) -> float:
    """The least step of 1, 2 or 5 times a power of ten that reaches `top` in `most` steps."""
    power = 10.0 ** math.floor(math.log10(top / most))
    steps = (factor * power for factor in (1, 2, 5, 10))
    return next(step for step in steps if step * most >= top * (1 - 1e-9))


def _compact(decade: int) -> str:
    """A power of ten in few letters: 100, 1k, 10M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if decade >= size:
            return f"{decade // size}{letter}"
    return str(decade)


def _shortened(label: str) -> str:
    return label if len(label) <= _LABEL_LETTERS else label[: _LABEL_LETTERS - 1] + "…"


def _rule(y: float) -> Markup:
    return element("line", class_="rule", x1=_percent(_LEFT), x2="100%", y1=y, y2=y)


def _title(bucket: Bucket) -> Markup:
    return element("title", f"{bucket.label}: {bucket.share:.1%} ({bucket.count:,})")


def _text(
    words: str,
    x: float,
    y: float | str,
    anchor: str,
    *,
    class_: str = "tick",
    dx: float = 0,
    dy: float = 0,
) -> Markup:
    shift: dict[str, float] = {key: by for key, by in (("dx", dx), ("dy", dy)) if by}
    return element("text", words, class_=class_, x=_percent(x), y=y, text_anchor=anchor, **shift)
