"""Recommendations for many people at once: one frame, or files that are written part by part.

    OUT.parquet, .csv, .jsonl    one row per recommendation, in the order of the people
    OUT.geojson                  the same as points
    OUT (no suffix)              a folder with part-00000.parquet ..., and _SUCCESS
    OUT.rejected.csv             people without an answer, and why; only if there are some
    OUT.parts/                   the finished parts of an unfinished job

A job is cut into parts of people. Each part appears whole, so the same command resumes after a
kill: it computes the missing parts only. Memory does not grow with the number of people.

Shapes: B people of a block, K recommendations of all of them, P places.
"""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.errors import BadInput, CastPoiError
from castpoi.core.files import (
    check_writable,
    is_folder_of,
    new_file,
    new_folder,
    read_json,
    write_json,
)
from castpoi.core.progress import SILENCE, Progress, Task
from castpoi.geo.distance import haversine_km
from castpoi.recommend.people import People
from castpoi.recommend.recommendation import write_features
from castpoi.recommend.resolve import ResolvedRequest

if TYPE_CHECKING:
    from castpoi.recommend.recommender import Recommender

BLOCK: Final = 256  # people that are scored together, if the city is not huge
MAX_SCORES: Final = 1 << 24
"""Maximum number of scores computed together; bounds the memory of a large batch."""
PART: Final = 8_192  # people in one part; a kill loses at most the work of one part
SUFFIXES: Final = (".parquet", ".csv", ".jsonl", ".geojson")
_JOB: Final = "manifest.json"
_DONE: Final = "_SUCCESS"
SCHEMA: Final = pl.Schema(
    {
        record.USER: pl.String,
        "rank": pl.UInt32,
        record.PLACE: pl.String,
        record.NAME: pl.String,
        record.CATEGORY: pl.String,
        record.LAT: pl.Float64,
        record.LON: pl.Float64,
        "score": pl.Float32,
        "probability": pl.Float64,
        "distance_km": pl.Float64,
        "visited": pl.Boolean,
    }
)
REJECTED_SCHEMA: Final = pl.Schema({record.USER: pl.String, "error": pl.String})


def recommend_people(
    recommender: "Recommender", people: People, *, progress: Progress = SILENCE
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The recommendations of all people, and the people without an answer with the reason."""
    with (
        progress.task("recommending", total=len(people)) as task,
        _a_thread_for_each_core() as pool,
    ):
        return _answer_slice(recommender, people, range(len(people)), pool, task)


def write_batch(
    recommender: "Recommender",
    people: People,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Progress = SILENCE,
) -> dict[str, Any]:
    """Write the recommendations of all people to a file or folder; returns what was done.

    An unfinished job of the same run and people is resumed.
    """
    check_out(out, overwrite=overwrite)
    parts = out.with_name(f"{out.name}.parts")
    job = {"kind": "batch", "run": recommender.run.model_sha256, "people": people.digest}
    resumed = open_job(parts, job, overwrite=overwrite)
    with (
        progress.task("recommending", total=len(people)) as task,
        _a_thread_for_each_core() as pool,
    ):
        for number, start in enumerate(range(0, len(people), PART)):
            some = range(start, min(start + PART, len(people)))
            done = parts / f"part-{number:05d}.parquet"
            if done.exists():
                task.advance(len(some))
            else:
                _write_part(done, *_answer_slice(recommender, people, some, pool, task))
    written = _finish(parts, out, overwrite=overwrite)
    return {"people": len(people), "parts_resumed": resumed, **written}


def _write_part(done: Path, answers: pl.DataFrame, rejected: pl.DataFrame) -> None:
    if rejected.height:
        with new_file(done.with_suffix(".rejected")) as path:
            rejected.write_parquet(path)
    with new_file(done) as path:
        path.touch(mode=0o600)  # it has user ids
        answers.write_parquet(path)


@contextmanager
def _a_thread_for_each_core() -> Iterator[ThreadPoolExecutor]:
    """Threads that take a block each, so that no core waits for another.

    Torch, if the method has imported it, uses one core in each of them.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        pool, cores = ThreadPoolExecutor(), 0
    else:
        cores = torch.get_num_threads()
        pool = ThreadPoolExecutor(cores, initializer=partial(torch.set_num_threads, 1))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        if torch is not None:  # the limit of a thread is also the limit of those started later
            torch.set_num_threads(cores)


def _answer_slice(
    recommender: "Recommender",
    people: People,
    people_range: range,
    pool: ThreadPoolExecutor,
    task: Task,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The recommendations of some people, and the people without an answer."""
    size = max(1, min(BLOCK, MAX_SCORES // len(recommender.places)))
    starts = people_range[::size]
    ends = [min(start + size, people_range.stop) for start in starts]
    blocks = []
    # loads once what all threads share
    answer_people(recommender, people, starts[0], starts[0] + 1)
    found = pool.map(partial(answer_people, recommender, people), starts, ends)
    for start, end, block in zip(starts, ends, found, strict=True):
        blocks.append(block)
        task.advance(end - start)
    answers, rejected = zip(*blocks, strict=True)
    return pl.concat(answers, how="diagonal"), pl.concat(rejected)


def answer_people(
    recommender: "Recommender", people: People, start: int, end: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The recommendations of a block of people, and its people without an answer."""
    users, requests, rejected = [], [], []
    for user, request in people.requests(start, end):
        if isinstance(request, CastPoiError):
            rejected.append((user, str(request)))
        else:
            users.append(user)
            requests.append(request)
    kept, resolved = [], []
    for user, found in zip(users, recommender.resolve(requests), strict=True):
        if isinstance(found, CastPoiError):
            rejected.append((user, str(found)))
        else:
            kept.append(user)
            resolved.append(found)
    table = pl.DataFrame(rejected, schema=REJECTED_SCHEMA, orient="row")
    return _frame(recommender, kept, resolved), table


def _frame(
    recommender: "Recommender", users: Sequence[str], requests: Sequence[ResolvedRequest]
) -> pl.DataFrame:
    """One row per recommendation, in the order of the requests."""
    if any(request.explain for request in requests):
        return _explained(recommender, users, requests)
    groups: dict[int | None, list[int]] = {}
    for number, request in enumerate(requests):
        groups.setdefault(recommender.places_to_score(request), []).append(number)
    frames = [
        _ranked(recommender, size, np.array(numbers), [requests[each] for each in numbers])
        for size, numbers in groups.items()
    ]
    if not frames:
        return pl.DataFrame(schema=SCHEMA)
    table = pl.concat(frames).sort("request", "rank")
    ids = pl.Series(record.USER, users, dtype=pl.String).gather(table["request"])
    return table.with_columns(ids).select(SCHEMA.names()).cast(SCHEMA)


def _ranked(
    recommender: "Recommender",
    size: int | None,
    numbers: NDArray[np.int64],
    requests: Sequence[ResolvedRequest],
) -> pl.DataFrame:
    """Requests that are scored together, column by column."""
    places = recommender.places
    _, found = recommender.score(requests, size)
    place = np.concatenate([each.place for each in found])  # [K]
    lengths = [len(each.place) for each in found]
    row = np.repeat(np.arange(len(requests)), lengths)  # [K]
    origin = np.array([request.origin or (np.nan, np.nan) for request in requests])[row]  # [K, 2]
    km = haversine_km(origin[:, 0], origin[:, 1], places.lat[place], places.lon[place])  # [K]
    is_visited = np.zeros((len(requests), len(places)), dtype=np.bool_)  # [B, P]
    for each, request in enumerate(requests):
        is_visited[each, request.history.place] = True
    return places.table[place].with_columns(
        request=pl.Series(numbers[row]),
        rank=pl.Series(np.concatenate([np.arange(1, length + 1) for length in lengths])),
        score=pl.Series(np.concatenate([each.score for each in found])),
        probability=pl.Series(np.concatenate([each.probability for each in found])),
        distance_km=pl.Series(km).fill_nan(None),
        visited=pl.Series(is_visited[row, place]),
    )


def _explained(
    recommender: "Recommender", users: Sequence[str], requests: Sequence[ResolvedRequest]
) -> pl.DataFrame:
    """The same with a sentence and the terms of each score, at the cost of counterfactuals."""
    rows = []
    for user, answer in zip(users, recommender.answer(requests), strict=True):
        for rank, each in enumerate(answer, start=1):
            own = {name: getattr(each, name) for name in SCHEMA.names() if hasattr(each, name)}
            terms = {f"term_{name}": value for name, value in (each.terms or {}).items()}
            rows.append({"user": user, "rank": rank, **own, "sentence": each.sentence, **terms})
    return pl.DataFrame(rows, infer_schema_length=None).cast(
        {name: SCHEMA[name] for name in SCHEMA}
    )


def check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    check_writable(out)
    if out.suffix and out.suffix not in SUFFIXES:
        raise BadInput(
            f"{out} ends in {out.suffix}; end it in {', '.join(SUFFIXES)}, or in nothing for a "
            "folder of parquet parts"
        )
    if out.exists() and not overwrite:
        raise BadInput(f"{out} already exists; choose another --out or replace it with --overwrite")


def open_job(parts: Path, job: Mapping[str, Any], *, overwrite: bool) -> int:
    """Create the folder of a job, or resume it; returns how many parts it has already."""
    if parts.exists():
        is_same = is_folder_of(parts, "batch") and read_json(parts / _JOB) == job
        if is_same:
            return len(list(parts.glob("part-*.parquet")))
        if not overwrite:
            raise BadInput(
                f"{parts} has the parts of another job, of other people or of another run; "
                "replace them with --overwrite, or choose another --out"
            )
    with new_folder(parts, kind="batch", overwrite=overwrite) as staging:
        write_json(staging / _JOB, dict(job))
    return 0


def _finish(parts: Path, out: Path, *, overwrite: bool) -> dict[str, int]:
    """Turn the parts into the output, which appears whole."""
    answers = pl.scan_parquet(parts / "part-*.parquet", missing_columns="insert")
    rows = int(answers.select(pl.len()).collect().item())
    rejected = sorted(parts.glob("*.rejected"))
    refused = pl.concat([pl.read_parquet(each) for each in rejected]) if rejected else None
    if refused is not None:
        with new_file(out.with_name(f"{out.name}.rejected.csv")) as path:
            path.touch(mode=0o600)
            refused.write_csv(path)
            for each in rejected:
                each.unlink()
    if out.suffix:
        with new_file(out) as path:
            path.touch(mode=0o600)
            if out.suffix == ".geojson":
                write_features(map(pl.read_parquet, sorted(parts.glob("part-*.parquet"))), path)
            else:
                sink(answers, path)
        shutil.rmtree(parts)
    else:
        (parts / _DONE).touch()
        if out.exists():
            shutil.rmtree(out)
        parts.rename(out)
    return {"recommendations": rows, "rejected": 0 if refused is None else refused.height}


def sink(answers: pl.LazyFrame, path: Path) -> None:
    """Write rows to a file in the format of its ending, in bounded memory."""
    if path.suffix == ".parquet":
        answers.sink_parquet(path)
    elif path.suffix == ".csv":
        answers.sink_csv(path)
    else:
        answers.sink_ndjson(path)
