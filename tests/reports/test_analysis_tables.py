"""Tables of cities, strata, pools, and of what lies beyond accuracy."""

from pathlib import Path

import pytest

from castpoi.evaluation.evaluate import evaluate
from castpoi.methods.outline import Row
from castpoi.reports.beyond_table import beyond_table
from castpoi.reports.city_table import city_table
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.method_table import method_table, what_it_is
from castpoi.reports.pool_table import pool_of, pool_table
from castpoi.reports.source_table import source_table, way_to
from castpoi.reports.strata_table import strata_of, strata_table
from castpoi.reports.table import Cell, Table
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.reports.result_folders import PLACES, result_of, write_suite


def line(table: Table, first: str, at: int = 0) -> dict[str, Cell]:
    rows = [row for group in table.groups for row in group]
    (found,) = [row for row in rows if row[at].text == first]
    return dict(zip(table.columns, found, strict=True))


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    town = tmp_path / "town"
    # Of 100 targets ours finds the even ones (revisits) first, the heuristic the first quarter.
    ours = [1.0 if number % 2 == 0 else 300.0 for number in range(100)]
    theirs = [5.0 if number < 25 else 101.0 for number in range(100)]
    result_of(ours, method="castpoi", seed=1).save(town / "ours")
    result_of(theirs, method="revisit").save(town / "revisit")
    return read_evidence(town)


def test_strata_show_where_a_method_is_good_and_how_many_targets_say_so(evidence: Evidence) -> None:
    city = evidence.cities[0]
    table = strata_table(evidence, city, strata_of(evidence, city))
    revisit, new = line(table, "revisit", 1), line(table, "new", 1)
    assert (revisit["n"].text, revisit["CaST-POI"].text) == ("50", "100.0")
    assert new["CaST-POI"].text == "0.0"
    assert revisit["Revisit heuristic"].text == "26.0"  # targets 0, 2, ... 24 of fifty
    assert revisit["CaST-POI"].is_faint  # fifty targets are too few to tell
    assert not revisit["CaST-POI"].is_best
    assert line(table, "≥ 200", 1)["Targets by"].text == "Visits before"


def test_pools_are_in_closed_form_and_end_with_all_places(evidence: Evidence) -> None:
    city = evidence.cities[0]
    curve = pool_of(evidence, city)
    assert curve is not None
    table = pool_table(evidence, city, curve)
    assert table.columns == ["Method", "100", "200", "all"]
    assert line(table, "CaST-POI")["all"].text == "50.0"
    assert line(table, "Revisit heuristic")["all"].text == "25.0"
    assert line(table, "CaST-POI")["all"].is_best
    assert f"all {PLACES}" in table.caption
    assert "No pair of methods changes its order" in table.caption


def test_pairs_that_a_small_pool_turns_are_named(tmp_path: Path) -> None:
    # Ours is either right or hopeless; the heuristic is always near: a pool of 100 prefers it.
    ours = [1.0] * 40 + [400.0] * 60
    result_of(ours, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    for method in ("revisit", "markov"):
        result_of([12.0] * 100, method=method).save(tmp_path / "t" / method)
    evidence = read_evidence(tmp_path / "t")
    curve = pool_of(evidence, evidence.cities[0])
    assert curve is not None
    caption = pool_table(evidence, evidence.cities[0], curve).caption
    assert "not in a pool of 100: CaST-POI over Markov, Revisit heuristic." in caption


def test_one_method_alone_is_not_called_the_best(tmp_path: Path) -> None:
    result_of([1.0] * 240, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    evidence = read_evidence(tmp_path / "t")
    (city,) = evidence.cities
    curve = pool_of(evidence, city)
    assert curve is not None
    strata = strata_table(evidence, city, strata_of(evidence, city))
    for table in (pool_table(evidence, city, curve), strata):
        assert not any(cell.is_best for group in table.groups for row in group for cell in row)


def test_calibration_is_told_of_learned_methods_only(evidence: Evidence) -> None:
    table = beyond_table(evidence, evidence.cities[0])
    assert table is not None
    ours, theirs = line(table, "CaST-POI"), line(table, "Revisit heuristic")
    assert (ours["Mean softmax %"].text, ours["Right first %"].text) == ("30.0", "50.0")
    assert ours["ECE %"].text == "20.0"
    assert [theirs[name].text for name in ("Mean softmax %", "Right first %", "ECE %")] == ["–"] * 3
    assert (ours["Median km off"].text, theirs["Median km off"].text) == ("1.00", "2.00")
    assert ours["Popularity of first"].text == "4.0"


def test_the_numbers_of_the_paper_stand_below_those_of_a_city(tmp_path: Path) -> None:
    result_of([1.0] * 1044, method="revisit").save(tmp_path / "nyc" / "revisit")
    table = city_table(read_evidence(tmp_path / "nyc"))
    ours, paper = line(table, "nyc"), line(table, "nyc, in the paper")
    assert (ours["Users"].text, ours["Check-ins of a user"].text) == ("1,044", "40.0")
    assert (ours["Places"].text, ours["Revisits %"].text) == (str(PLACES), "50.0")
    assert (paper["Places"].text, paper["Targets"].text) == ("4,974", "1,044")


def test_a_result_tells_the_users_and_check_ins_of_a_city_that_is_gone(tmp_path: Path) -> None:
    result = evaluate(fixed(5, 4, 3, 2, 1), odd_city(), method="revisit")
    result.save(tmp_path / "town" / "revisit")
    ours = line(city_table(read_evidence(tmp_path / "town")), "town")
    assert (ours["Users"].text, ours["Places"].text, ours["Check-ins"].text) == ("4", "5", "14")


def test_every_row_is_told_in_a_sentence_with_its_parameters(tmp_path: Path) -> None:
    table = method_table(read_evidence(write_suite(tmp_path / "s", targets=4)))
    ours, variant = line(table, "CaST-POI"), line(table, "w/o spatial bias")
    assert ours["Parameters"].text == "1,234"
    assert ours["What it is"].text.endswith("; preset fast")
    assert variant["What it is"].text.endswith("; with spatial_bias=false")
    assert line(table, "Revisit <heuristic> & co_1")["Parameters"].text == "none"
    other = Row(name="x", label="X", method="my-own", role="baseline")
    assert what_it_is(other) == "a method this castpoi does not know"


def test_sources_lead_from_the_report_to_every_result(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    table = source_table(read_evidence(root), root / "report")
    ours = line(table, "oldtown/castpoi/2")
    assert ours["Result"].link == "../oldtown/castpoi/2/manifest.json"
    assert (ours["Training"].text, ours["Ranking"].text) == ("2 min", "2.5 s")
    assert line(table, "oldtown/revisit/0")["Training"].text == "–"
    assert way_to(root, root / "report") == ".."
