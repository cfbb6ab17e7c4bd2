"""Lists made elsewhere, evaluated under the same protocol."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.library.evaluate import evaluate, evaluate_lists
from tests.cities import THEIR_PARTS, TWO_PEOPLE, small_city

LISTS = {
    "user": ["user 1", "user 1", "user 2", "user 2"],
    "place": ["theatre", "cafe", "cafe", "station"],
    "rank": [1, 2, 1, 2],
}


@pytest.fixture
def city() -> City:
    return small_city(TWO_PEOPLE, THEIR_PARTS)


def test_a_target_has_its_rank_in_the_list_and_is_tied_with_all_unlisted_places(
    city: City,
) -> None:
    result = evaluate_lists(pl.DataFrame(LISTS), city)
    assert result.ranks["rank"].to_list() == [1.0, 4.0]  # theatre; park is one of three unlisted


def test_scores_order_a_list_as_ranks_do(city: City) -> None:
    scored = pl.DataFrame(LISTS).with_columns(score=-pl.col("rank")).drop("rank")
    by_score = evaluate_lists(scored, city).ranks["rank"]
    assert by_score.equals(evaluate_lists(pl.DataFrame(LISTS), city).ranks["rank"])


def test_the_lists_of_a_counting_method_have_its_metrics(city: City) -> None:
    popularity = evaluate("popularity", city)
    count = {"cafe": 2, "office": 1, "park": 1, "station": 0, "theatre": 0}
    scores = [(f"user {user}", place, count[place]) for user in (1, 2) for place in count]
    lists = pl.DataFrame(scores, schema=["user", "place", "score"], orient="row")
    assert evaluate_lists(lists, city).metrics == popularity.metrics


def test_lists_come_as_pandas_frames_and_files(city: City, tmp_path: Path) -> None:
    pl.DataFrame(LISTS).write_csv(tmp_path / "lists.csv")
    pl.DataFrame(LISTS).write_parquet(tmp_path / "lists.parquet")
    sources = (pd.DataFrame(LISTS), tmp_path / "lists.csv", str(tmp_path / "lists.parquet"))
    ranks = [evaluate_lists(each, city).ranks["rank"].to_list() for each in sources]
    assert ranks == [[1.0, 4.0]] * 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (pl.col("user").replace("user 2", "user 1"), "name a place twice"),
        (pl.col("place").replace("cafe", "kiosk"), "2 rows of the lists have a place"),
        (pl.lit("x").alias("rank"), "not numbers"),
        (pl.lit("user 1").alias("user"), "name a place twice|no places for 1"),
    ],
)
def test_lists_that_do_not_fit_the_city_are_refused(
    city: City, change: pl.Expr, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        evaluate_lists(pl.DataFrame(LISTS).with_columns(change), city)


def test_ids_of_a_file_are_text_and_columns_have_usual_names(city: City, tmp_path: Path) -> None:
    city = replace(city, users=city.users.with_columns(user_id=pl.Series(["001", "002"])))
    (tmp_path / "lists.csv").write_text("user_id;item_id;score\n001;theatre;2\n002;cafe;1\n")
    assert evaluate_lists(tmp_path / "lists.csv", city).ranks["rank"].to_list() == [1.0, 3.5]


def test_a_file_of_lists_that_cannot_be_read_is_named(city: City, tmp_path: Path) -> None:
    (tmp_path / "lists.parquet").write_text("no parquet")
    for name in ("lists.parquet", "absent.csv"):
        with pytest.raises(BadInput, match=rf"{name} cannot be read"):
            evaluate_lists(tmp_path / name, city)
