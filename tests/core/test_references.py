"""References `module:name` in strings, which import-linter does not see."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import castpoi
from castpoi.cli.main import GROUPS, VERBS
from castpoi.methods.registry import imported

SOURCE = Path(castpoi.__file__).parent
REFERENCE = re.compile(r"castpoi(?:\.\w+)+:\w+")
MAY_NAME = {
    "methods/registry.py": {"baselines", "model", "training"},
}
"""Packages whose objects the strings of a file may name."""


def references() -> list[tuple[str, str]]:
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and REFERENCE.fullmatch(str(node.value)):
                found.append((path.relative_to(SOURCE).as_posix(), str(node.value)))
    return found


@pytest.mark.parametrize(("file", "reference"), references())
def test_a_reference_names_an_object_of_an_allowed_package(file: str, reference: str) -> None:
    assert reference.split(".")[1] in MAY_NAME[file]
    assert imported(reference) is not None


def test_the_rankers_are_found() -> None:
    assert "methods/registry.py" in {file for file, _ in references()}


def test_every_command_names_a_function_of_its_module() -> None:
    named = [each for group in ({}, *GROUPS.values()) for each in group.items()]
    for name, (module, _) in (*VERBS.items(), *named):
        assert hasattr(import_module(f"castpoi.cli.{module}"), name.replace("-", "_")), name
