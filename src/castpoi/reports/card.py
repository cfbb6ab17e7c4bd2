"""Model cards: the description, training data and metrics of a method."""

import re
from collections.abc import Iterator
from statistics import fmean
from typing import Final

from castpoi.evaluation.metrics import METRICS
from castpoi.methods.outline import ORACLE, Row
from castpoi.methods.registry import METHODS
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence, RowResult
from castpoi.reports.outlines import HEADLINE, is_not_paper_preset
from castpoi.reports.table import Cell, Table, count, escape_markdown, markdown, spread_cell

_USE: Final = (
    "Ranks the places of one city as the next visit of a person, given the visits before. It is "
    "made for the places and the period of the city that it was trained on. Check-ins are what "
    "people chose to publish: places and people with few check-ins are served worse. A ranking "
    "reveals habits; do not show one person's ranking to another."
)


def model_card(evidence: Evidence, row: Row) -> str:
    """The card of a row in Markdown, for all cities where it has results."""
    lines = [f"# {escape_markdown(row.label)}", "", _method_line(row), ""]
    lines += ["## Intended use and limits", "", _USE, "", *_settings(row), ""]
    for city in (each for each in evidence.cities if each.has(row)):
        lines += [f"## On {escape_markdown(city.name)}", "", *_city_lines(city), ""]
        lines += [markdown(_table(city, row)), _limits(city, row), ""]
        lines += ["### Its runs", "", *_training(city, row), ""]
        commands = [command for each in city.of(row.name) for command in each.commands]
        lines += ["### How to reproduce it", "", "```", *commands, "```", ""]
    return "\n".join(lines)


def card_file(row: Row) -> str:
    """Name of the file of a card."""
    return re.sub(r"[^\w.=-]+", "-", row.name) + ".md"


def _method_line(row: Row) -> str:
    method = METHODS.find(row.method)
    line = "a method that is not installed" if method is None else method.line
    return f"`{row.method}`: {line}."


def _settings(row: Row) -> Iterator[str]:
    if not row.is_learned:
        yield "No preset: it only counts."
    else:
        yield f"Preset: {row.preset}." if row.preset else "Its results do not record its preset."
    if is_not_paper_preset(row):
        yield notes.NOT_PAPER_PRESET
    if row.role == ORACLE:
        yield notes.ORACLE
    if row.settings:
        changed = ", ".join(f"`{name}={value}`" for name, value in row.settings.items())
        yield f"Changed: {changed}."
    if row.known_time:
        yield notes.KNOWN_TIME


def _city_lines(city: CityEvidence) -> Iterator[str]:
    checkins, users, places = map(city.count_of, ("checkins", "users", "places"))
    sizes = f"{checkins:,} check-ins, {users:,} users, {places:,} places, {city.targets:,} targets"
    yield f"Data: {sizes} ({city.part} split)."
    yield f"Split: `{city.fingerprint}`."


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
    return Table.of_lines(
        {"": lines},
        name="card",
        title=f"Metrics on {city.name}",
        caption=f"In percent, {_seeds(city, row)}. Revisit: one of the user's 512 visits before.",
    )


def _limits(city: CityEvidence, row: Row) -> str:
    if not row.has_seeds:
        return "Its scores are counts or distances, not probabilities."
    results = city.contenders[row.name].results
    error = fmean(result.beyond.calibration.expected_error for result in results)
    return f"Calibration error of its softmax: {100 * error:.1f} points."


def _training(city: CityEvidence, row: Row) -> Iterator[str]:
    if not row.is_learned:
        yield "None: it only counts."
        return
    others = {each.training: each.row.label for each in city.results if each.row.name != row.name}
    for each in city.of(row.name):
        twin = others.get(each.training)
        weights = f"; the same weights as {twin}" if twin else ""
        yield f"- seed {each.seed}{weights}; {'; '.join(_run_words(each))}"


def _run_words(each: RowResult) -> Iterator[str]:
    metrics = {metric: each.result.metrics[metric] for metric in HEADLINE}
    yield ", ".join(f"{metric} {100 * (value or 0.0):.2f}" for metric, value in metrics.items())
    if each.parameters is not None:
        yield f"{each.parameters:,} parameters"
    if each.epochs:
        yield f"{len(each.epochs)} epochs, last loss {each.epochs[-1]['loss']:.3f}"
    if each.training_seconds is not None:
        yield f"{each.training_seconds:,.0f} s of training"
    yield f"{each.result.seconds:,.1f} s to rank all targets"
    versions = each.result.manifest.get("versions", {})
    yield ", ".join(f"{name} {version}" for name, version in versions.items()) or "no versions"
    yield f"commit {each.result.manifest.get('commit') or 'unknown'}"


def _seeds(city: CityEvidence, row: Row) -> str:
    if not row.has_seeds:
        return "without seeds"
    seeds = [str(each.seed) for each in city.of(row.name)]
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"mean over seeds {', '.join(seeds)}"
