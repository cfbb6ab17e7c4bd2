"""Results in one table, with tests."""

from pathlib import Path

import pytest

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.evaluation.result import Result
from castpoi.library.compare import compare
from castpoi.library.evaluate import evaluate
from tests.cities import THEIR_PARTS, TWO_PEOPLE, small_city


@pytest.fixture
def results() -> list[Result]:
    city: City = small_city(TWO_PEOPLE, THEIR_PARTS)
    return [evaluate(name, city) for name in ("popularity", "recent", "nearest")]


def test_methods_are_compared_best_first(results: list[Result]) -> None:
    frame = compare(results).frame
    assert frame["method"].to_list()[0] in {"recent", "popularity", "nearest"}
    assert frame["MRR"].is_sorted(descending=True)


def test_every_other_method_is_tested_against_one(results: list[Result]) -> None:
    comparison = compare(results, against="popularity")
    tested = {(each.test.contender, each.test.against) for each in comparison.verdicts}
    assert tested == {("recent", "popularity"), ("nearest", "popularity")}
    assert {each.family_size for each in comparison.verdicts} == {4}
    rows = {row["method"]: row for row in comparison.frame.to_dicts()}
    assert rows["popularity"]["MRR_difference"] is None
    lead = rows["recent"]["MRR"] - rows["popularity"]["MRR"]
    assert rows["recent"]["MRR_difference"] == pytest.approx(lead)


def test_results_may_be_folders(results: list[Result], tmp_path: Path) -> None:
    for each in results:
        each.save(tmp_path / each.method)
    assert compare([tmp_path]).frame.equals(compare(results).frame)
    assert compare(str(tmp_path)).frame.equals(compare(results).frame)
    assert compare(results[0]).frame.height == 1


def test_a_table_is_written_as_latex_markdown_and_csv(
    results: list[Result], tmp_path: Path
) -> None:
    comparison = compare(results, against="popularity")
    assert comparison.to_latex(tmp_path / "t.tex") == (tmp_path / "t.tex").read_text()
    assert r"\toprule" in comparison.to_latex()
    assert "| Method |" in comparison.to_markdown()
    assert comparison.to_csv().startswith("Method,")


def test_a_comparison_shows_itself_in_one_line_and_as_a_table(results: list[Result]) -> None:
    comparison = compare(results)
    assert "\n" not in repr(comparison)
    assert "<table>" in comparison._repr_html_()


def test_a_method_without_a_result_cannot_be_tested_against(results: list[Result]) -> None:
    with pytest.raises(BadInput, match=r"no result of 'recnt'.*did you mean 'recent'"):
        compare(results, against="recnt")
