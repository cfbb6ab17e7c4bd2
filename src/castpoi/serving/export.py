"""Export of a visit store: the visits of everybody who is not erased, as a table for `prepare`."""

from pathlib import Path
from typing import Final

import polars as pl

from castpoi.checkins import record
from castpoi.core.errors import BadInput
from castpoi.core.files import new_file, write_private_table
from castpoi.core.progress import SILENCE, Progress
from castpoi.recommend.batch import sink
from castpoi.serving.store import VisitStore

CHUNK: Final = 100_000
"""Visits that are read at once."""

_NUMBER: Final = "number"  # of the user, in the store
_TIME: Final = "time"
_STORED: Final = pl.Schema(
    {_NUMBER: pl.Int64, record.USER: pl.String, record.PLACE: pl.String, _TIME: pl.Int64}
)
_OF_PLACE: Final = (record.LAT, record.LON, record.CATEGORY, record.NAME)


def export_visits(
    store: VisitStore,
    out: Path,
    places: pl.DataFrame | None = None,
    *,
    progress: Progress = SILENCE,
) -> dict[str, int]:
    """Write the visits of a store to a table, and return the counts of its rows.

    With `places` the position, category and name of each place are added, and visits at other
    places are left out. Nobody appears who was erased before the table was complete.
    """
    with new_file(out) as path, progress.task("exporting", total=store.counts()[1]) as task:
        parts: list[Path] = []
        for rows in store.chunks(most=CHUNK):
            parts.append(path.with_name(f"part-{len(parts)}.parquet"))
            write_private_table(pl.DataFrame(rows, schema=_STORED, orient="row"), parts[-1])
            task.advance(len(rows))
        if not parts:
            raise BadInput("the visit store has no visits; post some, or give another --store")
        # somebody may have been erased while the chunks were read
        is_kept = pl.col(_NUMBER).is_in(store.user_numbers())
        time = pl.col(_TIME).cast(record.INSTANT)
        if out.suffix != ".parquet":
            time = time.dt.to_string("%Y-%m-%dT%H:%M:%S%.fZ")
        stored = pl.scan_parquet(parts, glob=False).filter(is_kept)
        visits = stored.select(record.USER, record.PLACE, time)
        if places is not None:
            of_place = places.lazy().rename({record.PLACE: _NUMBER, record.PLACE_ID: record.PLACE})
            visits = visits.join(of_place.select(record.PLACE, *_OF_PLACE), on=record.PLACE)
        path.touch(mode=0o600)
        sink(visits, path)
        return _counts(stored, visits)


def _counts(stored: pl.LazyFrame, visits: pl.LazyFrame) -> dict[str, int]:
    count = pl.len().cast(pl.Int64)
    distinct = pl.col(record.USER, record.PLACE).n_unique().name.suffix("s")
    counts: dict[str, int] = (
        visits.select(count.alias("visits"), distinct).collect().row(0, named=True)
    )
    everything = int(stored.select(pl.len()).collect().item())
    return {**counts, "left_out": everything - counts["visits"]}
