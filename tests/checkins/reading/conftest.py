"""Preparing a source as a person would, and loading what came of it."""

import json
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


def fails(castpoi: CommandLine, source: Path, *options: object) -> str:
    """The sentence with which a preparation ends, after all that holds for every failure."""
    folder = source.parent
    before = sorted(folder.iterdir())
    ended = castpoi("data", "prepare", source, "--out", folder / "city", *options)
    assert ended.code == 1
    assert ended.out == ""
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("castpoi: ")
    sentence = lines[0].removeprefix("castpoi: ")
    as_json = castpoi("data", "prepare", source, "--out", folder / "city", "--json", *options)
    assert as_json.code == 1
    assert json.loads(as_json.out) == {"error": sentence}
    assert sorted(folder.iterdir()) == before, "something was left behind"
    return sentence
