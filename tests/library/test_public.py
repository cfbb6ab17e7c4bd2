"""`import castpoi`: the whole path in one session, and the names that are public."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import castpoi
from castpoi.core.errors import BadInput

TINY = {"epochs": 1, "width": 8, "threads": 1}


def test_the_exported_names_are_these() -> None:
    assert castpoi.__all__ == [
        *(
            "CastPoiError",
            "City",
            "Client",
            "Comparison",
            "History",
            "Recommendations",
            "Recommender",
        ),
        *("Result", "__version__", "compare", "evaluate", "evaluate_lists", "load", "prepare"),
        *("synthesize", "train"),
    ]
    assert all(getattr(castpoi, name).__doc__ for name in castpoi.__all__ if name != "__version__")


def test_import_castpoi_loads_no_torch_and_no_polars() -> None:
    code = "import sys, castpoi; sys.exit(bool({'torch', 'polars', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def visits() -> pl.DataFrame:
    """Check-ins of a synthetic city with whole numbers as ids."""
    table = castpoi.synthesize(users=30, places=80, days=60, seed=1)
    return table.with_columns(pl.col("user", "place").rank("dense"))


@pytest.fixture(scope="module")
def city(visits: pl.DataFrame) -> castpoi.City:
    return castpoi.prepare(visits)


@pytest.fixture(scope="module")
def model(city: castpoi.City) -> castpoi.Recommender:
    return castpoi.train(city, seed=3, settings=TINY)


def test_a_frame_of_any_library_makes_the_same_city(
    visits: pl.DataFrame, city: castpoi.City, tmp_path: Path
) -> None:
    visits.write_csv(tmp_path / "visits.csv")
    text = visits.with_columns(pl.col("time").dt.to_string("%Y-%m-%dT%H:%M:%SZ"))
    epochs = visits.with_columns(pl.col("time").dt.epoch("s"))
    sources = [
        *(visits.to_pandas(), visits.to_arrow(), visits.lazy(), text, epochs),
        *(tmp_path / "visits.csv", [str(tmp_path / "visits.csv")]),
    ]
    assert {castpoi.prepare(each).fingerprint for each in sources} == {city.fingerprint}


def test_a_column_is_named_and_an_option_is_checked(visits: pl.DataFrame) -> None:
    renamed = visits.rename({"time": "ts"})
    assert castpoi.prepare(renamed, time="ts", split="chronological").manifest["test"] > 30
    with pytest.raises(BadInput, match="spilt is not an option; did you mean 'split'"):
        castpoi.prepare(visits, spilt="chronological")
    with pytest.raises(BadInput, match="a int is not a source of check-ins"):
        castpoi.prepare(7)


def test_nothing_is_written_unless_asked_for(
    visits: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    city = castpoi.prepare(visits)
    castpoi.evaluate(castpoi.train(city, "revisit"))
    assert list(tmp_path.iterdir()) == []
    castpoi.prepare(visits, out="city")
    castpoi.train("city", settings=TINY, out="run")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["city", "run"]
    assert castpoi.City.load(tmp_path / "city").fingerprint == city.fingerprint


def test_a_model_recommends_to_a_user_and_to_a_history(model: castpoi.Recommender) -> None:
    user = model.city.users["user_id"][0]
    own = model.recommend(user=int(user), k=3)
    assert len(own) == 3
    table = model.city.checkins.filter(pl.col("user") == 0).join(model.city.places, on="place")
    history = table.select(place="place_id", time="at_utc")
    assert [each.place for each in model.recommend(history.to_pandas(), k=3)] == [
        each.place for each in own
    ]


def test_everybody_gets_recommendations_in_one_frame(model: castpoi.Recommender) -> None:
    frame = model.recommend_all(k=4)
    assert frame.height == 4 * model.city.users.height
    some = model.recommend_all([1, 2], k=4)
    same = frame.filter(pl.col("user").is_in(["1", "2"]))
    assert some["place"].to_list() == same["place"].to_list()


def test_a_user_without_recommendations_is_named_and_the_others_have_theirs(
    model: castpoi.Recommender,
) -> None:
    with pytest.warns(UserWarning, match=r"for 1 of 2 users \(nobody\); .*has no check-ins"):
        assert model.recommend_all([1, "nobody"])["user"].unique().to_list() == ["1"]


def test_a_model_is_saved_and_loaded(model: castpoi.Recommender, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    loaded = castpoi.load(tmp_path / "run", city=model.city)
    assert loaded.model == model.model
    assert loaded.recommend(user=1).recommendations == model.recommend(user=1).recommendations
    assert castpoi.evaluate(tmp_path / "run", model.city).metrics == castpoi.evaluate(model).metrics


def test_a_trained_model_a_heuristic_and_one_of_our_own_are_compared(
    model: castpoi.Recommender, city: castpoi.City
) -> None:
    def last_place(history: castpoi.History) -> list[float]:
        scores = [0.0] * city.places.height
        scores[history.place[-1]] = 1.0
        return scores

    table = castpoi.compare(
        [castpoi.evaluate(model), castpoi.evaluate("revisit", city),
         castpoi.evaluate(last_place, city)],
        against="revisit",
    )  # fmt: skip
    assert set(table.frame["method"]) == {"castpoi-next", "revisit", "last_place"}
    assert "MRR − revisit" in table.to_markdown()
    p = dict(table.frame.select("method", "MRR_p").iter_rows())
    assert p["last_place"] is not None  # a function learns nothing, so it has no seeds
    assert p["castpoi-next"] is None  # one seed


def test_a_model_for_production_learns_from_everything_and_is_not_evaluated(
    model: castpoi.Recommender, city: castpoi.City, tmp_path: Path
) -> None:
    model.save(tmp_path / "run")
    settings = {name: value for name, value in TINY.items() if name != "epochs"}
    product = castpoi.train(
        city, seed=3, holdout=None, epochs_from=tmp_path / "run", settings=settings
    )
    assert product.run.ranker.config["training"]["epochs"] == 1
    assert product.run.model_sha256 != model.run.model_sha256
    assert len(product.recommend(user=1, k=3)) == 3
    with pytest.raises(BadInput, match="has seen all check-ins, so it cannot be evaluated on"):
        castpoi.evaluate(product)
    with pytest.raises(BadInput, match="give epochs or epochs_from, not both"):
        castpoi.train(city, holdout=None, epochs=2, epochs_from=tmp_path / "run")
    with pytest.raises(BadInput, match="split 'none' cannot be predicted"):
        castpoi.train(city, "revisit", holdout="none")


@pytest.mark.parametrize("frame", [pd.DataFrame, pa.table])
def test_bad_frames_give_the_sentences_of_the_command_line(frame: type) -> None:
    with pytest.raises(BadInput, match="no column for the place"):
        castpoi.prepare(frame({"user": [1], "time": [2], "lat": [1.0], "lon": [2.0]}))


def test_everything_has_a_short_repr(model: castpoi.Recommender, city: castpoi.City) -> None:
    result = castpoi.evaluate("recent", city)
    shown = (city, result, castpoi.compare([result]), model.recommend(user=1), model)
    assert all("\n" not in repr(each) and len(repr(each)) < 200 for each in shown)
    assert all("<table" in each._repr_html_() for each in shown)


def test_recommendations_have_a_map_in_a_notebook_that_needs_no_network(
    model: castpoi.Recommender,
) -> None:
    shown = model.recommend(user=1, k=4)._repr_html_()
    assert shown.count("<circle") == 4
    assert "km across" in shown
    assert "http" not in shown
    similar = model.similar(1, k=3)
    assert repr(similar).startswith("3 places similar to 1: ")
    assert similar._repr_html_().count("<circle") == 3


def test_a_misspelt_method_is_refused_with_a_guess(city: castpoi.City) -> None:
    with pytest.raises(BadInput, match=r"'revist' is neither a method nor .* mean 'revisit'"):
        castpoi.evaluate("revist", city)
