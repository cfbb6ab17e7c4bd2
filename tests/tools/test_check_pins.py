"""Pinned dependencies: what is installed is what constraints.txt says."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "check_pins.py"))
PINS = TOOL["read_pins"]("Some_Thing==1.2.0\n# a remark\n\nother==3.0  # why\ntorch==2.13.0\n")


def installed(**versions: str) -> dict[str, Version]:
    return {name.replace("_", "-"): Version(version) for name, version in versions.items()}


def told(versions: dict[str, Version], *asked: str) -> list[str]:
    found: list[str] = TOOL["problems"](versions, PINS, map(Requirement, asked))
    return found


def test_names_are_compared_as_installers_do_and_builds_are_their_version() -> None:
    assert PINS["some-thing"] == Version("1.2.0")
    assert told(installed(some_thing="1.2", torch="2.13.0+cpu", pip="23", castpoi="0.1")) == []
    assert told({}, "Some.Thing>=1.1", "other[extra]") == []


@pytest.mark.parametrize(
    ("versions", "asked", "words"),
    [
        ({"other": "3.1"}, [], "other 3.1 is installed and 3.0 is pinned; install that"),
        ({"extra": "1.0"}, [], "extra 1.0 is installed and has no pin; add it or uninstall it"),
        ({}, ["new>=1"], "pyproject.toml asks for new>=1, which has no pin; add it"),
        ({}, ["other>=4"], "pyproject.toml asks for other>=4 and 3.0 is pinned"),
    ],
)
def test_what_does_not_fit_is_told(versions: dict[str, str], asked: list[str], words: str) -> None:
    assert told(installed(**versions), *asked) == [words]


def test_a_line_that_is_no_pin_is_refused() -> None:
    with pytest.raises(SystemExit, match="line 2: 'other>=3' is not of the form name=="):
        TOOL["read_pins"]("some==1.0\nother>=3\n")


def test_all_extras_are_asked_for_and_castpoi_itself_is_not() -> None:
    names = {each.name for each in TOOL["requirements_of"]((ROOT / "pyproject.toml").read_text())}
    assert {"torch", "fastapi", "matplotlib", "pytest", "pandas"} <= names
    assert "castpoi" not in names


def test_every_requirement_of_ours_has_a_pin_it_allows() -> None:
    pins = TOOL["read_pins"]((ROOT / "constraints.txt").read_text())
    asked = TOOL["requirements_of"]((ROOT / "pyproject.toml").read_text())
    assert TOOL["problems"]({}, pins, asked) == []
