"""Inline SVG: well-formed, to scale, and safe with any text."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.checkins.describe import Bucket
from castpoi.reports.svg import (
    Dot,
    Graticule,
    Markup,
    columns_chart,
    curve_chart,
    dot_map,
    element,
    joined,
    nice_step,
    rows_chart,
)

BUCKETS = [
    Bucket(label="Mon", count=10, share=0.1),
    Bucket(label="Tue", count=40, share=0.4),
    Bucket(label="<b>&", count=50, share=0.5),
]


def marks(svg: str, tag: str, class_: str) -> list[ElementTree.Element]:
    return [
        mark for mark in ElementTree.fromstring(svg).iter(tag) if class_ in mark.get("class", "")
    ]


def words(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter("text")]


def percent(mark: ElementTree.Element, attribute: str) -> float:
    return float(mark.attrib[attribute].removesuffix("%"))


def test_text_and_attributes_are_escaped_and_markup_is_not() -> None:
    inner = element("b", "1 < 2")
    assert element("p", inner, " & more", title='say "hi"') == (
        '<p title="say &quot;hi&quot;"><b>1 &lt; 2</b> &amp; more</p>'
    )
    assert joined([Markup("<i></i>"), "<i>"]) == "<i></i>&lt;i&gt;"


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="￾￿")))
def test_any_text_comes_back_whole_from_an_element(text: str) -> None:
    read = ElementTree.fromstring(element("p", text, title=text))
    assert (read.text or "") == text
    assert read.get("title") == text


def test_columns_are_as_tall_as_their_shares() -> None:
    bars = marks(columns_chart(BUCKETS, label="days"), "rect", "bar")
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights[1] / heights[0] == pytest.approx(4)
    assert heights[2] / heights[0] == pytest.approx(5)
    feet = {round(float(bar.attrib["y"]) + float(bar.attrib["height"]), 3) for bar in bars}
    assert len(feet) == 1


def test_a_column_of_forty_percent_ends_at_the_rule_of_forty_percent() -> None:
    chart = columns_chart(BUCKETS, label="days")
    shares = [text for text in words(chart) if text.endswith("%")]
    rules = [float(rule.attrib["y1"]) for rule in marks(chart, "line", "rule")]
    top = float(marks(chart, "rect", "bar")[1].attrib["y"])
    assert top == pytest.approx(rules[shares.index("40%")])


def test_every_third_column_is_labelled() -> None:
    hours = [Bucket(label=f"{hour:02d}", count=1, share=1 / 24) for hour in range(24)]
    labels = [
        text for text in words(columns_chart(hours, label="hours", every=3)) if "%" not in text
    ]
    assert labels == ["00", "03", "06", "09", "12", "15", "18", "21"]


def test_the_longest_row_fills_the_width() -> None:
    chart = rows_chart(BUCKETS, label="days")
    assert [percent(bar, "width") for bar in marks(chart, "rect", "bar")] == [20, 80, 100]
    assert words(chart)[-3:] == ["<b>&", "50.0%", "50"]


def test_a_long_row_label_is_shortened_and_kept_whole_in_its_tooltip() -> None:
    label = "American Restaurant with a View"
    chart = rows_chart([Bucket(label=label, count=1, share=1.0)], label="categories")
    assert words(chart)[0] == "American Restaurant with …"
    assert f"<title>{label}: 100.0% (1)</title>" in chart


@pytest.mark.parametrize("buckets", [[], [Bucket(label="Mon", count=0, share=0.0)]])
def test_charts_of_nothing_are_still_charts(buckets: list[Bucket]) -> None:
    for chart in (columns_chart(buckets, label="a"), rows_chart(buckets, label="b")):
        assert ElementTree.fromstring(chart).tag == "svg"


def test_a_power_law_is_a_straight_line_on_logarithmic_axes() -> None:
    chart = curve_chart(
        [(1, 1000), (10, 100), (100, 10), (1000, 1)], label="law", across="rank", upward="check-ins"
    )
    [line] = marks(chart, "polyline", "line")
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert [y for _, y in points] == pytest.approx([x for x, _ in points])
    assert {"1", "10", "100", "1k", "rank", "check-ins"} <= set(words(chart))


def test_points_at_zero_are_left_away_from_logarithmic_axes() -> None:
    chart = curve_chart([(1, 5), (2, 0)], label="law", across="rank", upward="check-ins")
    assert len(marks(chart, "circle", "knot")) == 1
    assert "nothing to show" in curve_chart([(1, 0)], label="law", across="x", upward="y")


def test_ticks_of_millions_are_short() -> None:
    chart = curve_chart([(1, 5_000_000), (2, 1)], label="law", across="rank", upward="check-ins")
    assert {"1k", "10k", "100k", "1M"} <= set(words(chart))


def test_a_dot_stands_where_its_fractions_say() -> None:
    dot = Dot(x=0.25, y=0.5, radius=1.5, shade=3, tooltip="<Café>")
    graticule = Graticule(meridians=[(0.5, "74° W")], parallels=[(0.3, "40° N")], bar=(0.2, "1 km"))
    svg = dot_map([dot], graticule, label="places", aspect=1.25)
    [circle] = marks(svg, "circle", "dot")
    assert (circle.get("cx"), circle.get("cy"), circle.get("r")) == ("25%", "50%", "1.5%")
    assert circle.get("class") == "dot shade-3"
    assert circle.findtext("title") == "<Café>"
    [bar] = marks(svg, "line", "scale")
    assert percent(bar, "x2") - percent(bar, "x1") == pytest.approx(20)
    assert words(svg) == ["74° W", "40° N", "1 km"]


@given(st.floats(1e-6, 1e9), st.integers(1, 8))
def test_a_nice_step_reaches_the_top_and_is_not_needlessly_long(top: float, most: int) -> None:
    step = nice_step(top, most)
    assert step * most >= top * 0.999999
    assert f"{step:e}"[0] in "125"
    assert step <= 2.5 * top / most * 1.000001
