"""A city from the content of one file."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, make_city

CityOf = Callable[..., City]


@pytest.fixture
def city_of(tmp_path: Path) -> CityOf:
    """`city_of(content, name, **options)`: options are fields of `Preparation`."""

    def make(
        content: str | bytes | pl.DataFrame, name: str = "visits.csv", **options: object
    ) -> City:
        source = tmp_path / name
        if isinstance(content, pl.DataFrame):
            content.write_parquet(source)
        else:
            source.write_bytes(content.encode() if isinstance(content, str) else content)
        return make_city([source], Preparation(**options))  # type: ignore[arg-type]

    return make
