"""A report before it is written: all tables and figures that a folder of results allows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from castpoi.core.progress import SILENCE, Progress
from castpoi.evaluation.significance import DRAWS
from castpoi.reports.beyond_table import beyond_table
from castpoi.reports.city_table import city_table
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.method_table import method_table
from castpoi.reports.metric_table import metric_table
from castpoi.reports.missing import what_is_missing
from castpoi.reports.paper_table import paper_table
from castpoi.reports.pool_table import pool_of, pool_table
from castpoi.reports.significance_table import significance_table
from castpoi.reports.source_table import source_table
from castpoi.reports.strata_table import strata_of, strata_table
from castpoi.reports.table import Table
from castpoi.reports.verdicts import Verdicts, judge_all

if TYPE_CHECKING:
    from castpoi.reports.picture import Picture


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """What a report has to say about one city."""

    city: CityEvidence
    strata: Table
    pool: Table | None
    beyond: Table | None
    pictures: Mapping[str, "Picture"] = field(default_factory=dict)
    """By kind: the name of an ablation, pool, strata, learning, biases, reliability."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Tables and figures of a folder of results, before they are written."""

    evidence: Evidence
    out: Path
    verdicts: Verdicts
    metric_tables: tuple[Table, ...]
    """One for each outline of the evidence, in its order."""
    paper: Table | None
    """How far ours are from the paper's values; None where no city is the paper's."""
    cities: Table
    methods: Table
    significance: Table | None
    sources: Table
    chapters: tuple[Chapter, ...]
    missing: tuple[str, ...]

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        by_city = [(each.strata, each.pool, each.beyond) for each in self.chapters]
        some = [self.paper, self.significance, *(table for tables in by_city for table in tables)]
        found = [table for table in some if table is not None]
        return [*self.metric_tables, self.cities, self.methods, *found, self.sources]

    @property
    def pictures(self) -> list["Picture"]:
        """All figures."""
        return [picture for each in self.chapters for picture in each.pictures.values()]


def make_report(
    evidence: Evidence, out: Path, *, draws: int = DRAWS, progress: Progress = SILENCE
) -> Report:
    """All tables and figures that the evidence allows; `out` is where links start."""
    verdicts = judge_all(evidence, draws=draws, progress=progress)
    with progress.task("analyses", total=len(evidence.cities)) as task:
        chapters = []
        for city in evidence.cities:
            chapters.append(_chapter(evidence, city))
            task.advance()
    return Report(
        evidence=evidence,
        out=out,
        verdicts=verdicts,
        metric_tables=tuple(metric_table(each, evidence, verdicts) for each in evidence.tables),
        paper=paper_table(evidence, verdicts),
        cities=city_table(evidence),
        methods=method_table(evidence),
        significance=significance_table(evidence, verdicts),
        sources=source_table(evidence, out),
        chapters=tuple(chapters),
        missing=tuple(what_is_missing(evidence, has_figures=_can_draw())),
    )


def _chapter(evidence: Evidence, city: CityEvidence) -> Chapter:
    strata, curve = strata_of(evidence, city), pool_of(evidence, city)
    pictures: dict[str, Picture] = {}
    if _can_draw():
        from castpoi.reports.pictures import draw_all

        pictures = draw_all(evidence, city, strata, curve)
    return Chapter(
        city=city,
        strata=strata_table(evidence, city, strata),
        pool=pool_table(evidence, city, curve),
        beyond=beyond_table(evidence, city),
        pictures=pictures,
    )


def _can_draw() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True
