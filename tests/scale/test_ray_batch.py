"""The engine on Ray: one actor in this process, and a cluster of which one machine is killed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from castpoi import __version__
from castpoi.checkins import record
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.recommend.batch import SCHEMA, recommend_people
from castpoi.recommend.people import People, people_of
from castpoi.recommend.recommender import Recommender
from tests.messages import refused
from tests.serving.small_run import DAY

LISTS = [name for name in SCHEMA if name != record.USER]
VISITS = pl.DataFrame(
    {
        "user": ["b", "b", "a", "b"],
        "place": [each.place for each in DAY[:4]],
        "time": [each.at for each in DAY[:4]],
    }
)


@pytest.fixture(scope="module")
def ray_batch() -> Any:
    """The module, without the warnings of importing Ray."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from castpoi.scale import ray_batch

    return ray_batch


def answered(ray_batch: Any, run: Path, people: People, parts: Path) -> Path:
    """The answers of one actor, as Ray Data would write them in two files."""
    actor = ray_batch.PeopleRanker(__version__, {"run": run}, people.common)
    asked = ray_batch._table(people)
    (parts / "answers").mkdir(parents=True)
    for number, some in enumerate((asked[:1], asked[1:])):
        rows = pl.DataFrame(actor(some.to_arrow()))
        rows.write_parquet(parts / "answers" / f"{number}.parquet")
    return parts


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ""])
def test_the_rows_are_those_of_the_local_engine(
    ray_batch: Any, run_folder: Path, recommender: Recommender, tmp_path: Path, suffix: str
) -> None:
    for name, people in {
        "users": people_of(recommender, k=2),
        "visits": people_of(recommender, histories=VISITS, k=2, new_only=True),
        "filters": people_of(
            recommender,
            pl.DataFrame({"user": ["user 0", "nobody", "user 2"], "within_km": [1.0, 2.0, 3.0]}),
        ),
    }.items():
        parts = answered(ray_batch, run_folder, people, tmp_path / f"{name}.parts")
        out = tmp_path / f"{name}{suffix}"
        done = ray_batch._finish(parts, out, len(people), overwrite=False)
        expected, rejected = recommend_people(recommender, people)
        assert done == {"recommendations": expected.height, "rejected": rejected.height}
        assert not parts.exists()
        if suffix == ".csv":
            found = pl.read_csv(out, schema=expected.schema)
        elif suffix:
            found = pl.read_parquet(out)
        else:
            assert (out / "_SUCCESS").exists()
            long = pl.read_parquet(out / "*.parquet").sort("number").drop("number", "error")
            found = long.explode(LISTS).drop_nulls("rank")
        columns = ["user", "rank", "place", "visited"]
        assert found.select(columns).equals(expected.select(columns))
        assert (found["score"] - expected["score"]).abs().max() < 1e-5  # type: ignore[operator]
        refusals = tmp_path / f"{name}{suffix}.rejected.csv"
        assert refusals.exists() == bool(rejected.height)


def test_missing_people_are_never_taken_for_a_whole_output(
    ray_batch: Any, run_folder: Path, recommender: Recommender, tmp_path: Path
) -> None:
    parts = answered(ray_batch, run_folder, people_of(recommender, k=2), tmp_path / "out.parts")
    (parts / "answers" / "0.parquet").unlink()
    with pytest.raises(Exception, match="rows of"):
        ray_batch._finish(parts, tmp_path / "out.csv", len(people_of(recommender)), overwrite=False)
    assert not (tmp_path / "out.csv").exists()


def test_another_version_and_a_missing_run_are_one_sentence_each(
    ray_batch: Any, recommender: Recommender, tmp_path: Path
) -> None:
    asked = ray_batch._table(people_of(recommender)).to_arrow()
    with refused(BadInput):
        ray_batch.PeopleRanker("0.0.1", {"run": tmp_path}, {})(asked)
    with refused(BrokenFolder):
        ray_batch.PeopleRanker(__version__, {"run": tmp_path / "away"}, {})(asked)


def test_an_address_that_no_cluster_answers_at_is_refused_at_once(ray_batch: Any) -> None:
    with refused(BadInput):
        ray_batch.connect("127.0.0.1:1")


@pytest.mark.slow
@pytest.mark.skipif("CASTPOI_RAY" not in os.environ, reason="takes minutes; set CASTPOI_RAY=1")
def test_a_killed_machine_costs_no_rows(
    run_folder: Path, recommender: Recommender, tmp_path: Path
) -> None:
    fast = {
        "RAY_health_check_failure_threshold": "2",
        "RAY_health_check_period_ms": "2000",
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.scale.cluster", str(run_folder), str(out)]
    subprocess.run(command, env=os.environ | fast, check=True, timeout=900)
    rows = pl.read_parquet(out / "*.parquet")
    expected, _ = recommend_people(recommender, people_of(recommender, k=5))
    assert rows[record.USER].n_unique() == rows.height == len(people_of(recommender))
    found = rows.sort("number").select(expected.columns)
    long = found.explode(LISTS).drop_nulls("rank")
    assert long["place"].equals(expected["place"])
