"""Folders that appear whole or not at all, and JSON that reads the same everywhere."""

import json
import shutil
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from castpoi.core.errors import BadInput, BrokenFolder

_MADE_BY: Final = {
    "city": "castpoi data prepare",
    "run": "castpoi train",
    "result": "castpoi evaluate",
}
"""The command that makes a folder of each kind that a person may name."""


@contextmanager
def new_folder(target: Path, *, kind: str, overwrite: bool = False) -> Iterator[Path]:
    """Build a folder beside `target` and move it there only when the block succeeds.

    `kind` is the word for what is built ("city", "run", "result"). With `overwrite` a former
    folder of the same kind is replaced; anything else that stands there is never touched. Where
    `target` is a link, the folder that it leads to is built, and the link stays.
    """
    check_vacant(target, kind=kind, overwrite=overwrite)
    with writing(target):
        target = target.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
        staging.mkdir()  # as open to others as this person's new folders are
    try:
        yield staging
        _put(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _put(new: Path, target: Path) -> None:
    """Move a folder to its place; a former one goes when the new one stands there."""
    if not target.exists():
        new.replace(target)
        return
    former = new.with_name(new.name + ".former")
    target.replace(former)
    try:
        new.replace(target)
    except BaseException:
        former.replace(target)
        raise
    shutil.rmtree(former)


@contextmanager
def writing(target: Path, *, option: str = "--out") -> Iterator[None]:
    """Turn a refusal of the disk into a sentence that names the option to change."""
    try:
        yield
    except OSError as problem:
        raise BadInput(
            f"{target} cannot be written: {problem.strerror or problem}; choose another {option}"
        ) from problem


def check_vacant(target: Path, *, kind: str, overwrite: bool) -> None:
    """Refuse a target that is taken or cannot be, before any work is done."""
    above = next(folder for folder in target.absolute().parents if folder.exists())
    if not above.is_dir():
        raise BadInput(f"{target} cannot be written: {above} is a file; choose another --out")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_folder_of(target, kind):
        raise BadInput(f"{target} exists and is not a {kind}; choose another --out")
    if not overwrite:
        raise BadInput(
            f"{target} already holds a {kind}; choose another --out or replace it with --overwrite"
        )


def is_folder_of(folder: Path, kind: str) -> bool:
    """Whether the folder holds what its manifest calls a `kind`."""
    try:
        return bool(json.loads((folder / "manifest.json").read_bytes()).get("kind") == kind)
    except (OSError, ValueError, AttributeError):
        return False


def read_manifest(folder: Path, *, kind: str, needs: Set[str] = frozenset()) -> dict[str, Any]:
    """The manifest of a city, run or result, which says at least what is needed."""
    way_out = f"name another folder, or make a {kind} with '{_MADE_BY[kind]}'"
    if not folder.is_dir():
        raise BrokenFolder(f"{folder} is not a folder; a {kind} is expected there: {way_out}")
    path = folder / "manifest.json"
    if not path.is_file():
        raise BrokenFolder(f"{folder} has no manifest.json, so it is not a {kind}; {way_out}")
    manifest = read_json(path)
    if manifest.get("kind") != kind:
        found = f"a {manifest['kind']}" if "kind" in manifest else "something else"
        raise BrokenFolder(f"{folder} holds {found}, but a {kind} is expected there: {way_out}")
    if lacking := needs - manifest.keys():
        raise BrokenFolder(
            f"the manifest of {folder} does not say {', '.join(sorted(lacking))}; make the {kind} "
            f"again with '{_MADE_BY[kind]}'"
        )
    return manifest


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object from a file."""
    again = f"make {path.parent} again"
    try:
        content = json.loads(path.read_bytes())
    except OSError as problem:
        raise BrokenFolder(f"{path} cannot be read: {problem.strerror}; {again}") from problem
    except ValueError as problem:
        raise BrokenFolder(f"{path} is not valid JSON: {problem}; {again}") from problem
    if not isinstance(content, dict):
        raise BrokenFolder(
            f"{path} holds a {type(content).__name__}, an object is expected; {again}"
        )
    return content


def read_or_nothing(path: Path) -> dict[str, Any]:
    """The same of a file that may be absent or torn: then it is empty, as if it had never been."""
    try:
        return read_json(path)
    except BrokenFolder:
        return {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """One JSON object to a file, whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """A text to a file, whole or not at all."""
    staging = path.with_name(f".{path.name}.tmp")
    try:
        staging.write_text(text, encoding="utf-8")
        staging.replace(path)
    except BaseException:
        if staging.parent.is_dir():
            staging.unlink(missing_ok=True)
        raise
