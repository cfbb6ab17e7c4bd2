"""`tools/check_pins.py`: installed versions, pins and requirements agree."""

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


def differences(versions: dict[str, Version], *required: str) -> list[str]:
    found: list[str] = TOOL["problems"](versions, PINS, map(Requirement, required))
    return found


def test_spellings_of_a_name_and_local_builds_of_a_version_are_equal() -> None:
    assert PINS["some-thing"] == Version("1.2.0")
    assert (
        differences(installed(some_thing="1.2", torch="2.13.0+cpu", pip="23", castpoi="0.1")) == []
    )
    assert differences({}, "Some.Thing>=1.1", "other[extra]") == []


@pytest.mark.parametrize(
    ("versions", "required", "sentence"),
    [
        ({"other": "3.1"}, [], "other 3.1 is installed and 3.0 is pinned; install that"),
        ({"extra": "1.0"}, [], "extra 1.0 is installed and has no pin; add it or uninstall it"),
        ({}, ["new>=1"], "pyproject.toml requires new>=1, which has no pin; add it"),
        ({}, ["other>=4"], "pyproject.toml requires other>=4 and 3.0 is pinned"),
    ],
)
def test_each_difference_is_reported_in_a_sentence(
    versions: dict[str, str], required: list[str], sentence: str
) -> None:
    assert differences(installed(**versions), *required) == [sentence]


def test_a_line_without_a_pin_is_refused() -> None:
    with pytest.raises(SystemExit, match="line 2: 'other>=3' is not of the form name=="):
        TOOL["read_pins"]("some==1.0\nother>=3\n")


def test_requirements_include_all_extras_and_leave_out_castpoi() -> None:
    names = {each.name for each in TOOL["requirements_of"]((ROOT / "pyproject.toml").read_text())}
    assert {"torch", "fastapi", "matplotlib", "pytest", "pandas"} <= names
    assert "castpoi" not in names


def test_each_requirement_of_pyproject_has_a_pin_that_it_allows() -> None:
    pins = TOOL["read_pins"]((ROOT / "constraints.txt").read_text())
    requirements = TOOL["requirements_of"]((ROOT / "pyproject.toml").read_text())
    assert TOOL["problems"]({}, pins, requirements) == []
