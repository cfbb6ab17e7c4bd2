"""The code version of a method: a digest of all castpoi code that its numbers depend on.

A result is made by the ranker of a method, its training and the evaluation. From these modules we
follow the imports inside castpoi, by reading the sources (nothing is imported), and digest what is
found. Comments and docstrings do not count, nor do modules that cannot change a number.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Final

from castpoi.methods import Method

_SOURCES: Final = Path(__file__).parents[1]
_PACKAGE: Final = _SOURCES.name
_ROOTS: Final = frozenset({f"{_PACKAGE}.training.train", f"{_PACKAGE}.evaluation.evaluate"})
"""Where the runs and the results of all methods are made."""
_NUMBERLESS: Final = frozenset(
    f"{_PACKAGE}.{name}" for name in ("errors", "files", "methods", "progress", "provenance", "run")
)
"""Modules that tell, store or list, and never change a rank."""


def code_version(method: Method) -> str:
    """SHA-256 over the modules of a method, in the order of their names."""
    digest = hashlib.sha256()
    for module in sorted(modules_of(method)):
        path = _file_of(module)
        if path is not None:
            digest.update(f"{module}\n{_essence(path.read_bytes(), module)[0]}\n".encode())
    return digest.hexdigest()


def modules_of(method: Method) -> set[str]:
    """The modules of castpoi that decide the numbers of a method."""
    references = [reference for reference in (method.ranker, method.trainer) if reference]
    found = {reference.partition(":")[0] for reference in references} | _ROOTS
    # a family of models finds the file of a method by its name (`baselines.sequence_models`)
    own = f"{_PACKAGE}.baselines.{method.name.replace('-', '_')}"
    if _file_of(own) is not None:
        found.add(own)
    waiting = list(found)
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if path is None:  # a method from another package: its version is not ours to know
            continue
        new = _essence(path.read_bytes(), module)[1] - found - _NUMBERLESS
        found |= new
        waiting += new
    return found


def _file_of(module: str) -> Path | None:
    """The source of a module of castpoi; None if there is none."""
    package, *inside = module.split(".")
    if package != _PACKAGE or not inside:
        return None
    path = _SOURCES.joinpath(*inside)
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)


@cache
def _essence(source: bytes, module: str) -> tuple[str, frozenset[str]]:
    """A module without comments and docstrings, and the modules of castpoi it imports."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # saved halfway, while somebody edits it
        return source.decode(errors="replace"), frozenset()
    imported = frozenset(filter(None, _imports(tree, module)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [line for line in node.body if not _is_remark(line)]
    return ast.dump(tree), imported


def _imports(tree: ast.Module, module: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_known(each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            origin = resolve_name(name, module.rpartition(".")[0])
            # `from castpoi.checkins import record` names a module, or something inside one
            yield from (_known(f"{origin}.{each.name}") or _known(origin) for each in node.names)


def _known(module: str) -> str:
    return module if _file_of(module) is not None else ""


def _is_remark(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )
