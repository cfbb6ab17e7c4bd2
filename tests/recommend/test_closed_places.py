"""Closed places are never recommended."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from castpoi.core.errors import BadInput, NoCandidateLeft
from castpoi.recommend.changed_places import closed_ids
from castpoi.recommend.recommender import load
from tests.messages import refused
from tests.serving.small_run import DAY


def test_a_closed_place_is_not_recommended_but_remains_a_visit(run_folder: Path) -> None:
    recommender = load(run_folder, closed=["cafe"])
    answer = recommender.recommend(DAY, candidates=["cafe", "park"], explain=True)
    assert [each.place for each in answer] == ["park"]
    assert answer.remarks == ("1 candidate was left out: closed",)
    before = load(run_folder).recommend(DAY, candidates=["park"], explain=True)
    assert answer.recommendations == before.recommendations
    assert "cafe" not in {each.place for each in recommender.recommend([])}
    with refused(NoCandidateLeft):
        recommender.recommend(DAY, candidates=["cafe"])


@pytest.mark.parametrize(
    ("columns", "closed"),
    [
        ({}, {"1", "2", "3"}),
        ({"date_closed": ["2019-04-01", None, "2999-01-01"]}, {"1"}),
        ({"date_closed": ["some year", "", None]}, {"1"}),
        ({"operating_status": ["open", "permanently_closed", None]}, {"2"}),
    ],
)
def test_dates_and_states_of_a_table_say_what_is_closed(
    tmp_path: Path, columns: dict[str, Any], closed: set[str]
) -> None:
    table = pl.DataFrame({"place": [1, 2, 3], **columns})
    table.write_csv(tmp_path / "closed.csv")
    assert closed_ids(table) == closed == closed_ids(tmp_path / "closed.csv")
    assert closed_ids(None, table) == (closed if columns else set())


def test_a_table_without_places_is_refused() -> None:
    with refused(BadInput):
        closed_ids(pl.DataFrame({"date_closed": ["2019-04-01"]}))
