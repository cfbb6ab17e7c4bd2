"""Write the tables of results into README.md and docs/, from the results in this repository.

    python tools/result_tables.py          # or: make tables

Only the text between the marks `<!-- results: NAME -->` and `<!-- end -->` is replaced. A test
checks that the tables of all pages are up to date.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Final

from castpoi.evaluation.compare import Contender
from castpoi.evaluation.metrics import Spread
from castpoi.evaluation.result import Result
from castpoi.evaluation.significance import PairedTest, Verdict, judge, paired_test
from castpoi.experiments.suite import read_suite
from castpoi.methods.outline import ABLATION, Row, TableOutline
from castpoi.methods.registry import METHODS
from castpoi.reports.analyses import order_table, pairs
from castpoi.reports.costs import cost_table
from castpoi.reports.evidence import CityEvidence, Evidence, RowResult, read_evidence
from castpoi.reports.notes import p_value
from castpoi.reports.outlines import PAPERS_METHOD, PAPERS_VARIANTS
from castpoi.reports.reference import paper_city, paper_value

ROOT: Final = Path(__file__).resolve().parents[1]
_FIRST: Final = "nyc"
_ONE_SEED_CITY: Final = "gowalla-nyc"
_CALIFORNIA: Final = "gowalla-ca"
_PAPERS_CALIFORNIA: Final = paper_city("ca", targets=3956)
_CALIFORNIA_METRICS: Final = ("MRR", "HR@10")
_SEVEN: Final = ("core", "sasrec", "narm", "bert4rec", "caser", "srgnn", "stamp")
_STRONGER: Final = ("esasrec", "hstu", "target-attention")
"""References beyond the paper."""
_UNTUNED: Final = "target-attention"  # it has CaST-POI's preset instead of a search
_METRICS: Final = ("HR@1", "HR@5", "HR@10", "NDCG@10", "MRR")
_HEADLINE: Final = ("HR@10", "MRR")
"""Metrics that are shown with their deviation and the paper's value."""
_OTHER_CITIES_ROWS: Final = {
    "revisit": "revisit",
    "sasrec": "sasrec",
    "no-candidate-conditioning": "castpoi without its reader",
    "castpoi": "castpoi",
    "castpoi-next": "castpoi-next",
}
"""Rows of the table of other cities, and their headers."""


def first_table(evidence: Evidence) -> str:
    """All methods on New York, the best by MRR first, with the paper's values."""
    city = next(each for each in evidence.cities if each.name == _FIRST)
    rows = [row for row in evidence.rows if row.name in city.contenders and row.role != ABLATION]
    rows = [row for row in rows if row.method in METHODS.names]  # without the oracle's
    rows.sort(key=lambda row: -fmean(_values(city, row.name, "MRR")))
    heads = ["method", "seeds", *_METRICS, "new HR@10", *(f"paper's {each}" for each in _HEADLINE)]
    lines = [
        [
            row.name.replace("-preset=", ", "),
            ", ".join(_linked(each) for each in city.of(row.name)),
            *(_cell(_values(city, row.name, each), each in _HEADLINE) for each in _METRICS),
            _cell(_values(city, row.name, "HR@10", of_new=True)),
            *(_of_paper(evidence.tables[0], city, row, each) for each in _HEADLINE),
        ]
        for row in rows
    ]
    return _piped([heads, ["---"] * len(heads), *lines])


def _linked(each: RowResult) -> str:
    """The seed of a result, as a link to its folder from a page of docs/."""
    path = each.folder.relative_to(ROOT).as_posix()
    return f"[{each.seed if each.row.has_seeds else '–'}](../{path})"


README_ROWS: Final = {
    "castpoi-next": "**castpoi-next**, our model (default)",
    "castpoi-trees": "**castpoi-trees**, the sum of our model and boosted trees",
    "boosted": "boosted trees on counted features (LightGBM)",
    "castpoi": "castpoi, the paper's model trained here",
    "ppm": "PPM: counted Markov chains, a second of training",
    "stamp-tuned": "STAMP, tuned: the best tuned sequence model",
    "core": "CORE: the best sequence model with RecBole's settings",
    "revisit": "revisit: own visits times popularity, no training",
}
"""The rows of the suite `readme`, as the README names them; the paper's values are added."""


