"""The cities, methods and sources of a report, and what is missing."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from castpoi.core.files import read_json
from castpoi.core.quantities import duration_words
from castpoi.evaluation.result import EXPERIMENT, IS_REVISIT
from castpoi.methods.outline import ABLATION, ORACLE, RIVALS, Row
from castpoi.methods.registry import METHODS
from castpoi.reports import notes
from castpoi.reports.card import card_file
from castpoi.reports.evidence import (
    OUTDATED,
    CityEvidence,
    Evidence,
    RowResult,
    source_anchor,
)
from castpoi.reports.metrics import cities_of
from castpoi.reports.outlines import is_of_other_settings
from castpoi.reports.reference import PaperCity, paper_city
from castpoi.reports.table import NOTHING, Cell, Table, count, number, percent

_NAMED: Final = 6
_TUNE: Final = "tune.json"


def city_table(evidence: Evidence) -> Table:
    """One line for each split; the paper's counts below it where the city is the paper's."""
    lines = []
    for city in evidence.splits:
        lines.append(_city_line(city))
        paper = paper_city(city.name, city.targets)
        lines += [] if paper is None else [_sizes(paper, f"{paper.name}, in the paper")]
    return Table.of_lines({"": lines}, name="cities", title="Cities", caption=notes.CITIES)


def _city_line(city: CityEvidence) -> dict[str, Cell]:
    users, places, checkins = map(city.count_of, ("users", "places", "checkins"))
    sizes = PaperCity(city.name, users, places, checkins, city.targets)
    is_revisit = city.results[0].result.ranks[IS_REVISIT].to_numpy()
    return {
        **_sizes(sizes, city.name),
        "Revisits %": percent(float(is_revisit.mean()), 1),
        "Fingerprint": Cell(city.fingerprint[:12], note=city.fingerprint),
    }


def _sizes(city: PaperCity, name: str) -> dict[str, Cell]:
    return {
        "City": Cell(name),
        "Users": count(city.users),
        "Places": count(city.places),
        "Check-ins": count(city.checkins),
        "Check-ins of a user": number(city.checkins / city.users, 1),
        "Targets": count(city.targets),
    }


def method_table(evidence: Evidence) -> Table:
    """One line for each row: its method, preset, settings, size and cost."""
    trials = _trials_of_presets(evidence.folder)
    lines = [
        {
            "Method": Cell(row.label, link=f"cards/{card_file(row)}"),
            "What it is": Cell(description_of(row)),
            "Trials": NOTHING
            if row.role == ABLATION
            else trials.get((row.method, row.preset or ""), NOTHING),
            **_size_and_cost(evidence, row),
        }
        for row in evidence.rows
    ]
    return Table.of_lines(
        {"": lines},
        name="methods",
        title="Methods",
        caption=notes.METHODS,
        footnotes=evidence.notes_on(evidence.rows),
        words=2,
    )


def description_of(row: Row) -> str:
    """The method of a row in a sentence, with its preset and settings."""
    method = METHODS.find(row.method)
    unknown = "another project's model" if row.role == ORACLE else "a method that is not installed"
    text = unknown if method is None else method.line
    changed = ", ".join(f"{name}={value}" for name, value in row.settings.items())
    preset = f"; preset {row.preset}" if row.preset else ""
    return f"{text}{preset}{f'; with {changed}' if changed else ''}"


def _trials_of_presets(folder: Path) -> dict[tuple[str, str], Cell]:
    """How many trials found a preset, by method and preset, from all TUNE files below a folder."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for path in sorted(folder.rglob(_TUNE)):
        tuned = read_json(path)
        done = [each for each in tuned["trials"] if each["state"] == "done"]
        of_preset = seconds.setdefault((tuned["method"], tuned["preset"]), [])
        of_preset += [each["seconds"] or 0.0 for each in done]
    return {
        preset: Cell(f"{len(own)} ({duration_words(sum(own))})", len(own))
        for preset, own in seconds.items()
    }


def _size_and_cost(evidence: Evidence, row: Row) -> dict[str, Cell]:
    """Parameters and shortest training on the first city that records them."""
    results = [each for city in evidence.cities for each in city.of(row.name)]
    parameters = next((each.parameters for each in results if each.parameters is not None), None)
    of_city = next((city.of(row.name) for city in evidence.cities if city.has(row)), [])
    seconds = [each.training_seconds for each in of_city if each.training_seconds is not None]
    return {
        "Parameters": count(parameters) if row.has_seeds else Cell("none"),
        "Training": _seconds(min(seconds, default=None)),
    }


def source_table(evidence: Evidence, out: Path) -> Table:
    """One line for each result; links lead there from the report in `out`."""
    groups: dict[str, list[dict[str, Cell]]] = {}
    anchors: set[str] = set()
    results = ((city, each) for city in evidence.cities for each in city.results)
    for position, (city, each) in enumerate(results, start=1):
        anchor = source_anchor(city, each.row)
        line = _source_line(each, evidence.folder, out, position)
        if anchor not in anchors:  # where the numbers of its row lead to
            anchors.add(anchor)
            line["Result"] = replace(line["Result"], anchor=anchor)
        groups.setdefault(city.name, []).append(line)
    return Table.of_lines(
        groups, name="sources", title="All results", caption=notes.SOURCES, words=2
    )


def relative_path(folder: Path, out: Path) -> str:
    """The path from the report to a folder, with slashes."""
    return Path(os.path.relpath(folder.resolve(), out.resolve())).as_posix()


def _source_line(each: RowResult, root: Path, out: Path, position: int) -> dict[str, Cell]:
    manifest = each.result.manifest
    commit = str(manifest.get("commit") or "–")
    dirty = "+" if commit.endswith("-dirty") else ""
    name = each.folder.name if each.folder == root else relative_path(each.folder, root)

    def link(text: str, path: Path) -> Cell:
        return Cell(text, link=quote(relative_path(path, out))) if path.is_file() else NOTHING

    return {
        "Result": link(name, each.folder / "manifest.json"),
        "Row": Cell(each.row.label),
        "Seed": Cell(str(each.seed), each.seed),
        "Training": _seconds(each.training_seconds),
        "Code": Cell(str(manifest.get(EXPERIMENT, {}).get("key", {}).get("code", "–"))[:8]),
        "Commit": Cell(commit[:8] + dirty, note=commit),
        "Config": link("config", each.config),
        "Log": link("log", each.log),
        "Command": Cell("command", link=f"#command-{position}") if each.commands else NOTHING,
    }


def _seconds(seconds: float | None) -> Cell:
    if seconds is None:
        return NOTHING
    return Cell(f"{seconds:.1f} s" if seconds < 60 else duration_words(seconds), seconds)


def what_is_missing(evidence: Evidence, *, has_charts: bool) -> list[str]:
    """One sentence for each gap; empty where the report is complete."""
    states = evidence.unfinished
    failed = [name for name, state in states.items() if state.startswith("failed")]
    outdated = [name for name, state in states.items() if state == OUTDATED]
    waiting = [name for name in states if name not in (*failed, *outdated)]
    gaps = {
        "No figures: they need matplotlib (pip install 'castpoi[report]').": not has_charts,
        f"Failed, so without a result: {_named(failed)}.": failed,
        f"Left out, because their row was changed in the suite since: {_named(outdated)}. Run "
        "'castpoi reproduce' again.": outdated,
        f"Not finished: {_named(waiting)}. Resume with 'castpoi reproduce'.": waiting,
    }
    by_city = [f"{city.name}: {gap}" for city in evidence.cities for gap in _gaps(evidence, city)]
    return [*(gap for gap, is_there in gaps.items() if is_there), *by_city]


def _gaps(evidence: Evidence, city: CityEvidence) -> Iterator[str]:
    for table in evidence.tables:
        # no city needs all settings that were tried on another
        if city in cities_of(table, evidence) and not is_of_other_settings(table):
            absent = [row.label for row in table.rows if not city.has(row)]
            if absent:
                yield f"no result of {_named(absent)} in the table '{table.title}'."
    rows = [row for row in evidence.rows if city.has(row) and row.role != ORACLE]
    learned = [row for row in rows if row.has_seeds]
    seeds = [len(city.of(row.name)) for row in learned]
    for fewer in sorted(set(seeds)):
        labels = _named([row.label for row, n in zip(learned, seeds, strict=True) if n == fewer])
        if fewer == 1:
            yield f"only one seed of {labels}, so no deviation over seeds."
        elif fewer < max(seeds):
            yield f"only {fewer} seeds of {labels}, where others have {max(seeds)}."
    if city.known_time:
        yield "nothing is tested: these methods are given the time of each target."
    elif evidence.ours(city) is None:
        yield "no result of our method, so nothing is tested."
    elif not any(row.role in RIVALS for row in rows):
        yield "no other method, so no improvement and no stars in the main table."
    logged = {each.row.name for each in city.results if each.epochs}
    shown = [row for row in evidence.rows_of(city) if row in learned]
    unlogged = [row.label for row in shown if row.name not in logged]
    if unlogged:
        yield f"no training log of {_named(unlogged)}, so no training curve."


def _named(names: Sequence[str]) -> str:
    shown = "; ".join(names[:_NAMED])  # a name may contain a comma
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
