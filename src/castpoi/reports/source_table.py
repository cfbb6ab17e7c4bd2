"""The table of sources: every result a number of the report comes from, and how it was made."""

import os
from pathlib import Path
from urllib.parse import quote

from castpoi.core.quantities import duration_words
from castpoi.reports.evidence import Evidence
from castpoi.reports.finding import Finding
from castpoi.reports.table import NOTHING, Cell, Group, Table, word

_COLUMNS = ("Result", "Row", "Seed", "Training", "Ranking", "castpoi", "Commit")


def source_table(evidence: Evidence, out: Path) -> Table:
    """One line a result; links lead there from the report in `out`."""
    return Table(
        name="sources",
        title="Where every number comes from",
        caption="Training and ranking: wall time. A plus behind a commit: files had been changed.",
        columns=_COLUMNS,
        groups=[
            Group(
                heading=city.name,
                rows=[_line(finding, evidence.folder, out) for finding in city.findings],
            )
            for city in evidence.cities
        ],
        words=2,
    )


def way_to(folder: Path, out: Path) -> str:
    """The relative way from the report to a folder, with slashes."""
    return Path(os.path.relpath(folder.resolve(), out.resolve())).as_posix()


def _line(finding: Finding, root: Path, out: Path) -> list[Cell]:
    manifest = finding.result.manifest
    commit = str(manifest.get("commit") or "–")
    dirty = "+" if commit.endswith("-dirty") else ""
    name = finding.folder.name if finding.folder == root else way_to(finding.folder, root)
    return [
        Cell(text=name, link=quote(f"{way_to(finding.folder, out)}/manifest.json")),
        word(finding.row.label),
        Cell(text=str(finding.seed), value=finding.seed),
        _seconds(finding.training_seconds),
        _seconds(finding.result.seconds),
        word(str(manifest.get("versions", {}).get("castpoi", "–"))),
        word(commit[:8] + dirty, note=commit),
    ]


def _seconds(seconds: float | None) -> Cell:
    if seconds is None:
        return NOTHING
    words = f"{seconds:.1f} s" if seconds < 60 else duration_words(seconds)
    return Cell(text=words, value=seconds)
