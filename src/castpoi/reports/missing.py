"""What a report could not show, and what to do about it: gaps are said, never filled."""

from collections.abc import Iterator, Sequence

from castpoi.outline import OURS, RIVALS, Row
from castpoi.reports.beyond_table import results_with_top
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.learned_biases import row_with_biases
from castpoi.reports.outline import PAPERS_METHOD

_NAMED = 6


def what_is_missing(evidence: Evidence, *, has_figures: bool) -> list[str]:
    """One sentence a gap; empty where the report is whole."""
    gaps = [] if has_figures else ["No figures: they need matplotlib (castpoi[report])."]
    failed = [name for name, why in evidence.unfinished.items() if why.startswith("failed")]
    waiting = [name for name in evidence.unfinished if name not in failed]
    if failed:
        gaps.append(f"Failed, so without a result: {_named(failed)}.")
    if waiting:
        gaps.append(f"Not finished: {_named(waiting)}. 'castpoi reproduce' goes on with them.")
    for city in evidence.cities:
        gaps += [f"{city.name}: {gap}" for gap in _gaps(evidence, city)]
    return gaps


def _gaps(evidence: Evidence, city: CityEvidence) -> Iterator[str]:
    for table in evidence.tables:
        absent = [row.label for row in table.rows if row.name not in city.contenders]
        if absent and len(absent) < len(table.rows):
            yield f"no result of {_named(absent)} in the table '{table.title}'."
    rows = [row for row in evidence.rows if row.name in city.contenders]
    single = [row.label for row in rows if row.is_learned and len(city.of(row.name)) == 1]
    if single:
        yield f"one seed only of {_named(single)}, so no deviation over seeds."
    ours = evidence.ours(city)
    if city.known_time:
        yield "it stands apart, so nothing is tested: its methods were told when each target was."
    elif ours is None:
        yield "no result of our method, so there is nothing to test."
    elif not any(row.role in RIVALS for row in rows):
        yield "no other method, so no improvement and no stars in the main table."
    without = [row.label for row in rows if not results_with_top(city, row)]
    if without:
        yield (
            f"no top.parquet of {_named(without)} (an older castpoi wrote them), so nothing beyond "
            "accuracy; evaluate again."
        )
    if city.places is None:
        yield "nobody says how many places it has, so no pool sizes; evaluate again."
    if not city.manifest:
        yield "the city is not at hand, so its users and check-ins are not counted."
    yield from _training_gaps(evidence, city, rows)


def _training_gaps(evidence: Evidence, city: CityEvidence, rows: Sequence[Row]) -> Iterator[str]:
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
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