def headline_table(evidence: Evidence) -> str:
    """The rows of the README by MRR: our models, the best baselines, the paper, a heuristic."""
    city = next(city for city in evidence.cities if city.name == _FIRST)
    metrics = ("HR@1", "HR@10", "MRR")
    lines = [
        (label, [fmean(_values(city, name, metric)) for metric in metrics])
        for name, label in README_ROWS.items()
    ]
    theirs = [
        paper_value(evidence.tables[0], paper_city(city.name, city.targets), PAPERS_METHOD, metric)
        for metric in metrics
    ]
    cells = [[label, *(f"{value:.2f}" for value in values)] for label, values in lines]
    published = ["–" if value is None else f"{value.mean:.2f}" for value in theirs]
    cells.append(["castpoi, as published in the paper", *published])
    cells.sort(key=lambda line: -float(line[-1]))
    return _piped([["method", *metrics], ["---"] * 4, *cells])


def peers_table(evidence: Evidence) -> str:
    """HR@10 / MRR of castpoi-next and the peers on each city; the number of seeds in brackets."""
    names = ("castpoi-next", "castpoi-trees", "boosted", "ppm", "tifu-knn", "ease")
    lines = [
        [city.name, *(f"{_slashed(_means(city, name))} ({len(city.of(name))})" for name in names)]
        for city in evidence.splits
        if all(name in city.contenders for name in names)
    ]
    return _piped([["city", *(f"`{name}`" for name in names)], ["---"] * (1 + len(names)), *lines])


def other_table(evidence: Evidence) -> str:
    """MRR, HR@10 and HR@10 of new places on the other cities; number of seeds in brackets."""
    cities = [each for each in evidence.splits if each.name != _FIRST and not each.is_by_time]
    names = [name for name in _OTHER_CITIES_ROWS if any(name in city.contenders for city in cities)]
    heads = ["city", *(_OTHER_CITIES_ROWS[name] for name in names)]
    lines = []
    for city in cities:
        means = {
            name: fmean(_values(city, name, "MRR")) for name in names if name in city.contenders
        }
        best = max(means, key=lambda name: means[name])
        lines.append([city.name, *(_triple(city, name, is_best=name == best) for name in names)])
    return _piped([heads, ["---"] * len(heads), *lines])


def time_table(evidence: Evidence) -> str:
    """MRR, HR@10 and HR@10 of new places by a global time split, the best on New York first."""
    cities = sorted((each for each in evidence.cities if each.is_by_time), key=_is_not_first)
    rows = [row for row in evidence.rows if any(city.has(row) for city in cities)]
    rows.sort(key=lambda row: -max(_values(cities[0], row.name, "MRR"), default=0.0))
    lines = [
        [row.name, *(_triple(city, row.name, is_best=False) for city in cities)] for row in rows
    ]
    return _piped([["method", *(c.town for c in cities)], ["---"] * (1 + len(cities)), *lines])


def order_lines(evidence: Evidence) -> str:
    """Kendall's tau of the order of methods by time and by leave one out, for each city."""
    tables = [(city, order_table(evidence, city, other)) for city, other in pairs(evidence)]
    return "".join(f"- {city.town}: {table.footnotes[0]}\n" for city, table in tables if table)


def costs_table(evidence: Evidence) -> str:
    """What each method costs on New York, the fastest training first."""
    city = next(each for each in evidence.cities if each.name == _FIRST)
    table = cost_table(evidence, city)
    rows = [] if table is None else [[cell.text for cell in row] for row in table.groups[0]]
    heads = [] if table is None else list(table.columns)
    return _piped([heads, ["---"] * len(heads), *rows])


