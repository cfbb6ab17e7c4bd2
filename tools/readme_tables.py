"""Writes the tables of results into README.md, from the results in this repository.

    python tools/readme_tables.py          # or: make readme

A table stands between two marks, `<!-- results: NAME -->` and `<!-- end -->`; what is between them
is replaced, all else is left as it is. A test checks that the README is as this would write it.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from castpoi.evaluation.result import Result
from castpoi.outline import ABLATION, Row, TableOutline
from castpoi.reports.evidence import CityEvidence, Evidence, read_evidence
from castpoi.reports.paper_values import paper_city, paper_value

ROOT: Final = Path(__file__).resolve().parents[1]
_FIRST: Final = "nyc"
_METRICS: Final = ("HR@1", "HR@5", "HR@10", "NDCG@10", "MRR")
_HEADLINE: Final = ("HR@10", "MRR")
"""Metrics that have their deviation and the paper's value beside them."""
_ELSEWHERE: Final = {
    "revisit": "revisit",
    "sasrec": "sasrec",
    "no-candidate-conditioning": "castpoi without its reader",
    "castpoi": "castpoi",
    "castpoi-next": "castpoi-next",
}
"""Rows of the table of other cities, and what it calls them."""


def first_table(evidence: Evidence) -> str:
    """All methods on New York, the best by MRR first, with the paper's values."""
    city = next(each for each in evidence.cities if each.name == _FIRST)
    rows = [row for row in evidence.rows if row.name in city.contenders and row.role != ABLATION]
    rows.sort(key=lambda row: -fmean(_values(city, row.name, "MRR")))
    heads = ["method", "seeds", *_METRICS, "new HR@10", *(f"paper's {each}" for each in _HEADLINE)]
    lines = [
        [
            row.name.replace("-preset=", ", "),
            str(len(city.of(row.name))) if row.is_learned else "–",
            *(_cell(_values(city, row.name, each), each in _HEADLINE) for each in _METRICS),
            _cell(_values(city, row.name, "HR@10", of_new=True)),
            *(_of_paper(evidence.tables[0], city, row, each) for each in _HEADLINE),
        ]
        for row in rows
    ]
    return _piped([heads, ["---"] * len(heads), *lines])


def other_table(evidence: Evidence) -> str:
    """A few methods on the other cities: MRR, HR@10 and that of new places; seeds in brackets."""
    cities = [each for each in evidence.splits if each.name != _FIRST]
    names = [name for name in _ELSEWHERE if any(name in city.contenders for city in cities)]
    heads = ["city", *(_ELSEWHERE[name] for name in names)]
    lines = []
    for city in cities:
        means = {
            name: fmean(_values(city, name, "MRR")) for name in names if name in city.contenders
        }
        best = max(means, key=lambda name: means[name])
        lines.append([city.name, *(_triple(city, name, is_best=name == best) for name in names)])
    return _piped([heads, ["---"] * len(heads), *lines])


TABLES: Final[Mapping[str, Callable[[Evidence], str]]] = {
    "nyc": first_table,
    "other cities": other_table,
}


def with_tables(readme: str, evidence: Evidence) -> str:
    """The README with its tables written anew."""
    for name, table in TABLES.items():
        marks = rf"(?<=<!-- results: {name} -->\n).*?(?=<!-- end -->)"
        places = list(re.finditer(marks, readme, re.DOTALL))
        if len(places) != 1:
            raise SystemExit(f"README.md has {len(places)} places for the table '{name}', not one")
        readme = readme[: places[0].start()] + table(evidence) + readme[places[0].end() :]
    return readme


def _triple(city: CityEvidence, name: str, *, is_best: bool) -> str:
    if name not in city.contenders:
        return "–"
    mrr, hits = (_cell(_values(city, name, metric)) for metric in ("MRR", "HR@10"))
    new = fmean(_values(city, name, "HR@10", of_new=True))
    words = f"{mrr} / {hits} / {new:.1f}"
    words = f"**{words}**" if is_best else words
    findings = city.of(name)
    return f"{words} ({len(findings)})" if findings[0].row.is_learned else words


def _of_paper(main: TableOutline, city: CityEvidence, row: Row, metric: str) -> str:
    told = paper_value(main, paper_city(city.name, city.targets), row.name, metric)
    return "–" if told is None else f"{told.mean:.2f}"


def _values(city: CityEvidence, row: str, metric: str, *, of_new: bool = False) -> list[float]:
    """A metric in percent, one value a seed."""
    return [100 * _metric(finding.result, metric, of_new=of_new) for finding in city.of(row)]


def _metric(result: Result, metric: str, *, of_new: bool) -> float:
    metrics = result.strata["new"] if of_new else result.metrics
    return metrics[metric] or 0.0


def _cell(values: list[float], has_deviation: bool = False) -> str:
    mean = f"{fmean(values):.2f}"
    return f"{mean} ± {stdev(values):.2f}" if has_deviation and len(values) > 1 else mean


def _piped(lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Write the README anew."""
    path = ROOT / "README.md"
    written = with_tables(path.read_text(encoding="utf-8"), read_evidence(ROOT / "results"))
    path.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
