"""docs/architecture.md names the packages, functions and files that exist."""

import re
import tomllib
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "castpoi"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAX_STEPS = {"Preparation": 10, "Training": 12, "A request": 12}


def section(heading: str) -> str:
    (found,) = re.findall(rf"^### {heading}\b[^\n]*\n(.*?)(?=^##)", PAGE, re.M | re.S)
    return str(found)


def steps() -> Iterator[str]:
    for heading in MAX_STEPS:
        yield from re.findall(r"^\d+\. `([^`]+)`", section(heading), re.M)


def line_of(text: str) -> str:
    number = PAGE[: PAGE.index(text)].count("\n") + 1
    return f"docs/architecture.md, line {number}: correct `{text}`"


def is_function_of_the_map(name: str) -> bool:
    file, _, function = name.partition(":")
    path = SOURCE / file
    return path.is_file() and f"function {function}(" in path.read_text(encoding="utf-8")


def is_attribute(name: str) -> bool:
    """Whether `module.name` or `module.Class.name` is an object of castpoi."""
    words = name.split(".")
    for end in range(len(words) - 1, 0, -1):
        try:
            module = import_module(".".join(["castpoi", *words[:end]]))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, words[end:], module)
        except AttributeError:
            return False
        return True
    return False


def diagram_rows() -> list[set[str]]:
    """The packages in each row of the diagram."""
    (diagram,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    return [set(re.findall(r"\w+", line[:50])) for line in diagram.splitlines()]


@pytest.mark.parametrize("name", list(steps()))
def test_every_step_is_a_function_that_exists(name: str) -> None:
    is_there = is_function_of_the_map(name) if ".js:" in name else is_attribute(name)
    assert is_there, f"{line_of(name)}: there is no such function"


@pytest.mark.parametrize("heading", MAX_STEPS)
def test_each_path_is_short(heading: str) -> None:
    numbers = [int(each) for each in re.findall(r"^(\d+)\. `", section(heading), re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 5 <= len(numbers) <= MAX_STEPS[heading]


def test_the_diagram_and_the_table_have_exactly_the_packages() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    drawn = set().union(*diagram_rows())
    table = PAGE.split("| package | content |")[1].split("\n\n")[0]
    assert drawn == packages, "docs/architecture.md: correct the diagram of packages"
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == packages


def test_the_rows_of_the_diagram_are_the_layers_of_imports() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = [{name.strip().split(".")[0] for name in layer.split("|")} for layer in layers]
    below = layers.index("methods.ranker")  # the one module below its package
    assert diagram_rows() == [
        row
        for number, row in enumerate(rows)
        if number != below and (number == 0 or row != rows[number - 1])
    ], "docs/architecture.md: correct the order of packages in the diagram"


def test_the_writers_of_state_exist() -> None:
    table = PAGE.split("## Where state is kept")[1].split("## How to add")[0]
    for name in re.findall(r"`(\w+(?:\.\w+){2,})`", table):
        assert is_attribute(name), f"{line_of(name)}: there is no such object"


def test_the_source_files_that_the_docs_name_exist() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    wrong = [
        f"{page.relative_to(ROOT)}, line {number}: correct `{name}`, which does not exist"
        for page in sorted(pages)
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        for name in re.findall(r"`((?:\w+/)+\w+\.(?:py|js))`", line)
        if not any((base / name).is_file() for base in (ROOT, SOURCE))
    ]
    assert not wrong, "\n".join(wrong)
