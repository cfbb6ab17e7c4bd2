"""Preparing a source as a person would, and loading what came of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from castpoi.checkins.city import City
from tests.conftest import CommandLine, Ended

PrepareCity = Callable[..., tuple[City, Ended]]


@pytest.fixture
def prepared(castpoi: CommandLine, tmp_path: Path) -> PrepareCity:
    """`prepared(source, *options)` gives the city and how the command ended."""

    def prepare(*words: object) -> tuple[City, Ended]:
        out = tmp_path / "city"
        ended = castpoi("data", "prepare", *words, "--out", out, "--json")
        assert ended.code == 0, ended.err
        return City.load(out), ended

    return prepare
