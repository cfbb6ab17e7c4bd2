"""The generic table in parquet, with types of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.checkins.reading.conftest import PrepareCity
from tests.conftest import CommandLine
from tests.sources import (
    CALIFORNIA,
    local_hours_in,
    table_rows,
    triples_in,
    triples_of,
    visits_in,
)

VISITS = visits_in(CALIFORNIA)
ROWS = table_rows(VISITS)


def frame(**changed: object) -> pl.DataFrame:
    """The week as a typed table: ids are numbers, times are instants."""
    columns: dict[str, Any] = {
        "user": [int(v.user) for v in VISITS],
        "place": [int(v.place.id) for v in VISITS],
        "lat": [v.place.lat for v in VISITS],
        "lon": [v.place.lon for v in VISITS],
        "time": [v.at for v in VISITS],
    }
    return pl.DataFrame({**columns, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="int ids, instants in UTC"),
        pytest.param(
            {"user": [v.user for v in VISITS], "place": [v.place.id for v in VISITS]},
            id="string ids",
        ),
        pytest.param(
            {"user": pl.Series([v.user for v in VISITS], dtype=pl.Categorical)},
            id="categorical ids",
        ),
        pytest.param(
            {
                "time": pl.Series([v.at for v in VISITS])
                .cast(pl.Datetime("ns", "UTC"))
                .dt.convert_time_zone("Asia/Kolkata")
            },
            id="instants in another zone, nanoseconds",
        ),
        pytest.param({"time": [r[4] for r in ROWS]}, id="times as text"),
        pytest.param({"time": [int(v.at.timestamp()) for v in VISITS]}, id="epoch seconds"),
        pytest.param({"time": [v.at.timestamp() for v in VISITS]}, id="epoch seconds, float"),
        pytest.param({"time": [int(v.at.timestamp()) * 1000 for v in VISITS]}, id="epoch ms"),
        pytest.param({"time": [int(v.at.timestamp()) * 10**6 for v in VISITS]}, id="epoch us"),
        pytest.param({"lat": [r[2] for r in ROWS]}, id="coordinates as text"),
        pytest.param({"lat": [f" {r[2]}" for r in ROWS]}, id="coordinates as text after blanks"),
        pytest.param({"time": [f"{r[4]} " for r in ROWS]}, id="times as text before blanks"),
        pytest.param({"notes": [["a", "b"]] * len(VISITS)}, id="a column of lists"),
    ],
)
def test_a_parquet_table_gives_its_visits_back(
    prepared: PrepareCity, tmp_path: Path, changed: Mapping[str, object]
) -> None:
    source = tmp_path / "visits.parquet"
    frame(**changed).write_parquet(source)
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(VISITS)


def test_naive_times_of_a_parquet_table_are_refused_until_told_what_they_mean(
    castpoi: CommandLine, prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.parquet"
    wall = [v.at.replace(tzinfo=None) for v in VISITS]
    frame(time=pl.Series(wall, dtype=pl.Datetime("us"))).write_parquet(source)
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city")
    assert ended.code == 1
    assert f"{source}, row 1: time '2012-04-03 18:00:09' has no zone or offset" in ended.err
    assert "pass --naive-times utc or --naive-times local" in ended.err
    city, _ = prepared(source, "--naive-times", "utc")
    assert triples_in(city) == triples_of(VISITS)
    city, _ = prepared(source, "--naive-times", "local", "--overwrite")
    assert set(local_hours_in(city)) == {18}
