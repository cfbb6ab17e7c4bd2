"""Significance tests of a report: made where both sides have results, corrected by family."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.evaluation.significance import ALPHA
from castpoi.experiments.suite import read_suite
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.outlines import PAPERS_VARIANTS
from castpoi.reports.significance import (
    Verdicts,
    judge_all,
    p_of_pairs,
    significance_table,
)
from tests.reports.result_folders import TABLES, result_of, write_suite

ROOT = Path(__file__).parents[2]


def test_a_table_is_one_family_over_all_its_cities(tmp_path: Path) -> None:
    evidence = read_evidence(write_suite(tmp_path / "s", cities=("a", "b"), targets=30))
    verdicts = judge_all(evidence, draws=50)
    sizes = {each.family.name: each.verdict.family_size for each in verdicts.all}
    assert sizes == {"improvement": 3 * 2, "drop": 1}
    assert len(verdicts.all) == 3 * 2 + 3 * 2


def test_a_row_with_two_tests_shows_the_stars_of_the_less_significant_one(
    tmp_path: Path,
) -> None:
    (family,) = TABLES["ablation"]["families"]
    assert isinstance(family, dict)
    families = [family, {**family, "name": "other", "row": "sasrec"}]
    rows = [*TABLES["ablation"]["rows"], TABLES["main"]["rows"][0]]
    tables = {"own": {"title": "Own", "rows": rows, "families": families}}
    evidence = read_evidence(write_suite(tmp_path / "s", tables=tables))
    verdicts, (own,) = judge_all(evidence, draws=50), evidence.tables
    own = replace(own, rows=own.rows[:2])  # an ablation
    shown = verdicts.against_row(own, "oldtown", "no-spatial-bias", "MRR")
    made = [each.verdict for each in verdicts.all if each.verdict.test.metric == "MRR"]
    assert len(made) == 2
    assert shown == max(made, key=lambda verdict: verdict.p or 1.0)


def test_the_committed_ablation_is_corrected_as_in_the_paper(
    committed: Evidence, committed_verdicts: Verdicts
) -> None:
    judged = committed_verdicts.all
    sizes = Counter((each.table, each.city, each.verdict.family_size) for each in judged)
    ablation = {(city, size) for table, city, size in sizes if table == "ablation-castpoi"}
    assert ("nyc", 5) in ablation
    assert all(size <= 5 for _, size in ablation)
    main = {size for table, _, size in sizes if table == "main"}
    ours = [city for city in committed.splits if "castpoi" in city.contenders]
    # the strongest baseline, for each of ours (the paper has 5 x 3), and two older ones of ours
    assert main == {5 * len(ours), 2 * 5 * len(ours)}
    (settings,) = [table for table in committed.tables if table.name == "settings-castpoi"]
    assert not {row.name for row in settings.rows} & set(PAPERS_VARIANTS)


def test_the_papers_variants_are_those_of_the_suite() -> None:
    (suite,) = read_suite("ablation").tables
    assert tuple(row.name for row in suite.rows if row.role == "ablation") == PAPERS_VARIANTS


def test_the_strongest_baseline_is_that_of_each_column(tmp_path: Path) -> None:
    # SASRec is right more often, the heuristic has more in its top ten.
    result_of([1.0] * 4 + [90.0] * 6, method="sasrec", seed=1).save(tmp_path / "t" / "a")
    result_of([9.0] * 7 + [90.0] * 3, method="revisit").save(tmp_path / "t" / "b")
    result_of([1.0] * 10, method="castpoi", seed=1).save(tmp_path / "t" / "c")
    evidence = read_evidence(tmp_path / "t")
    (table,), (city,) = evidence.tables, evidence.cities
    strongest = [city.strongest_of(table.rows, metric) for metric in ("HR@5", "HR@10")]
    assert [row.name for row in strongest if row is not None] == ["sasrec", "revisit"]
    assert evidence.strongest(city, "HR@10") == strongest[1]
    verdict = judge_all(evidence, draws=50).against_strongest("main", "t", "castpoi", "HR@10")
    assert verdict is not None
    assert verdict.test.against == "revisit"


def test_one_method_alone_is_not_tested(tmp_path: Path) -> None:
    result_of([1.0, 2.0], method="castpoi", seed=1).save(tmp_path / "t" / "a")
    evidence = read_evidence(tmp_path / "t")
    verdicts = judge_all(evidence, draws=50)
    assert verdicts.all == []
    assert verdicts.against_strongest("main", "t", "castpoi", "MRR") is None
    assert significance_table(evidence, verdicts) is None


def test_the_table_of_tests_has_all_three_and_corrected_intervals(tmp_path: Path) -> None:
    # Ours gains a little often and loses much seldom: ranks favour it, the mean does not.
    ours = [9.0] * 40 + [60.0] * 4 + [1.0] * 4
    theirs = [10.0] * 40 + [1.0] * 4 + [1.0] * 4
    for seed in (1, 2):
        result_of(ours, method="castpoi", seed=seed).save(tmp_path / "t" / f"ours-{seed}")
    result_of(theirs, method="revisit").save(tmp_path / "t" / "revisit")
    evidence = read_evidence(tmp_path / "t")
    table = significance_table(evidence, judge_all(evidence, draws=500))
    assert table is not None
    (group,) = table.groups
    assert group.heading == "Main table, t: CaST-POI"
    lines = {row[0].text: dict(zip(table.columns, row, strict=True)) for row in group}
    mrr, hits = lines["MRR"], lines["HR@10"]
    assert mrr["Better / equal / worse"].text == "40 / 4 / 4"
    assert mrr["Better / equal / worse"].order == 36
    assert mrr["Seeds"].text == "2 / –"
    interval = mrr["Interval"].parts
    assert interval["low"] < interval["low alone"] < interval["high alone"] < interval["high"]
    assert mrr["Points"].stars == ""  # the ranks favour ours, the mean does not
    assert (mrr["p Wilcoxon"].value or 0) < 0.05 < (hits["p Wilcoxon"].value or 0)
    assert mrr["p users"].value == mrr["p users, seeds"].value  # its seeds are alike
    assert hits["Points"].text == "-8.33"  # four of 48 hits are lost
    assert hits["Holm over"].text == "5"
    assert "500 samples and seed 42" in table.text
    assert "0 of 5 tests have no verdict" in table.text


def test_pairs_of_seeds_that_differ_are_counted(tmp_path: Path) -> None:
    town = tmp_path / "town"
    for seed, ranks in enumerate(([1.0] * 30, [1.0] * 30, [2.0] * 30)):
        result_of(ranks, method="castpoi", seed=seed).save(town / str(seed))
    result_of([9.0] * 30, method="revisit").save(town / "revisit")
    evidence = read_evidence(town)
    expected = [1.0, 4.320463e-08, 4.320463e-08]  # thirty differences of one size and sign
    assert p_of_pairs(evidence.cities[0].contenders["castpoi"]) == pytest.approx(expected)
    table = significance_table(evidence, judge_all(evidence, draws=50))
    assert table is not None
    assert table.text.endswith("in 2 of 3 pairs.")


def test_the_docs_report_how_often_seeds_of_ours_differ_on_new_york(committed: Evidence) -> None:
    nyc = next(city for city in committed.cities if city.name == "nyc")
    p = [p for name in ("castpoi", "castpoi-next") for p in p_of_pairs(nyc.contenders[name])]
    words = f"in {sum(each < ALPHA for each in p)} of {len(p)} pairs"
    assert words in " ".join((ROOT / "docs" / "statistics.md").read_text(encoding="utf-8").split())
