"""From a city to a table: train, evaluate, compare."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from castpoi.checkins.city import City, fingerprint_of
from castpoi.core.files import read_manifest, write_json
from castpoi.evaluation.metrics import METRICS
from castpoi.experiments.folder import SUITE_FILE
from castpoi.methods.registry import METHODS
from castpoi.methods.run import load_run
from tests.cities import small_city
from tests.conftest import CommandLine, documented_keys
from tests.contract import odd_city
from tests.training.test_train import DICE


@pytest.fixture
def city(tmp_path: Path) -> Path:
    odd_city().save(tmp_path / "city")
    return tmp_path / "city"


def test_a_run_becomes_a_result(castpoi: CommandLine, city: Path, tmp_path: Path) -> None:
    run, result = tmp_path / "run", tmp_path / "result"
    trained = castpoi("train", city, "--model", "revisit", "--seed", 3, "--out", run, "--json")
    assert trained.json.keys() == documented_keys("train")
    assert trained.json["fingerprint"] == City.load(city).fingerprint
    ended = castpoi("evaluate", run, "--out", result, "--json")
    assert ended.code == 0
    assert ended.json.keys() == documented_keys("evaluate")
    assert ended.json["metrics"].keys() == set(METRICS)
    assert ended.json["strata"].keys() == {"revisit", "new"}
    assert ended.json["strata"]["new"].keys() == {*METRICS, "n"}
    assert ended.json["n"] == 4
    assert ended.json["seconds"] >= 0
    assert (ended.json["method"], ended.json["seed"]) == ("revisit", 3)
    assert pl.read_parquet(result / "ranks.parquet").height == 4
    kept = {path.name for path in (result / "run").iterdir()}
    assert kept == {"manifest.json", "config.json", "log.jsonl"}  # for reports


def test_the_manifest_holds_a_command_that_gives_the_result_again(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    result = tmp_path / "my result"
    castpoi("evaluate", "--city", city, "--model", "recent", "--out", result)
    command = read_manifest(result, kind="result")["command"]
    words = f"castpoi evaluate --city {city} --model recent --out '{result}' --split test"
    assert command == words


def test_a_person_sees_percents_for_all_targets_revisits_and_new_places(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    ended = castpoi("evaluate", "--city", city, "--model", "popularity", "--out", tmp_path / "r")
    assert ended.code == 0
    for word in ("overall", "revisit", "new", "NDCG@20", "25.00"):
        assert word in ended.out
    assert ended.err == ""
    assert max(map(len, ended.out.splitlines()[:14])) <= 80


def test_all_methods_are_compared_in_one_table(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    counted = [method.name for method in METHODS if not method.needs_training]
    for name in counted:
        castpoi("evaluate", "--city", city, "--model", name, "--out", tmp_path / "results" / name)
    shown = castpoi("compare", tmp_path / "results")
    assert shown.code == 0
    assert all(name in shown.out for name in counted)
    assert "*" in shown.out
    assert "revisit HR@10" in shown.out
    found = castpoi("compare", tmp_path / "results", "--sort", "HR@1", "--json").json
    means = [row["metrics"]["HR@1"]["mean"] for row in found["rows"]]
    assert means == sorted(means, reverse=True)
    assert found.keys() == documented_keys("compare")
    assert found["best"]["HR@1"][0] == found["rows"][0]["method"]
    assert found["n"] == 4


def test_methods_are_tested_against_one_and_the_table_is_written(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    for name in ("recent", "revisit"):
        castpoi("evaluate", "--city", city, "--model", name, "--out", results / name)
    shown = castpoi("compare", results, "--against", "revisit", "--out", tmp_path / "table.tex")
    assert shown.code == 0, shown.err
    assert "minus revisit" in shown.out
    assert "corrected by Holm's method" in shown.out
    assert "\\toprule" in (tmp_path / "table.tex").read_text()
    content = castpoi("compare", results, "--against", "revisit", "--json").json
    assert content["against"] == "revisit"
    tests = {each["method"]: each["MRR_difference"] for each in content["tests"]}
    assert tests.keys() == {"recent", "revisit"}
    assert tests["revisit"] is None
    for words, code, sentence in (
        (("--out", tmp_path / "table.tex"), 1, "table.tex exists; choose another --out"),
        (("--out", tmp_path / "table.pdf"), 2, "table.pdf must end in .md, .csv, .tex."),
        (("--against", "recnt"), 1, "did you mean 'recent'?"),
    ):
        refused = castpoi("compare", results, *words)
        assert refused.code == code
        assert sentence in refused.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Give a RUN, or --city with --model or --lists."),
        (["--city", "CITY"], "Give a RUN, or --city with --model or --lists."),
        (["--model", "revisit"], "Give a RUN, or --city with --model or --lists."),
        (["RUN", "--model", "revisit"], "Give a RUN, --model or --lists, and only one"),
    ],
)
def test_wrong_usage_of_evaluate_ends_with_two(
    castpoi: CommandLine, tmp_path: Path, words: list[str], sentence: str
) -> None:
    ended = castpoi("evaluate", *words, "--out", tmp_path / "result")
    assert ended.code == 2
    assert sentence in ended.err


def test_a_run_is_not_evaluated_on_another_city(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    odd_city(test_place=0).save(tmp_path / "other")
    castpoi("train", city, "--model", "revisit", "--out", tmp_path / "run")
    ended = castpoi(
        "evaluate", tmp_path / "run", "--city", tmp_path / "other", "--out", tmp_path / "r"
    )
    assert ended.code == 1
    mine, theirs = (City.load(tmp_path / name).fingerprint[:12] for name in ("city", "other"))
    assert f"fingerprint {mine}, but {tmp_path / 'other'} has {theirs}" in ended.err
    assert not (tmp_path / "r").exists()


def test_a_run_whose_city_has_moved_asks_for_it(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    castpoi("train", city, "--model", "revisit", "--out", tmp_path / "run")
    city.rename(tmp_path / "moved")
    ended = castpoi("evaluate", tmp_path / "run", "--out", tmp_path / "result")
    assert ended.code == 1
    assert f"a city that is not at {city}; give its folder with --city" in ended.err
    ended = castpoi(
        "evaluate", tmp_path / "run", "--city", tmp_path / "moved", "--out", tmp_path / "result"
    )
    assert ended.code == 0


def test_a_run_that_has_seen_validation_is_not_evaluated_on_it(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    castpoi("train", city, "--model", "revisit", "--out", tmp_path / "run")
    ended = castpoi(
        "evaluate", tmp_path / "run", "--split", "validation", "--out", tmp_path / "result"
    )
    assert ended.code == 1
    assert "has seen the validation split" in ended.err


def test_a_run_without_holdout_is_not_evaluated(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ["train", city, "--model", "revisit", "--holdout", "none", "--out", run]
    trained = castpoi(*words)
    assert "revisit, trained on all 14 check-ins, none held out, of" in trained.out
    assert f"Next: castpoi serve {run}" in trained.out
    assert castpoi(*words, "--overwrite", "--json").json["part"] is None
    ended = castpoi("evaluate", run, "--out", tmp_path / "result")
    assert ended.code == 1
    assert f"{run} has seen all check-ins, so it cannot be evaluated on the test split" in ended.err
    assert "train it with 'castpoi train --holdout test'" in ended.err


def test_a_method_that_needs_training_is_sent_to_train(
    castpoi: CommandLine, city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
    ended = castpoi("evaluate", "--city", city, "--model", "dice", "--out", tmp_path / "r")
    assert ended.code == 1
    assert "dice needs training; first 'castpoi train" in ended.err


def test_lists_made_elsewhere_become_a_result(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    loaded, lists = City.load(city), tmp_path / "als.csv"
    users = loaded.users.select(user="user_id")
    scores = loaded.places.select(place="place_id", score=-pl.int_range(pl.len()))
    users.join(scores, how="cross").write_csv(lists)
    ended = castpoi("evaluate", "--city", city, "--lists", lists, "--out", tmp_path / "r", "--json")
    assert ended.code == 0, ended.err
    assert (ended.json["method"], ended.json["n"]) == ("als", 4)
    ranks = pl.read_parquet(tmp_path / "r" / "ranks.parquet")
    assert (ranks["rank"] == ranks["place"] + 1).all()
    command = read_manifest(tmp_path / "r", kind="result")["command"]
    assert command.startswith(f"castpoi evaluate --city {city} --lists {lists} ")


@pytest.mark.parametrize("verb", ["train", "evaluate"])
def test_help_lists_the_methods_one_a_line(castpoi: CommandLine, verb: str) -> None:
    listed = castpoi(verb, "--help").out
    assert re.search("\\n    recent +most recently visited first\\n", listed)
    methods = [each for each in METHODS if verb == "train" or not each.needs_training]
    for method in methods:
        presets = f" [{', '.join(method.presets)}]" if method.presets else ""
        assert re.search(
            rf"\n    {method.name} +{re.escape(method.line + presets)}\n", f"{listed}\n"
        )


def test_a_city_with_one_place_cannot_be_trained_on(castpoi: CommandLine, tmp_path: Path) -> None:
    city = small_city([(0, 0, f"2012-04-0{day} 12:00") for day in (2, 3, 4)], ["train"] * 3)
    manifest = {"kind": "city"}
    manifest["fingerprint"] = fingerprint_of(
        city.checkins, city.users, city.places.head(1), city.split
    )
    replace(city, places=city.places.head(1), manifest=manifest).save(tmp_path / "city")
    ended = castpoi("train", tmp_path / "city", "--model", "castpoi", "--out", tmp_path / "run")
    assert ended.code == 1
    assert "the city has a single place, so there is nothing to choose from" in ended.err


def test_the_folder_of_a_suite_is_not_compared_but_reported(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    suite = tmp_path / "my suite"
    castpoi("evaluate", "--city", city, "--model", "recent", "--out", suite / "city" / "recent")
    write_json(suite / SUITE_FILE, {"kind": "suite"})
    ended = castpoi("compare", suite)
    assert ended.code == 1
    assert f"a page of all with: castpoi report '{suite}'" in ended.err
    assert castpoi("compare", suite / "city" / "recent").code == 0


def test_several_seeds_become_runs_then_results_and_one_row_of_the_table(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results"
    trained = castpoi("train", city, "--model", "revisit", "--seeds", 1, 2, "--out", runs, "--json")
    assert [each["seed"] for each in trained.json["runs"]] == [1, 2]
    assert load_run(runs / "2").seed == 2
    evaluated = castpoi("evaluate", runs, "--out", results, "--json")
    assert [each["seed"] for each in evaluated.json["results"]] == [1, 2]
    command = read_manifest(results / "1", kind="result")["command"]
    assert f"evaluate {runs / '1'} --out {results / '1'}" in command
    (row,) = castpoi("compare", results, "--json").json["rows"]
    assert row["seeds"] == [1, 2]
