"""The notebooks of examples/ run as they are written, on a smaller city."""

import ast
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import castpoi

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))
SMALL = {"users": 20, "places": 60, "days": 30}


def cells(notebook: Path) -> list[dict[str, Any]]:
    found = json.loads(notebook.read_text("utf-8"))["cells"]
    return [each for each in found if each["cell_type"] == "code"]


def shown(code: str, names: dict[str, Any]) -> object:
    """Run a cell; returns the value of its last expression, which a notebook shows."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "cell", "exec"), names)  # our own notebook
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda each: each.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_city, brief = castpoi.synthesize(**SMALL), partial(castpoi.train, settings={"width": 8})
    monkeypatch.setattr(castpoi, "synthesize", lambda **_: small_city, raising=False)
    monkeypatch.setattr(castpoi, "train", brief, raising=False)
    names: dict[str, Any] = {}
    for cell in cells(notebook):
        value = shown("".join(cell["source"]), names)
        outputs = [each["output_type"] for each in cell["outputs"]]
        assert "error" not in outputs
        if hasattr(value, "_repr_html_"):
            assert value._repr_html_()
            assert "execute_result" in outputs, "run the notebook before you commit it"


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) == 3
