"""Results in one table: metrics of each method, and tests against one of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

import polars as pl

from castpoi.core.errors import BadInput, did_you_mean
from castpoi.core.files import find_folders
from castpoi.core.notebook import html_table
from castpoi.evaluation.compare import ComparedMethod, Contender
from castpoi.evaluation.compare import Comparison as Rows
from castpoi.evaluation.compare import compare as compare_rows
from castpoi.evaluation.metrics import METRICS, STRATA
from castpoi.evaluation.result import Result
from castpoi.evaluation.significance import Verdict, judge, paired_test
from castpoi.library.evaluate import NO_SEEDS
from castpoi.methods.registry import METHODS
from castpoi.reports.table import (
    NOTHING,
    Cell,
    Group,
    Table,
    comma_separated,
    latex,
    markdown,
    spread_cell,
)

TESTED: Final = ("HR@10", "MRR")
"""Metrics that are tested; each test is one of a family of methods times metrics."""
STARS: Final = (
    "stars: p < 0.05, 0.01, 0.001 by the most careful of three tests, corrected by Holm's method; "
    "a trained method with one seed has none."
)
SHOWN: Final = ("HR@1", "HR@10", "NDCG@10", "MRR")  # metrics of a narrow table
_BOOTSTRAP_SEED: Final = 42


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods in one table, best first, with the tests against one of them."""

    rows: Rows
    against: str | None = None
    """The method that all others were tested against."""
    verdicts: tuple[Verdict, ...] = ()
    """The tests, corrected together by Holm's method."""

    @property
    def frame(self) -> pl.DataFrame:
        """One row per method: means and deviations of all metrics as fractions, and the tests.

        `MRR_difference` is the lead over `against`, between `MRR_low` and `MRR_high` (95 %);
        `MRR_p` is the corrected p-value of the most careful of three tests, None if a trained side
        has one seed; `MRR_wilcoxon_p` and `MRR_bootstrap_p` need no second seed.
        """
        return pl.DataFrame([self._record(row) for row in self.rows.rows])

    @property
    def table(self) -> Table:
        """The table as reports show it, in percent."""
        headers = [f"{metric} − {self.against}" for metric in TESTED if self.against]
        known = " Methods receive the time of each target." if self.rows.known_time else ""
        tested = f" Differences from {self.against} with 95 % intervals; {STARS}"
        return Table(
            name="comparison",
            title="Comparison",
            caption=f"{self.rows.n:,} {self.rows.part} targets, in percent, best in bold."
            + known
            + (tested if self.against else ""),
            columns=["Method", *SHOWN, *(f"HR@10 {stratum}" for stratum in STRATA), *headers],
            groups=[Group(rows=[self._cells(row) for row in self.rows.rows])],
        )

    def to_latex(self, path: str | PathLike[str] | None = None) -> str:
        """The table in LaTeX (booktabs), also written to a file if one is given."""
        return _written(latex(self.table), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """The table in Markdown, also written to a file if one is given."""
        return _written(markdown(self.table), path)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The table with all digits, also written to a file if one is given."""
        return _written(comma_separated(self.table), path)

    def __repr__(self) -> str:
        best = self.rows.rows[0]
        mrr = 100 * (best.metrics["MRR"].mean or 0.0)
        return (
            f"Comparison of {len(self.rows.rows)} methods on {self.rows.n:,} {self.rows.part} "
            f"targets, best {best.method} (MRR {mrr:.2f} %)"
        )

    def _repr_html_(self) -> str:
        table = self.table
        rows = [[cell.full + cell.stars for cell in each] for each in table.groups[0].rows]
        return html_table(table.columns, rows, caption=table.caption)

    def _record(self, row: ComparedMethod) -> dict[str, object]:
        record: dict[str, object] = {"method": row.method, "seeds": len(row.seeds)}
        for metric in METRICS:
            record |= {metric: row.metrics[metric].mean, f"{metric}_std": row.metrics[metric].std}
            record |= {f"{metric}_{each}": row.strata[each][metric].mean for each in STRATA}
        for metric in TESTED if self.against else ():
            verdict = self._verdict(row.method, metric)
            drawn = verdict and verdict.test.most_careful
            low, high = drawn.interval() if drawn else (None, None)
            record |= {
                f"{metric}_difference": drawn and drawn.mean,
                f"{metric}_low": low,
                f"{metric}_high": high,
                f"{metric}_p": verdict and verdict.p,
                f"{metric}_wilcoxon_p": verdict and verdict.wilcoxon_p,
                f"{metric}_bootstrap_p": verdict and verdict.users_p,
            }
        return record

    def _cells(self, row: ComparedMethod) -> list[Cell]:
        tested = [_difference(self._verdict(row.method, each)) for each in TESTED if self.against]
        return [Cell(METHODS.label_of(row.method)), *metric_cells(self.rows, row), *tested]

    def _verdict(self, method: str, metric: str) -> Verdict | None:
        for each in self.verdicts:
            if (each.test.contender, each.test.metric) == (method, metric):
                return each
        return None


def compare(
    results: Iterable[Result | str | PathLike[str]] | Result | str | PathLike[str],
    *,
    against: str | None = None,
    sort_by: str = "MRR",
) -> Comparison:
    """Compare results of one city and split, on the same targets.

    `results` are results, their folders, or folders that contain results. Several seeds of one
    method become one row. With `against`, every other method is tested against that method in
    HR@10 and MRR.
    """
    loaded: list[Result] = []
    for each in [results] if isinstance(results, Result | str | PathLike) else results:
        if isinstance(each, Result):
            loaded.append(each)
        else:
            loaded += [Result.load(folder) for folder in find_folders([Path(each)], "result")]
    rows = compare_rows(loaded, sort_by=sort_by)
    if against is None:
        return Comparison(rows=rows)
    return Comparison(rows=rows, against=against, verdicts=_tested(loaded, rows, against))


def _tested(results: Sequence[Result], rows: Rows, against: str) -> tuple[Verdict, ...]:
    names = [row.method for row in rows.rows]
    if against not in names:
        raise BadInput(
            f"there is no result of {against!r} to test against; "
            f"{did_you_mean(against, names)}the methods are {', '.join(names)}"
        )
    contenders = {name: _contender(name, results) for name in names}
    tests = [
        paired_test(contenders[name], contenders[against], metric, seed=_BOOTSTRAP_SEED)
        for name in names
        for metric in TESTED
        if name != against
    ]
    return tuple(judge(tests, family=f"all methods against {against}"))


def _contender(name: str, results: Sequence[Result]) -> Contender:
    own = tuple(each for each in results if each.method == name)
    is_ours = name in METHODS.names and not METHODS.named(name).has_seeds
    return Contender(
        name, own, is_counted=is_ours or all(each.manifest.get(NO_SEEDS) for each in own)
    )


def metric_cells(rows: Rows, row: ComparedMethod, metrics: Sequence[str] = SHOWN) -> list[Cell]:
    """The metrics of a row, and HR@10 of each stratum, in percent."""
    shown = [(row.metrics[metric], rows.best(metric)) for metric in metrics]
    shown += [(row.strata[each]["HR@10"], rows.best("HR@10", each)) for each in STRATA]
    return [spread_cell(spread, is_best=row.method in best) for spread, best in shown]


def _difference(verdict: Verdict | None) -> Cell:
    if verdict is None:
        return NOTHING
    drawn = verdict.test.most_careful
    mean, low, high = (100 * each for each in (drawn.mean, *drawn.interval()))
    p = {} if verdict.p is None else {"p": verdict.p}
    return Cell(
        text=f"{mean:+.2f} ({low:+.2f} to {high:+.2f})",
        value=mean,
        parts={"low": low, "high": high, **p},
        stars=verdict.stars,
    )


def _written(text: str, path: str | PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
