"""Values of the paper next to ours, computed by hand."""

from pathlib import Path

import pytest

from castpoi.reports.evidence import read_evidence
from castpoi.reports.reference import reference_table
from castpoi.reports.significance import judge_all
from castpoi.reports.table import Group, Table
from tests.reports.result_folders import result_of, write_suite

HALF = [1.0] * 522 + [50.0] * 522  # of the 1,044 targets of the paper's New York


def table_of(folder: Path) -> Table | None:
    evidence = read_evidence(folder)
    return reference_table(evidence, judge_all(evidence, draws=50))


def line(table: Table, group: Group, label: str) -> dict[str, tuple[str, str, bool]]:
    (found,) = [row for row in group if row[0].text == label]
    cells = dict(zip(table.columns[1:], found[1:], strict=True))
    return {name: (cell.text, cell.paper, cell.is_best) for name, cell in cells.items()}


def test_our_mean_minus_the_papers_is_bold_where_they_are_far_apart(tmp_path: Path) -> None:
    result_of(HALF, method="core", seed=1).save(tmp_path / "nyc" / "core")
    result_of(HALF, method="markov").save(tmp_path / "nyc" / "markov")
    table = table_of(tmp_path / "nyc")
    assert table is not None
    (group,) = table.groups
    assert group.heading == "Main table, nyc: ours less the paper's"
    assert [row[0].text for row in group] == ["CORE"]  # the paper has no such Markov
    core = line(table, group, "CORE")
    assert core["HR@5"] == ("-1.31", "", False)  # 50.00 - 51.31
    assert core["HR@10"] == ("-7.76", "", True)  # 50.00 - 57.76


def test_tuned_baselines_have_no_values_of_the_paper(tmp_path: Path) -> None:
    for method in ("core", "esasrec", "castpoi"):
        result_of(HALF, method=method, seed=1).save(tmp_path / "nyc" / method)
    table = table_of(tmp_path / "nyc")
    assert table is not None
    assert [group.heading for group in table.groups] == ["Main table, nyc: ours less the paper's"]
    (group,) = table.groups
    assert [row[0].text for row in group] == ["CORE", "CaST-POI"]


def test_the_effect_of_a_part_is_next_to_its_effect_in_the_paper(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", cities=("nyc",), seeds=(1, 2), targets=1044)
    table = table_of(root)
    assert table is not None
    assert "not trained with the preset paper" in table.text
    group = table.groups[-1]
    assert group.heading == "Ablation, nyc: change from the full model"
    variant = line(table, group, "w/o spatial bias")
    ours, paper, is_other = variant["MRR"]
    assert ours.startswith("-")
    assert (paper, is_other) == ("-0.89**", False)  # 36.08 - 36.97; significant here and there
    assert variant["HR@5"][1:] == ("-0.83", True)  # significant here, not there


@pytest.mark.parametrize(("town", "targets"), [("nyc", 1043), ("oldtown", 1044)])
def test_other_cities_are_not_compared_with_the_paper(
    tmp_path: Path, town: str, targets: int
) -> None:
    result_of([1.0] * targets, method="core", seed=1).save(tmp_path / town / "core")
    assert table_of(tmp_path / town) is None
