"""Model cards: what a method is, what it was trained on, how good it is and where it is not."""

import re
from collections.abc import Iterator
from statistics import fmean

from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.errors import UnknownMethod
from castpoi.evaluation.compare import compare
from castpoi.evaluation.metrics import METRICS
from castpoi.methods.outline import ORACLE, Row
from castpoi.methods.registry import METHODS
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.finding import Finding
from castpoi.reports.learning_log import epochs_of, parameters_of
from castpoi.reports.outline import (
    HEADLINE,
    IS_NO_METHOD,
    PAPERS_METHOD,
    STANDS_APART,
    letter_words,
)
from castpoi.reports.table import Cell, Group, Table, count, word
from castpoi.reports.table_files import escape_markdown, markdown

_USE = (
    "Made to rank the places of one city as the next visit of a person whose visits are known. It "
    "knows only the places and the time of the city it was trained on. Check-ins are what people "
    "chose to publish: places and people that publish less are served worse. A ranking reveals "
    "habits; do not show one person's to another."
)


def model_card(evidence: Evidence, row: Row) -> str:
    """The card of a row in Markdown, over all cities it has results on."""
    cities = [city for city in evidence.cities if row.name in city.contenders]
    lines = [
        f"# {escape_markdown(row.label)}",
        "",
        _method_line(row),
        "",
        "## Intended use and limits",
        "",
        _USE,
        "",
    ]
    lines += [*_settings(row), ""]
    for city in cities:
        lines += [
            f"## On {escape_markdown(city.name)}",
            "",
            *_city_lines(city),
            "",
            markdown(_table(city, row)),
        ]
        lines += [*_limits(city, row), "", "### Its runs", "", *_training(city, row), ""]
        lines += ["### How to make it again", "", "```", *_commands(city, row), "```", ""]
    return "\n".join(lines)


def card_file(row: Row) -> str:
    """Name of its file, whatever a row is called."""
    return re.sub(r"[^\w.=-]+", "-", row.name) + ".md"


def _method_line(row: Row) -> str:
    try:
        return f"`{row.method}`: {METHODS.named(row.method).line}."
    except UnknownMethod:
        return f"`{row.method}`: a method this castpoi does not know."


def _settings(row: Row) -> Iterator[str]:
    if row.is_learned:
        yield f"Preset: {row.preset}." if row.preset else "Its results do not tell its preset."
    else:
        yield "No preset: it only counts."
    if row.method == PAPERS_METHOD:
        yield from letter_words([row])
    if row.role == ORACLE:
        yield IS_NO_METHOD
    if row.settings:
        changed = ", ".join(f"`{name}={value}`" for name, value in row.settings.items())
        yield f"Changed: {changed}."
    if row.known_time:
        yield STANDS_APART


def _city_lines(city: CityEvidence) -> Iterator[str]:
    counts = {
        "check-ins": city.checkins,
        "users": city.users,
        "places": city.places,
        "targets": city.targets,
    }
    sizes = [f"{count:,} {noun}" for noun, count in counts.items()]
    yield f"Data: {', '.join(sizes)} ({city.part} part)."
    yield f"Split: `{city.fingerprint}`."


def _table(city: CityEvidence, row: Row) -> Table:
    """Metrics over all targets, over revisits and over new places."""
    compared = compare([finding.result for finding in city.of(row.name)])
    (own,) = compared.rows
    sides = {"all": own.metrics, "revisit": own.strata["revisit"], "new": own.strata["new"]}
    numbers = {"all": compared.n, **compared.strata_n}
    lines = [
        [
            word(metric),
            *(
                Cell(
                    text="–" if spread.mean is None else f"{100 * spread.mean:.2f}",
                    std=100 * spread.std if row.is_learned and spread.std is not None else None,
                )
                for side in sides.values()
                for spread in [side[metric]]
            ),
        ]
        for metric in METRICS
    ]
    lines.append([word("targets"), *(count(numbers[side]) for side in sides)])
    return Table(
        name="card",
        title=f"Metrics on {city.name}",
        caption=f"In percent over {_seeds(city, row)}. Revisit: the place is among the "
        f"{REVISIT_WINDOW} visits before.",
        columns=["Metric", *sides],
        groups=[Group(heading="", rows=lines)],
    )


def _limits(city: CityEvidence, row: Row) -> Iterator[str]:
    if row.is_learned:
        results = city.contenders[row.name].results
        error = fmean(result.beyond.calibration.expected_error for result in results)
        yield f"Calibration error of its softmax: {100 * error:.1f} points."
    else:
        yield "Its scores are counts or distances, no probabilities."


def _training(city: CityEvidence, row: Row) -> Iterator[str]:
    if not row.is_learned:
        yield "None: it only counts."
        return
    others = {each.training: each.row.label for each in city.findings if each.row.name != row.name}
    for finding in city.of(row.name):
        twin = others.get(finding.training)
        weights = f"; the same weights as {twin}" if twin else ""
        yield f"- seed {finding.seed}{weights}; {'; '.join(_training_words(finding))}"


def _training_words(finding: Finding) -> Iterator[str]:
    yield ", ".join(
        f"{metric} {100 * value:.2f}"
        for metric in HEADLINE
        if (value := finding.result.metrics[metric]) is not None
    )
    parameters, epochs = parameters_of(finding), epochs_of(finding)
    if parameters is not None:
        yield f"{parameters:,} parameters"
    if epochs:
        yield f"{len(epochs)} epochs, last loss {epochs[-1]['loss']:.3f}"
    if finding.training_seconds is not None:
        yield f"{finding.training_seconds:,.0f} s of training"
    yield f"{finding.result.seconds:,.1f} s to rank all targets"
    versions = finding.result.manifest.get("versions", {})
    yield ", ".join(f"{name} {version}" for name, version in versions.items()) or "no versions"
    yield f"commit {finding.result.manifest.get('commit') or 'unknown'}"


def _commands(city: CityEvidence, row: Row) -> list[str]:
    return [command for finding in city.of(row.name) for command in finding.commands]


def _seeds(city: CityEvidence, row: Row) -> str:
    if not row.is_learned:
        return "one count, without chance"
    seeds = [str(finding.seed) for finding in city.of(row.name)]
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(seeds)}"
