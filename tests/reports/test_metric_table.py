"""The main table and the ablation: every cell worked out by hand."""

import shutil
from pathlib import Path
from statistics import stdev

import pytest

from castpoi.model.config import ModelConfig
from castpoi.reports.evidence import read_evidence
from castpoi.reports.metric_table import metric_table, p_words
from castpoi.reports.model_card import model_card
from castpoi.reports.table import Cell, Table
from castpoi.reports.verdicts import judge_all
from tests.reports.result_folders import result_of, write_suite

# Of ten targets ours has 4 and 6 in its first five, SASRec 3, the heuristic 2.
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


@pytest.fixture
def small(tmp_path: Path) -> Path:
    town = tmp_path / "town"
    result_of(FOUR, method="castpoi", seed=1).save(town / "ours-1")
    result_of(SIX, method="castpoi", seed=2).save(town / "ours-2")
    result_of(THREE, method="sasrec", seed=1).save(town / "sasrec")
    result_of(TWO, method="revisit").save(town / "revisit")
    return town


def test_a_cell_is_the_mean_and_sample_deviation_over_seeds(small: Path) -> None:
    (table,) = tables_in(small)
    ours = cells(table, "CaST-POI")["HR@5"]
    assert ours.text == "50.00"
    assert ours.std == pytest.approx(stdev([40.0, 60.0]))
    assert cells(table, "CaST-POI")["MRR"].value == pytest.approx(
        100 * ((4 + 6 / 50) / 10 + (6 + 4 / 50) / 10) / 2
    )


def test_a_row_tells_its_seeds_unless_it_only_counts(small: Path) -> None:
    (table,) = tables_in(small)
    seeds = {row[0].text: row[1].text for row in table.groups[0]}
    assert seeds == {
        "SASRec": "1", "Revisit heuristic": "–", "CaST-POI": "2", "Improvement": ""
    }  # fmt: skip


