"""Tables of strata, of pools, and of results beyond accuracy."""

from pathlib import Path

import pytest

from castpoi.reports.analyses import beyond_table, pool_of, pool_table, strata_of, strata_table
from castpoi.reports.evidence import CityEvidence, Evidence, read_evidence
from castpoi.reports.table import Cell, Table
from tests.reports.result_folders import PLACES, result_of


def line(table: Table, first: str, at: int = 0) -> dict[str, Cell]:
    rows = [row for group in table.groups for row in group]
    (found,) = [row for row in rows if row[at].text == first]
    return dict(zip(table.columns, found, strict=True))


def pools(evidence: Evidence) -> Table:
    curve = pool_of(evidence, evidence.cities[0])
    assert curve is not None
    return pool_table(evidence, evidence.cities[0], curve)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Of 100 targets ours finds the even ones (revisits), the heuristic the first quarter."""
    town = tmp_path_factory.mktemp("two") / "town"
    ours = [1.0 if number % 2 == 0 else 300.0 for number in range(100)]
    theirs = [5.0 if number < 25 else 101.0 for number in range(100)]
    result_of(ours, method="castpoi", seed=1).save(town / "ours")
    result_of(theirs, method="revisit").save(town / "revisit")
    return read_evidence(town)


@pytest.fixture
def city(two: Evidence) -> CityEvidence:
    return two.cities[0]


def test_strata_show_where_a_method_is_good_and_from_how_many_targets(
    two: Evidence, city: CityEvidence
) -> None:
    table = strata_table(two, city, strata_of(two, city))
    revisit, new = line(table, "revisit", 1), line(table, "new", 1)
    assert (revisit["n"].text, revisit["CaST-POI"].text) == ("50", "100.0")
    assert new["CaST-POI"].text == "0.0"
    assert revisit["Revisit heuristic"].text == "26.0"  # targets 0, 2, ... 24 of fifty
    assert revisit["CaST-POI"].is_faint  # fifty targets are too few
    assert not revisit["CaST-POI"].is_best
    assert line(table, "≥ 200", 1)["Targets by"].text == "Visits before"


def test_pools_end_with_all_places(two: Evidence) -> None:
    table = pools(two)
    assert table.columns == ["Method", "100", "200", "all"]
    assert line(table, "CaST-POI")["all"].text == "50.0"
    assert line(table, "Revisit heuristic")["all"].text == "25.0"
    assert line(table, "CaST-POI")["all"].is_best
    assert table.footnotes == []
    assert two.cities[0].count_of("places") == PLACES


def test_pairs_that_a_small_pool_reverses_are_named(tmp_path: Path) -> None:
    # Ours is either right or hopeless, the heuristic always close: a pool of 100 prefers it.
    ours = [1.0] * 40 + [400.0] * 60
    result_of(ours, method="castpoi", seed=1).save(tmp_path / "t" / "ours")
    for method in ("revisit", "markov"):
        result_of([12.0] * 100, method=method).save(tmp_path / "t" / method)
    (note,) = pools(read_evidence(tmp_path / "t")).footnotes
    assert note.endswith("not in a pool of 100: CaST-POI over Markov, Revisit heuristic.")


def test_calibration_is_that_of_learned_methods_only(two: Evidence, city: CityEvidence) -> None:
    table = beyond_table(two, city)
    assert table is not None
    ours, theirs = line(table, "CaST-POI"), line(table, "Revisit heuristic")
    assert (ours["Mean softmax %"].text, ours["Right first %"].text) == ("30.0", "50.0")
    assert ours["ECE %"].text == "20.0"
    assert [theirs[name].text for name in ("Mean softmax %", "Right first %", "ECE %")] == ["–"] * 3
    assert (ours["Median km off"].text, theirs["Median km off"].text) == ("1.00", "2.00")
    assert ours["Popularity of first"].text == "4.0"
    assert "Popularity of the places visited: 2.0." in table.text