def future_table(evidence: Evidence) -> str:
    """Change of methods that learn from nothing after a target, by city."""
    heads = ["city", "method", "MRR", "without the future", "change", "HR@10", "new HR@10"]
    lines = []
    for path in sorted((ROOT / "results" / "future").glob("*.json"), key=lambda each: each.stem):
        for name, found in json.loads(path.read_text(encoding="utf-8"))["methods"].items():
            mrr = found["every"]["MRR"]
            error = 100 * mrr["standard_error"]
            lines.append(
                [
                    path.stem,
                    f"`{name}`",
                    *(f"{100 * mrr[each]:.2f}" for each in ("all", "without_future")),
                    f"{100 * mrr['change']:+.2f} ± {error:.2f}",
                    *(f"{100 * found[part]['HR@10']['change']:+.1f}" for part in ("every", "new")),
                ]
            )
    return _piped([heads, ["---"] * len(heads), *lines])


def _is_not_first(city: CityEvidence) -> bool:
    return city.town != _FIRST


def baselines_table(evidence: Evidence) -> str:
    """The seven baselines of the paper on New York, preset `paper`, next to the paper's values."""
    city = next(each for each in evidence.cities if each.name == _FIRST)
    heads = ["method", "seeds", "ours", "by seed", "paper", "difference"]
    lines = []
    for name in (each for each in _SEVEN if each in city.contenders):
        row = next(row for row in evidence.rows if row.name == name)
        by_metric = [_values(city, name, metric) for metric in _HEADLINE]
        published = [_of_paper(evidence.tables[0], city, row, metric) for metric in _HEADLINE]
        means = _means(city, name)
        gaps = [mean - float(theirs) for mean, theirs in zip(means, published, strict=True)]
        lines.append(
            [
                f"`{name}`",
                _seeds(city, name),
                _slashed(means),
                ", ".join(f"{hits:.2f} / {mrr:.2f}" for hits, mrr in zip(*by_metric, strict=True)),
                " / ".join(published),
                _signed(gaps),
            ]
        )
    return _piped([heads, ["---"] * len(heads), *lines])


def tuned_table(evidence: Evidence) -> str:
    """The settings that the search found for each baseline, and their gain on New York."""
    city = next(each for each in evidence.cities if each.name == _FIRST)
    heads = ["method", "found", "trials: validation MRR", "seeds", "`tuned`", "`paper`", "gain"]
    lines = []
    for name in (*_SEVEN, *_STRONGER):
        tuned = name if name == _UNTUNED else f"{name}-tuned"
        if tuned not in city.contenders:
            continue
        found, reached = _search(name)
        means = [_means(city, row) for row in (tuned, name) if row in city.contenders]
        both = means if tuned != name and len(means) == 2 else []
        gains = [one - other for one, other in zip(*both, strict=True)] if both else []
        lines.append(
            [
                f"`{name}`",
                found,
                reached,
                _seeds(city, tuned),
                _slashed(means[0]),
                _slashed(both[1]) if both else "–",
                _signed(gains) or "–",
            ]
        )
    return _piped([heads, ["---"] * len(heads), *lines])


def _search(name: str) -> tuple[str, str]:
    """The settings of the best trial, and the range of all values; dashes without a search."""
    path = ROOT / "results" / "tune" / _FIRST / name / "tune.json"
    if not path.is_file():
        return "–", "–"
    trials = json.loads(path.read_text(encoding="utf-8"))["trials"]  # best first
    values = [100 * trial["validation"]["MRR"] for trial in trials if trial["state"] == "done"]
    settings = ", ".join(f"{key} {value}" for key, value in trials[0]["settings"].items())
    return settings.replace("_", " "), f"{min(values):.2f} to {max(values):.2f}"


def _means(city: CityEvidence, name: str) -> list[float]:
    return [fmean(_values(city, name, metric)) for metric in _HEADLINE]


def _signed(gains: list[float]) -> str:
    return " / ".join(f"{round(gain, 1) + 0.0:+.1f}" for gain in gains)


