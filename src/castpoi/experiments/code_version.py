"""The code version of a method: a digest of all code that its numbers depend on.

A result is made by the ranker of a method, its training and the evaluation. From these modules we
follow the imports inside castpoi, and inside the package that a method of somebody else comes from,
by reading the sources (nothing is imported), and digest what is found. Comments and docstrings do
not count, nor do modules that cannot change a number. Libraries are left out: the manifest of a run
has their versions.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Final

from castpoi.methods.registry import Method

_SOURCES: Final = Path(__file__).parents[1]
_PACKAGE: Final = _SOURCES.name
_ROOTS: Final = frozenset({f"{_PACKAGE}.training.train", f"{_PACKAGE}.evaluation.evaluate"})
"""Where the runs and the results of all methods are made."""
_NUMBERLESS: Final = frozenset(
    f"{_PACKAGE}.{name}"
    for name in ("errors", "files", "methods", "progress", "provenance", "run", "training.train")
)
"""Modules that tell, store or list, and never change a rank."""


def code_version(method: Method) -> str:
    """SHA-256 over the modules of a method, in the order of their names."""
    digest = hashlib.sha256()
    for module in sorted(modules_of(method)):
        path = _file_of(module)
        if path is not None:
            digest.update(f"{module}\n{_read(path, module).essence}\n".encode())
    return digest.hexdigest()


def modules_of(method: Method) -> set[str]:
    """The modules of castpoi, and of the method's own package, that decide its numbers."""
    references = [reference for reference in (method.ranker, method.trainer) if reference]
    found = {reference.partition(":")[0] for reference in references} | _ROOTS
    packages = {module.partition(".")[0] for module in found}
    # a family of models finds the file of a method by its name (`baselines.sequence_models`)
    own = f"{_PACKAGE}.baselines.{method.name.replace('-', '_')}"
    if _file_of(own) is not None:
        found.add(own)
    waiting = list(found)
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if path is None:  # not written in Python, or gone
            continue
        new = set(_inside(packages, _read(path, module).imports))
        new -= found | _NUMBERLESS
        found |= new
        waiting += new
    return found


def _file_of(module: str) -> Path | None:
    """The source of a module; None if there is none."""
    package, *inside = module.split(".")
    home = _SOURCES if package == _PACKAGE else _home_of(package)
    if home is None or (package == _PACKAGE and not inside):
        return None
    if home.is_file():  # a package of a single file
        return None if inside else home
    path = home.joinpath(*inside)
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)


@cache
def _home_of(package: str) -> Path | None:
    """The folder of an installed package, or its file if it is one alone."""
    spec = find_spec(package)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec.has_location and spec.origin else None


@dataclass(frozen=True)
class _Module:
    """What counts of a source."""

    essence: str
    """All of it but comments and docstrings."""
    imports: frozenset[tuple[str, str]]
    """(module, name in it or empty) of all that it imports, wherever."""


def _read(path: Path, module: str) -> _Module:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return _parsed(path.read_bytes(), package)


@cache
def _parsed(source: bytes, package: str) -> _Module:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # saved halfway, while somebody edits it
        return _Module(source.decode(errors="replace"), frozenset())
    imports = frozenset(_imports(tree, package))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [line for line in node.body if not _is_remark(line)]
    return _Module(ast.dump(tree), imports)


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            origin = resolve_name(name, package)
            yield from ((origin, each.name) for each in node.names)


def _inside(packages: set[str], imports: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Those of the imports that are modules of the given packages."""
    for origin, name in imports:
        if origin.partition(".")[0] in packages:
            # `from castpoi.checkins import record` names a module, or something inside one
            candidates = (f"{origin}.{name}", origin) if name else (origin,)
            yield from [each for each in candidates if _file_of(each) is not None][:1]


def _is_remark(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )
