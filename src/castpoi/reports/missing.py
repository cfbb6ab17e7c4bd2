"""What a report could not show, and what to do about it: gaps are said, never filled."""

from collections.abc import Iterator, Sequence

from castpoi.methods.outline import ORACLE, OURS, RIVALS, Row
from castpoi.reports.evidence import OUTDATED, CityEvidence, Evidence
from castpoi.reports.learned_biases import row_with_biases
from castpoi.reports.metric_table import shown_in
from castpoi.reports.outline import PAPERS_METHOD, is_of_other_settings

_NAMED = 6


def what_is_missing(evidence: Evidence, *, has_figures: bool) -> list[str]:
    """One sentence a gap; empty where the report is whole."""
    gaps = [] if has_figures else ["No figures: they need matplotlib (castpoi[report])."]
    failed = [name for name, why in evidence.unfinished.items() if why.startswith("failed")]
    outdated = [name for name, why in evidence.unfinished.items() if why == OUTDATED]
    waiting = [name for name in evidence.unfinished if name not in (*failed, *outdated)]
    if failed:
        gaps.append(f"Failed, so without a result: {_named(failed)}.")
    if outdated:
        gaps.append(
            f"Made before their row was changed, so left out: {_named(outdated)}. 'castpoi "
            "reproduce' makes them anew."
        )
    if waiting:
        gaps.append(f"Not finished: {_named(waiting)}. 'castpoi reproduce' goes on with them.")
    for city in evidence.cities:
        gaps += [f"{city.name}: {gap}" for gap in _gaps(evidence, city)]
    return gaps


def _gaps(evidence: Evidence, city: CityEvidence) -> Iterator[str]:
    for table in evidence.tables:
        if city not in shown_in(table, evidence) or is_of_other_settings(table):
            continue  # nobody meant to have it here
        absent = [row.label for row in table.rows if row.name not in city.contenders]
        if absent:
            yield f"no result of {_named(absent)} in the table '{table.title}'."
    present = [row for row in evidence.rows if row.name in city.contenders]
    rows = [row for row in present if row.role != ORACLE]
    yield from _seed_gaps(city, rows)
    ours = evidence.ours(city)
    if city.known_time:
        yield "it stands apart, so nothing is tested: its methods were told when each target was."
    elif ours is None:
        yield "no result of our method, so there is nothing to test."
    elif not any(row.role in RIVALS for row in rows):
        yield "no other method, so no improvement and no stars in the main table."
    yield from _training_gaps(evidence, city)


def _seed_gaps(city: CityEvidence, rows: Sequence[Row]) -> Iterator[str]:
    """Rows that have fewer seeds than others of the city, or one only."""
    by_number: dict[int, list[str]] = {}
    for row in (each for each in rows if each.is_learned):
        by_number.setdefault(len(city.of(row.name)), []).append(row.label)
    most = max(by_number, default=1)
    for number in sorted(by_number):
        labels = _named(by_number[number])
        if number == 1:
            yield f"one seed only of {labels}, so no deviation over seeds."
        elif number < most:
            yield f"{number} seeds only of {labels}, where others have {most}."


def _training_gaps(evidence: Evidence, city: CityEvidence) -> Iterator[str]:
    """What the figures of training lack; variants have no curve, with a log or without."""
    rows = evidence.rows_of(city)
    silent = [
        row.label
        for row in rows
        if row.is_learned and not any(finding.events for finding in city.of(row.name))
    ]
    if silent:
        yield f"no log of the training of {_named(silent)}, so no curve of it."
    has_reader = any(row.method == PAPERS_METHOD and row.role == OURS for row in rows)
    if has_reader and row_with_biases(evidence, city) is None:
        yield "the learned biases are not at hand; evaluate a run whose weights are there."


def _named(names: Sequence[str]) -> str:
    shown = "; ".join(names[:_NAMED])  # a name may hold a comma
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