def test_a_dagger_stands_where_the_bootstrap_does_not_agree(tmp_path: Path) -> None:
    # Ours gains a little often and loses much seldom: ranks favour it, the mean does not.
    ours, theirs = [9.0] * 40 + [60.0] * 4, [10.0] * 40 + [1.0] * 4
    result_of(ours, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    result_of(theirs, method="revisit").save(tmp_path / "t" / "revisit")
    (table,) = tables_in(tmp_path / "t")
    improvement = cells(table, "Improvement")
    assert improvement["MRR"].marks.endswith("*†")
    assert improvement["HR@10"].marks == ""
    assert "†: the paired bootstrap does not agree with Wilcoxon" in table.caption


def test_a_city_without_variants_is_not_in_the_ablation(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", cities=("a", "b"), targets=20)
    shutil.rmtree(root / "b" / "no-spatial-bias")
    _, ablation = tables_in(root)
    assert [group.heading for group in ablation.groups] == ["a"]
    shutil.rmtree(root / "a" / "no-spatial-bias")
    _, alone = tables_in(root)
    assert [group.heading for group in alone.groups] == ["a", "b"]


def test_one_seed_has_no_deviation(small: Path) -> None:
    (table,) = tables_in(small)
    assert cells(table, "SASRec")["HR@5"].std is None
    assert cells(table, "SASRec")["HR@5"].text == "30.00"


def test_the_best_is_bold_and_the_strongest_other_method_underlined(small: Path) -> None:
    (table,) = tables_in(small)
    marks = {
        row[0].text: (cell.is_best, cell.is_strongest)
        for row in table.groups[0].rows
        for cell in row[2:3]
    }
    assert marks == {
        "SASRec": (False, True),
        "Revisit heuristic": (False, False),
        "CaST-POI": (True, False),
    }


def test_a_heuristic_can_be_the_strongest_and_can_be_best(tmp_path: Path) -> None:
    result_of(FOUR, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    result_of(THREE, method="sasrec", seed=1).save(tmp_path / "t" / "sasrec")
    result_of(SIX, method="revisit").save(tmp_path / "t" / "revisit")
    (table,) = tables_in(tmp_path / "t")
    cell = cells(table, "Revisit heuristic")["HR@5"]
    assert (cell.is_best, cell.is_strongest) == (True, True)
    assert cells(table, "Improvement")["HR@5"].text == "-33.33 %"


def test_where_baselines_are_missing_the_strongest_is_that_of_those_run(tmp_path: Path) -> None:
    for city, methods in (("a", ("castpoi", "sasrec", "revisit")), ("b", ("castpoi", "revisit"))):
        for method in methods:
            result = result_of([1.0, 2.0], method=method, fingerprint=city * 64, seed=1)
            result.save(tmp_path / city / method)
    (table,) = tables_in(tmp_path)
    assert "it is the strongest of those run on b (none learned)." in table.caption
    (alone,) = tables_in(tmp_path / "a")
    assert "of those run" not in alone.caption


def test_a_stronger_baseline_of_another_table_is_told(small: Path) -> None:
    result_of(SIX, method="esasrec", seed=1).save(small / "esasrec")
    main, tuned = tables_in(small)
    words = "On town eSASRec of another table is stronger by HR@5, HR@10, NDCG@5, NDCG@10, MRR."
    assert words in main.caption
    assert "of another table" not in tuned.caption


def test_the_improvement_is_relative_to_the_strongest(small: Path) -> None:
    (table,) = tables_in(small)
    assert cells(table, "Improvement")["HR@5"].text == "+66.67 %"
    assert "against SASRec" in cells(table, "Improvement")["HR@5"].note


def test_a_test_tells_its_seeds_and_one_seed_a_side_is_warned_of(small: Path) -> None:
    (table,) = tables_in(small)
    assert cells(table, "Improvement")["HR@5"].note.endswith("; seeds 1 / 1")
    assert "5 of 5 tests rest on one seed a side. Tests speak about these" in table.caption
    assert "Means are over all seeds of a row, a test over as many as both" in table.caption
    shutil.rmtree(small / "sasrec")
    (counted,) = tables_in(small)
    assert cells(counted, "Improvement")["HR@5"].note.endswith("; seeds 2 / –")
    assert "rest on one seed" not in counted.caption
    assert "Means are over all seeds" not in counted.caption


def test_every_number_names_the_folders_it_comes_from(small: Path) -> None:
    (table,) = tables_in(small)
    note = cells(table, "CaST-POI")["MRR"].note
    assert note.splitlines() == [str(small / "ours-1"), str(small / "ours-2")]


def test_without_another_method_there_is_no_improvement_and_no_mark(tmp_path: Path) -> None:
    result_of(FOUR, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    (table,) = tables_in(tmp_path / "t")
    assert [row[0].text for row in table.groups[0]] == ["CaST-POI"]
    assert not any(cell.is_best or cell.stars for row in table.groups[0] for cell in row)
    assert table.caption == (
        "In percent, the higher the better; every target ranked among all places. The protocol "
        "tells what HR, NDCG and MRR are."
    )


def test_a_count_that_was_made_twice_has_no_deviation_over_seeds(tmp_path: Path) -> None:
    for seed in (1, 2):
        result_of(FOUR, method="revisit", seed=seed).save(tmp_path / "t" / str(seed))
    (table,) = tables_in(tmp_path / "t")
    assert cells(table, "Revisit heuristic")["MRR"].std is None
    assert "deviation" not in table.caption
    evidence = read_evidence(tmp_path / "t")
    assert "±" not in model_card(evidence, evidence.rows[0])


def test_stars_stand_on_the_improvement_and_on_variants_that_differ(tmp_path: Path) -> None:
    main, ablation = tables_in(write_suite(tmp_path / "s"))
    assert cells(main, "Improvement")["MRR"].stars == "***"
    assert cells(ablation, "w/o spatial bias")["MRR"].stars == "***"
    assert cells(ablation, "Full model")["MRR"].stars == ""
    assert cells(main, "SASRec")["MRR"].stars == ""
    assert "Holm-corrected over 3 tests" in main.caption
    assert "on a row that it differs from Full model" in ablation.caption
    assert "Holm-corrected over 1 test:" in ablation.caption
    assert "The paper corrects over 15 tests: five metrics on three cities." in main.caption
    assert "The paper corrects over 5 tests: one a variant" in ablation.caption


def test_other_settings_stand_apart_from_the_papers_ablation_and_its_values(tmp_path: Path) -> None:
    own = {"config": {"model": ModelConfig.preset("fast").to_dict()}}
    changed = {"config": {"model": {**own["config"]["model"], "dropout": 0.5}}}
    ranks = [1.0] * 1044
    result_of(ranks, method="castpoi", seed=1, trained=own).save(tmp_path / "nyc" / "full")
    result_of(ranks, method="castpoi", seed=1, trained=changed).save(tmp_path / "nyc" / "other")
    (table,) = tables_in(tmp_path / "nyc")
    assert (table.name, table.title) == ("settings-castpoi", "Other settings of CaST-POI")
    assert [row[0].text for row in table.groups[0]] == ["CaST-POI", "CaST-POI, dropout = 0.5"]
    assert not any(cell.paper for row in table.groups[0] for cell in row)
    assert "The paper corrects" not in table.caption


def test_the_paper_stands_beside_ours_where_the_city_is_the_papers(tmp_path: Path) -> None:
    ranks = [1.0] * 1044
    result_of(ranks, method="castpoi", seed=1).save(tmp_path / "nyc" / "ours")
    result_of(ranks, method="core", seed=1).save(tmp_path / "nyc" / "core")
    (table,) = tables_in(tmp_path / "nyc")
    assert cells(table, "CaST-POI")["HR@10"].paper == "58.01"
    assert cells(table, "CORE")["HR@5"].paper == "51.31"
    assert cells(table, "Improvement")["HR@10"].paper == "+0.43 %"  # 58.01 / 57.76 - 1


def test_the_papers_improvement_is_over_all_its_methods_also_those_we_lack(tmp_path: Path) -> None:
    ranks = [1.0] * 1044
    result_of(ranks, method="castpoi", seed=1).save(tmp_path / "nyc" / "ours")
    result_of(ranks, method="revisit").save(tmp_path / "nyc" / "revisit")
    (table,) = tables_in(tmp_path / "nyc")
    assert cells(table, "Improvement")["HR@5"].paper == "-0.57 %"


def test_a_namesake_with_other_targets_is_not_the_papers_city(tmp_path: Path) -> None:
    result_of([1.0] * 1043, method="castpoi", seed=1).save(tmp_path / "nyc" / "ours")
    (table,) = tables_in(tmp_path / "nyc")
    assert cells(table, "CaST-POI")["HR@10"].paper == ""


def test_the_papers_ablation_stands_beside_our_ablation(tmp_path: Path) -> None:
    _, ablation = tables_in(write_suite(tmp_path / "s", cities=("nyc",), seeds=(1,), targets=1044))
    assert cells(ablation, "w/o spatial bias")["MRR"].paper == "36.08**"
    assert cells(ablation, "Full model")["MRR"].paper == "36.97"


@pytest.mark.parametrize(("p", "words"), [(0.0004, "< 0.001"), (0.001, "0.001"), (1.0, "1.000")])
def test_p_values_in_words(p: float, words: str) -> None:
    assert p_words(p) == words


def test_numbers_of_known_time_stand_in_a_table_of_their_own_with_a_warning(small: Path) -> None:
    (alone,) = tables_in(small)
    result_of([1.0] * 10, method="castpoi", seed=1, known_time=True).save(small / "told-1")
    main, apart = tables_in(small)
    assert main == alone
    assert apart.name == "known-time"
    (group,) = apart.groups
    assert group.heading == "town (time known)"
    (row,) = group.rows
    assert [cell.text for cell in row[:3]] == ["CaST-POI, time known", "1", "100.00"]
    assert "Told when each target was: these numbers are not to be set beside" in apart.caption
    assert "Told when" not in main.caption


def test_two_methods_of_ours_have_an_improvement_each(small: Path) -> None:
    result_of(SIX, method="castpoi-next", seed=1).save(small / "next-1")
    (table,) = tables_in(small)
    assert cells(table, "Improvement of CaST-POI")["HR@5"].text == "+66.67 %"  # 5 against 3 of ten
    assert cells(table, "Improvement of CaST-POI next")["HR@5"].text == "+100.00 %"