def _slashed(values: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def differences_table(evidence: Evidence) -> str:
    """The fast preset compared with itself without one of its differences from the paper."""
    city = next(each for each in evidence.cities if each.name == _ONE_SEED_CITY)
    (suite,) = read_suite("differences").tables
    labels = {row.name: row.label for row in suite.rows}
    results = {each.folder.name.rpartition("-")[0]: each.result for each in city.results}
    heads = ["undone", "MRR", "gain in MRR (95 % interval)", "HR@10", "gain in HR@10"]
    lines = []
    for family in (each for each in suite.families if each.row in results):
        left = [name for name in family.against if name in results]
        verdicts = _verdicts(results, family.row, left)
        for name, (mrr, hits) in zip(left, verdicts, strict=True):
            low, high = (100 * end for end in mrr.test.users.interval())
            lines.append(
                [
                    labels[name],
                    f"{100 * mrr.test.against_mean:.2f}",
                    f"{_worth(mrr)} ({low:+.1f} to {high:+.1f})",
                    f"{100 * hits.test.against_mean:.2f}",
                    _worth(hits),
                ]
            )
    return _piped([heads, ["---"] * len(heads), *lines])


def settings_table(evidence: Evidence) -> str:
    """Baselines on New York with one setting changed, next to the same seeds of the baseline."""
    city = next(each for each in evidence.cities if each.name == _FIRST)
    changed = [
        row
        for row in evidence.rows
        if row.role == ABLATION and row.method in _SEVEN and row.name in city.contenders
    ]
    heads = ["change", "seeds", "with", "without", "difference", "p (MRR), Wilcoxon and bootstrap"]
    lines = []
    for row in changed:
        own = {each.seed: each.result for each in city.of(row.name)}
        plain = {each.seed: each.result for each in city.of(row.method)}
        seeds = sorted(own.keys() & plain.keys())
        sides = [[one[seed] for seed in seeds] for one in (own, plain)]
        changed_means, plain_means = (
            [_mean(results, each) for each in _HEADLINE] for results in sides
        )
        ours, theirs = (
            Contender(name, tuple(results))
            for name, results in zip((row.name, row.method), sides, strict=True)
        )
        test = paired_test(ours, theirs, "MRR", seed=42)
        gains = [one - other for one, other in zip(changed_means, plain_means, strict=True)]
        lines.append(
            [
                row.label,
                ", ".join(map(str, seeds)),
                _slashed(changed_means),
                _slashed(plain_means),
                _signed(gains),
                f"{p_value(test.wilcoxon.p)}, {p_value(test.users.p)}",
            ]
        )
    return _piped([heads, ["---"] * len(heads), *lines])


def california_table(evidence: Evidence) -> str:
    """The paper's methods on our California and on the paper's, ordered by our MRR."""
    city = next(each for each in evidence.cities if each.name == _CALIFORNIA)
    published = {
        row.name: theirs
        for row in evidence.tables[0].rows
        if row.name in city.contenders
        and (theirs := _of_papers_california(evidence.tables[0], row.name))
    }
    heads = ["method", "seeds", f"`{_CALIFORNIA}`", "the paper's CA"]
    lines = [
        [
            f"`{name}`",
            _seeds(city, name),
            _slashed([fmean(_values(city, name, metric)) for metric in _CALIFORNIA_METRICS]),
            _slashed(published[name]),
        ]
        for name in sorted(published, key=lambda name: -fmean(_values(city, name, "MRR")))
    ]
    return _piped([heads, ["---"] * len(heads), *lines])


def california_parts_table(evidence: Evidence) -> str:
    """Loss of each of the paper's variants on our California and on the paper's."""
    city = next(each for each in evidence.cities if each.name == _CALIFORNIA)
    table = next(each for each in evidence.tables if each.name == f"ablation-{PAPERS_METHOD}")
    full = _of_papers_california(table, PAPERS_METHOD)
    heads = ["without", "seeds", f"`{_CALIFORNIA}`", "the paper's CA"]
    lines = []
    for name in (each for each in PAPERS_VARIANTS if each in city.contenders):
        ours = [city.change(PAPERS_METHOD, name, each) for each in _CALIFORNIA_METRICS]
        without = _of_papers_california(table, name)
        theirs = [one - other for one, other in zip(without, full, strict=True)]
        part = name.removeprefix("no-").replace("-", " ")
        seeds = _seeds(city, name)
        lines.append([part, seeds, _signed([100 * each for each in ours]), _signed(theirs)])
    return _piped([heads, ["---"] * len(heads), *lines])


def _of_papers_california(table: TableOutline, row: str) -> list[float]:
    """MRR and HR@10 that the paper reports for a row on its California; empty if not reported."""
    values = [paper_value(table, _PAPERS_CALIFORNIA, row, each) for each in _CALIFORNIA_METRICS]
    return [value.mean for value in values if value is not None]


def _seeds(city: CityEvidence, row: str) -> str:
    seeds = [str(each.seed) for each in city.of(row) if each.row.has_seeds]
    return ", ".join(seeds) or "–"


def _mean(results: list[Result], metric: str) -> float:
    return 100 * fmean(_metric(result, metric) for result in results)


def _verdicts(
    results: Mapping[str, Result], row: str, others: list[str]
) -> list[tuple[Verdict, Verdict]]:
    """Verdicts of a row against others: (MRR, HR@10), corrected per metric."""
    ours = Contender(row, (results[row],))

    def test(name: str, metric: str) -> PairedTest:
        return paired_test(ours, Contender(name, (results[name],)), metric, seed=42)

    by_metric = [
        judge([test(name, metric) for name in others], family=metric) for metric in ("MRR", "HR@10")
    ]
    return list(zip(*by_metric, strict=True))


def _worth(verdict: Verdict) -> str:
    """A difference in points, with stars."""
    gain = 100 * (verdict.test.mean - verdict.test.against_mean)
    return f"{gain:+.2f}{verdict.stars}".replace("*", r"\*")


PAGES: Final[dict[str, Mapping[str, Callable[[Evidence], str]]]] = {
    "README.md": {"headline": headline_table},
    "docs/results.md": {
        "nyc": first_table,
        "other cities": other_table,
        "time": time_table,
        "order": order_lines,
        "future": future_table,
        "costs": costs_table,
    },
    "docs/baselines.md": {
        "baselines": baselines_table,
        "tuned": tuned_table,
        "settings": settings_table,
        "peers": peers_table,
    },
    "docs/paper.md": {"california": california_table, "california parts": california_parts_table},
    "docs/decisions/0007-the-fast-preset.md": {"differences": differences_table},
}
"""The tables of each page."""


def with_tables(page: str, evidence: Evidence) -> str:
    """The text of a page with regenerated tables."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, table in PAGES[page].items():
        marks = rf"(?<=<!-- results: {name} -->\n)(?:(?!<!-- end -->).)*(?=<!-- end -->)"
        places = list(re.finditer(marks, text, re.DOTALL))
        if len(places) != 1:
            raise SystemExit(f"{page} has {len(places)} places for the table '{name}', not one")
        text = text[: places[0].start()] + table(evidence) + text[places[0].end() :]
    return text


def _triple(city: CityEvidence, name: str, *, is_best: bool) -> str:
    if name not in city.contenders:
        return "–"
    mrr, hits = (_cell(_values(city, name, metric)) for metric in ("MRR", "HR@10"))
    new = fmean(_values(city, name, "HR@10", of_new=True))
    words = f"{mrr} / {hits} / {new:.1f}"
    words = f"**{words}**" if is_best else words
    found = city.of(name)
    return f"{words} ({len(found)})" if found[0].row.has_seeds else words


def _of_paper(main: TableOutline, city: CityEvidence, row: Row, metric: str) -> str:
    value = paper_value(main, paper_city(city.name, city.targets), row.name, metric)
    return "–" if value is None else f"{value.mean:.2f}"


def _values(city: CityEvidence, row: str, metric: str, *, of_new: bool = False) -> list[float]:
    """A metric in percent, one value per seed."""
    return [100 * _metric(each.result, metric, of_new=of_new) for each in city.of(row)]


def _metric(result: Result, metric: str, *, of_new: bool = False) -> float:
    metrics = result.strata["new"] if of_new else result.metrics
    return metrics[metric] or 0.0


def _cell(values: list[float], has_deviation: bool = False) -> str:
    spread = Spread.of(values)
    mean = f"{spread.mean:.2f}"
    return mean if spread.std is None or not has_deviation else f"{mean} ± {spread.std:.2f}"


def _piped(lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Regenerate the tables of all pages."""
    evidence = read_evidence(ROOT / "results")
    for page in PAGES:
        (ROOT / page).write_text(with_tables(page, evidence), encoding="utf-8")


if __name__ == "__main__":
    main()
