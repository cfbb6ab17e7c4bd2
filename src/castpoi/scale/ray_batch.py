"""Recommendations for many people on a Ray cluster, with Ray Data.

    OUT.parts/people/        the requests: one row per person
    OUT.parts/answers/       parquet, one row per person with list columns, or an error
    OUT.parts/checkpoint/    which people are done: the same command resumes after a kill
    OUT (no suffix)          the folder answers/ with _SUCCESS
    OUT.parquet, .csv, ...   one row per recommendation, in the order of the people

An actor loads the run by its path and answers with the batch code of the library, so the rows are
those of the local engine. If an actor or a machine is lost, its work is repeated, and no row is
missing. All machines must have the folders of the run, its city and OUT at the same path.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import ray
from ray.data import ActorPoolStrategy, DataContext
from ray.data.checkpoint import CheckpointConfig
from ray.exceptions import RayError

from castpoi import __version__
from castpoi.checkins import record
from castpoi.core.errors import CastPoiError
from castpoi.core.files import new_file
from castpoi.recommend.batch import (
    BLOCK,
    REJECTED_SCHEMA,
    SCHEMA,
    answer_people,
    check_out,
    open_job,
    sink,
)
from castpoi.recommend.people import People
from castpoi.recommend.recommendation import write_features
from castpoi.recommend.recommender import load
from castpoi.recommend.request import Visits
from castpoi.scale.cluster import ATTEMPTS, check_version, connect, cores, own_error

ROWS: Final = 1_024
"""People in a block of Ray Data: each actor of a lost machine loses at most one block of work."""

_NUMBER: Final = "number"  # of a person; the id of the checkpoint
_VISITS: Final = {"visit_place": pl.String, "visit_us": pl.Int64, "visit_naive": pl.Boolean}
_ANSWERS: Final = [name for name in SCHEMA if name != record.USER]


class PeopleRanker:
    """An actor: loads a run, and answers one block of people after the other."""

    def __init__(self, version: str, loading: Mapping[str, Any], common: Mapping[str, Any]) -> None:
        self.problem: CastPoiError | None = None
        self.common = common
        try:
            check_version(version)
            self.recommender = load(**loading)
        except (
            CastPoiError
        ) as problem:  # raised with the first block: Ray restarts an actor that fails here
            self.problem = problem

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row for each person: lists of their recommendations, or an error."""
        if self.problem is not None:
            raise self.problem
        asked = pl.DataFrame(table)
        people = _people(asked, self.common)
        answers, rejected = zip(
            *(
                answer_people(self.recommender, people, start, min(start + BLOCK, len(people)))
                for start in range(0, len(people), BLOCK)
            ),
            strict=True,
        )
        lists = pl.concat(answers).group_by(record.USER).agg(pl.all().sort_by("rank"))
        rows = asked.select(_NUMBER, record.USER)
        rows = rows.join(pl.concat(rejected), on=record.USER, how="left")
        return rows.join(lists, on=record.USER, how="left").to_arrow(
            compat_level=pl.CompatLevel.oldest()
        )


