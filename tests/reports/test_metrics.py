"""The main table and the ablation: every cell computed by hand."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.evaluation.result import Result
from castpoi.reports import notes
from castpoi.reports.evidence import read_evidence
from castpoi.reports.metrics import metric_table
from castpoi.reports.significance import judge_all
from castpoi.reports.table import Cell, Table
from tests.reports.result_folders import result_of, write_suite

# Of ten targets ours has 4 and 6 in its top five, SASRec 3, the heuristic 2.
FOUR = [1.0] * 4 + [50.0] * 6
SIX = [1.0] * 6 + [50.0] * 4
THREE = [2.0] * 3 + [50.0] * 7
TWO = [5.0] * 2 + [50.0] * 8


def tables_in(folder: Path) -> list[Table]:
    evidence = read_evidence(folder)
    verdicts = judge_all(evidence, draws=200)
    return [metric_table(outline, evidence, verdicts) for outline in evidence.tables]


def cells(table: Table, label: str) -> dict[str, Cell]:
    (group,) = table.groups
    (row,) = [row for row in group if row[0].text == label]
    return dict(zip(table.columns, row, strict=True))


def write_small(town: Path) -> Path:
    result_of(FOUR, method="castpoi", seed=1).save(town / "ours-1")
    result_of(SIX, method="castpoi", seed=2).save(town / "ours-2")
    result_of(THREE, method="sasrec", seed=1).save(town / "sasrec")
    result_of(TWO, method="revisit").save(town / "revisit")
    return town


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path / "town")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    (made,) = tables_in(write_small(tmp_path_factory.mktemp("metrics") / "town"))
    return made


def test_a_cell_is_the_mean_and_sample_deviation_over_seeds(table: Table) -> None:
    ours = cells(table, "CaST-POI")
    assert ours["HR@5"].text == "50.00"
    assert ours["HR@5"].std == pytest.approx(stdev([40.0, 60.0]))
    assert ours["MRR"].value == pytest.approx(100 * ((4 + 6 / 50) / 10 + (6 + 4 / 50) / 10) / 2)
    one_seed = cells(table, "SASRec")["HR@5"]
    assert (one_seed.text, one_seed.std) == ("30.00", None)
    assert [path.rpartition("/")[2] for path in ours["MRR"].note.splitlines()] == [
        *("ours-1", "ours-2")
    ]


def test_the_best_is_bold_and_the_strongest_other_method_underlined(table: Table) -> None:
    rows = table.groups[0].rows
    assert {row[0].text: (row[2].is_best, row[2].is_strongest) for row in rows} == {
        "SASRec": (False, True),
        "Revisit heuristic": (False, False),
        "CaST-POI": (True, False),
    }


def test_the_lead_is_over_the_strongest_baseline(table: Table) -> None:
    lead = cells(table, "CaST-POI over the best baseline")["HR@5"]
    assert lead.text == "+20.00"  # 5 against 3 of ten
    assert "over SASRec" in lead.note
    assert lead.note.endswith("; seeds 1 / 1")
    assert lead.is_faint  # SASRec has one seed


def test_a_lead_that_the_tests_see_on_different_sides_has_no_stars(tmp_path: Path) -> None:
    # Ours gains a little often and loses much seldom: ranks favour it, the mean does not.
    for seed in (1, 2):
        ours = result_of([9.0] * 40 + [60.0] * 4, method="castpoi", seed=seed)
        ours.save(tmp_path / "t" / f"ours-{seed}")
    result_of([10.0] * 40 + [1.0] * 4, method="revisit").save(tmp_path / "t" / "revisit")
    (table,) = tables_in(tmp_path / "t")
    lead = cells(table, "CaST-POI over the best baseline")["MRR"]
    assert (lead.stars, lead.is_faint) == ("", False)


def test_a_note_about_one_of_our_rows_is_below_the_table(small: Path) -> None:
    notes_file = {"castpoi": "Its seeds are fresh.", "sasrec": "Not ours."}
    (small / "notes.json").write_text(json.dumps(notes_file))
    (table,) = tables_in(small)
    assert "CaST-POI: Its seeds are fresh." in table.footnotes
    assert not any("Not ours." in note for note in table.footnotes)


def test_a_city_without_variants_is_not_in_the_ablation(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", cities=("a", "b"), targets=20)
    shutil.rmtree(root / "b" / "no-spatial-bias")
    _, ablation = tables_in(root)
    assert [group.heading for group in ablation.groups] == ["a"]
    shutil.rmtree(root / "a" / "no-spatial-bias")
    _, alone = tables_in(root)
    assert [group.heading for group in alone.groups] == ["a", "b"]


def test_without_another_method_there_is_no_improvement_and_no_mark(tmp_path: Path) -> None:
    result_of(FOUR, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    (table,) = tables_in(tmp_path / "t")
    assert [row[0].text for row in table.groups[0]] == ["CaST-POI"]
    assert not any(cell.is_best or cell.stars for row in table.groups[0] for cell in row)
    assert notes.STARS not in table.footnotes


def test_stars_are_on_the_improvement_and_on_variants_that_differ(tables: dict[str, Table]) -> None:
    main, ablation = tables["main"], tables["ablation"]
    assert cells(main, "CaST-POI over the best baseline")["MRR"].stars == "***"
    assert cells(ablation, "w/o spatial bias")["MRR"].stars == "***"
    assert cells(ablation, "Full model")["MRR"].stars == ""
    assert cells(main, "SASRec")["MRR"].stars == ""
    assert notes.STARS in main.footnotes
    assert "Holm over 3" in cells(main, "CaST-POI over the best baseline")["MRR"].note
    assert "Holm over 1;" in cells(ablation, "w/o spatial bias")["MRR"].note


def test_other_settings_are_apart_from_the_papers_ablation_and_its_values(tmp_path: Path) -> None:
    ranks = [1.0] * 1044
    result_of(ranks, method="castpoi", seed=1).save(tmp_path / "nyc" / "full")
    changed = result_of(ranks, method="castpoi", seed=1, settings={"dropout": "0.5"})
    changed.save(tmp_path / "nyc" / "other")
    (table,) = tables_in(tmp_path / "nyc")
    assert (table.name, table.title) == ("settings-castpoi", "Other settings of CaST-POI")
    assert [row[0].text for row in table.groups[0]] == ["CaST-POI", "CaST-POI, dropout = 0.5"]
    assert notes.PAPER not in table.footnotes


def test_the_papers_values_are_next_to_ours_on_its_cities(tmp_path: Path) -> None:
    ranks = [1.0] * 1044
    result_of(ranks, method="castpoi", seed=1).save(tmp_path / "nyc" / "ours")
    result_of(ranks, method="core", seed=1).save(tmp_path / "nyc" / "core")
    (table,) = tables_in(tmp_path / "nyc")
    assert cells(table, "CaST-POI")["HR@10"].paper == "58.01"
    assert cells(table, "CORE")["HR@5"].paper == "51.31"
    lead = cells(table, "CaST-POI over the best baseline")
    assert lead["HR@10"].paper == "+0.25"  # 58.01 - 57.76
    # over all methods of the paper, also those without a result here
    assert lead["HR@5"].paper == "-0.29"
    assert notes.PAPER in table.footnotes


def test_the_papers_ablation_is_next_to_our_ablation(tmp_path: Path) -> None:
    _, ablation = tables_in(write_suite(tmp_path / "s", cities=("nyc",), seeds=(1,), targets=1044))
    assert cells(ablation, "w/o spatial bias")["MRR"].paper == "36.08**"
    assert cells(ablation, "Full model")["MRR"].paper == "36.97"


@pytest.mark.parametrize(("p", "text"), [(0.0004, "< 0.001"), (0.001, "0.001"), (1.0, "1.000")])
def test_p_values_as_text(p: float, text: str) -> None:
    assert notes.p_value(p) == text


def test_known_time_has_a_table_of_its_own_with_a_warning(small: Path) -> None:
    (alone,) = tables_in(small)
    result_of([1.0] * 10, method="castpoi", seed=1, known_time=True).save(small / "known-1")
    main, apart = tables_in(small)
    assert main == alone
    assert apart.name == "known-time"
    (group,) = apart.groups
    assert group.heading == "town (time known)"
    (row,) = group.rows
    assert [cell.text for cell in row[:3]] == ["CaST-POI, time known", "1", "100.00"]
    assert apart.footnotes[0] == notes.KNOWN_TIME


def test_two_methods_of_ours_are_tested_each_and_against_each_other(
    small: Path,
) -> None:
    result_of(SIX, method="castpoi-next", seed=1).save(small / "next-1")
    (table,) = tables_in(small)
    assert cells(table, "CaST-POI over the best baseline")["HR@5"].text == "+20.00"
    assert cells(table, "CaST-POI next over the best baseline")["HR@5"].text == "+30.00"
    assert cells(table, "CaST-POI next over CaST-POI")["HR@5"].text == "+10.00"


def test_the_standard_error_counts_a_user_with_several_targets_once(small: Path) -> None:
    (table,) = tables_in(small)
    # MRR of the first seed: 4 of ten are 1.0, the others 0.02; mean 0.412, ten users
    assert "Standard error over users of the best MRR, in points: town 15.18." in table.text
    for name in ("ours-1", "ours-2"):
        made = Result.load(small / name)
        two_users = pl.Series(record.USER, [0] * 4 + [1] * 6, dtype=pl.UInt32)
        made = replace(made, ranks=made.ranks.with_columns(two_users))
        made.save(small / name, overwrite=True)
    (table,) = tables_in(small)
    assert "town 33.26." in table.text  # the two sums are +2.352 and -2.352