def write_batch_on_ray(
    loading: Mapping[str, Any],
    model_sha256: str,
    people: People,
    out: Path,
    *,
    address: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the recommendations of all people; returns what was done.

    `loading` are the arguments of `castpoi.load`, with paths that all machines see. An unfinished
    job of the same run and people is resumed.
    """
    check_out(out, overwrite=overwrite)
    parts = out.absolute().with_name(f"{out.name}.parts")
    job = {"kind": "batch", "engine": "ray", "run": model_sha256, "people": people.digest}
    open_job(parts, job, overwrite=overwrite)
    parts.chmod(0o700)  # the files of Ray have user ids
    asked = parts / "people" / "people.parquet"
    if not asked.exists():
        asked.parent.mkdir(exist_ok=True)
        with new_file(asked) as path:
            path.touch(mode=0o600)
            _table(people).write_parquet(path)
    resumed = _people_done(parts)
    connect(address)
    try:
        _run(parts, {"version": __version__, "loading": loading, "common": dict(people.common)})
    finally:
        ray.shutdown()
    return {"people": len(people), "people_resumed": resumed} | _finish(
        parts, out, len(people), overwrite=overwrite
    )


def _run(parts: Path, arguments: Mapping[str, Any]) -> None:
    """Answer everybody who has no answer yet; starts again if a machine was lost too early."""
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.use_datasource_v2 = False  # its reader of metadata is lost with its machine
    context.max_consecutive_actor_init_deaths = ATTEMPTS
    context.checkpoint_config = CheckpointConfig(
        id_column=_NUMBER,
        checkpoint_path=str(parts / "checkpoint"),
        delete_checkpoint_on_success=False,
    )
    for attempt in range(ATTEMPTS):
        try:
            people = ray.data.read_parquet(str(parts / "people"))
            people.repartition(target_num_rows_per_block=ROWS).map_batches(
                PeopleRanker,
                fn_constructor_kwargs=dict(arguments),
                batch_format="pyarrow",
                batch_size=None,
                compute=ActorPoolStrategy(min_size=1, max_size=_actors()),
                num_cpus=1,
            ).write_parquet(str(parts / "answers"))
        except Exception as problem:
            if (cause := own_error(problem)) is not None:
                raise cause from problem
            if not isinstance(problem, RayError) or attempt == ATTEMPTS - 1:
                raise
        else:
            return


def _actors() -> int:
    """Maximum number of actors: all cores, less one per machine for reading and writing."""
    return max(1, sum(each - 1 for each in cores()))


def _table(people: People) -> pl.DataFrame:
    """The requests, one row per person."""
    table = pl.DataFrame({_NUMBER: np.arange(len(people)), record.USER: people.users})
    if people.filters is not None:
        table = table.hstack(people.filters)
    if people.visits is None or people.bounds is None:
        return table
    visits = people.visits
    owner = np.repeat(np.arange(len(people)), np.diff(people.bounds))
    columns = pl.DataFrame(
        {
            _NUMBER: owner,
            "visit_place": pl.Series(list(visits.places), dtype=pl.String),
            "visit_us": visits.clock_us,
            "visit_naive": visits.is_naive,
        }
    )
    return table.join(columns.group_by(_NUMBER, maintain_order=True).agg(pl.all()), on=_NUMBER)


def _people(asked: pl.DataFrame, common: Mapping[str, Any]) -> People:
    """The people of some rows of `_table`."""
    filters = asked.drop(_NUMBER, record.USER, *_VISITS, strict=False)
    visits, bounds = None, None
    if "visit_place" in asked.columns:
        column = asked["visit_place"]
        bounds = np.append(0, column.list.len().cum_sum().to_numpy()).astype(np.int64)
        visits = Visits(
            places=column.explode().to_list(),
            clock_us=asked["visit_us"].explode().to_numpy(),
            is_naive=asked["visit_naive"].explode().to_numpy(),
        )
    return People(
        users=asked[record.USER],
        visits=visits,
        bounds=bounds,
        filters=filters if filters.width else None,
        common=common,
    )


def _answers(parts: Path) -> pl.LazyFrame:
    return pl.scan_parquet(parts / "answers" / "*.parquet")


def _people_done(parts: Path) -> int:
    if not list((parts / "answers").glob("*.parquet")):
        return 0
    return int(_answers(parts).select(pl.len()).collect().item())


def _finish(parts: Path, out: Path, people: int, *, overwrite: bool) -> dict[str, int]:
    """Turn the answers into the output, which appears whole."""
    answers = _answers(parts)
    done = answers.select(
        rows=pl.len(),
        people=pl.col(_NUMBER).n_unique(),
        found=pl.col("rank").list.len().sum(),
        rejected=pl.col("error").count(),
    ).collect()
    rows, distinct, found, rejected = done.row(0)
    if (rows, distinct) != (people, people):
        raise CastPoiError(
            f"{parts} has {rows:,} rows of {distinct:,} people instead of {people:,}; remove it "
            "and run the command again"
        )
    if rejected:
        with new_file(out.with_name(f"{out.name}.rejected.csv")) as path:
            path.touch(mode=0o600)
            refused = answers.filter(pl.col("error").is_not_null()).sort(_NUMBER)
            refused.select(REJECTED_SCHEMA.names()).sink_csv(path)
    if out.suffix:
        long = answers.filter(pl.col("rank").is_not_null()).sort(_NUMBER)
        rows_of = long.select(SCHEMA.names()).explode(_ANSWERS)
        with new_file(out) as path:
            path.touch(mode=0o600)
            if out.suffix == ".geojson":
                write_features([rows_of.collect()], path)
            else:
                sink(rows_of, path)
    else:
        (parts / "answers" / "_SUCCESS").touch()
        for each in (parts / "answers").glob("*.parquet"):
            each.chmod(0o600)
        if out.exists():
            shutil.rmtree(out)
        (parts / "answers").rename(out)
    shutil.rmtree(parts)
    return {"recommendations": int(found or 0), "rejected": int(rejected)}
