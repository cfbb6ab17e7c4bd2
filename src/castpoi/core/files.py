"""Folders that appear whole or not at all, and JSON that reads the same everywhere."""

import json
from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.folder_kinds import KINDS, other_files
from castpoi.core.staging import exchange, recover, staging_beside, sweep, sync, sync_tree


@contextmanager
def new_folder(target: Path, *, kind: str, overwrite: bool = False) -> Iterator[Path]:
    """Build a folder in a staging folder and move it to the target when the block succeeds.

    `kind` is one of `KINDS`. With `overwrite` a former folder of the same kind is replaced, unless
    it holds files that castpoi did not write. If `target` is a link, the folder that it points to
    is built, and the link stays. When this returns, the folder is safe on the disk.
    """
    check_vacant(target, kind=kind, overwrite=overwrite)
    with ExitStack() as held:
        with writing(target):
            target = target.resolve()
            staging = held.enter_context(staging_beside(target))
        yield staging
        with writing(target):
            sync_tree(staging)
            _put(staging, target, kind=kind, overwrite=overwrite)
            sync(target.parent)


def _put(new: Path, target: Path, *, kind: str, overwrite: bool) -> None:
    """Move a folder to its target; a former one is moved to where the new one was."""
    try:
        new.rename(target)  # replaces an empty folder; the system refuses to replace any other
    except OSError:
        if not target.exists():
            raise
        # since this command began, somebody may have put something there
        check_vacant(target, kind=kind, overwrite=overwrite)
        exchange(new, target)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Build a file under the yielded path and move it to the target when the block succeeds."""
    check_writable(target)
    with writing(target), staging_beside(target) as staging:
        yield staging / target.name
        sync(staging / target.name)
        (staging / target.name).replace(target)
        sync(target.parent)


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
    """Refuse a folder that is taken or cannot be written, before any work is done."""
    check_writable(target)
    title = KINDS[kind].title
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_folder_of(target, kind):
        raise BadInput(f"{target} exists and is not a {title}; choose another --out")
    if not overwrite:
        raise BadInput(
            f"{target} already holds a {title}; choose another --out or replace it with --overwrite"
        )
    if others := other_files(target, kind):
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise BadInput(
            f"{target} also holds {others[0]}{more}, which castpoi did not write and --overwrite "
            "would remove; move it away, or choose another --out"
        )


def check_writable(target: Path) -> None:
    """Refuse a target that cannot be written; remove what killed commands left next to it.

    A missing target that a killed command was replacing is put back.
    """
    with writing(target):
        try:
            target.stat()  # refuses a loop of links
        except (FileNotFoundError, NotADirectoryError):
            above = next(folder for folder in target.absolute().parents if folder.exists())
            if not above.is_dir():
                raise BadInput(
                    f"{target} cannot be written: {above} is a file; choose another --out"
                ) from None
    sweep(target.resolve())


def is_folder_of(folder: Path, kind: str) -> bool:
    """Whether the folder holds what its manifest calls a `kind`."""
    try:
        manifest = json.loads((folder / KINDS[kind].manifest).read_bytes())
        return bool(manifest.get("kind") == kind)
    except (OSError, ValueError, AttributeError):
        return False


def read_manifest(folder: Path, *, kind: str, needs: Set[str] = frozenset()) -> dict[str, Any]:
    """The manifest of a city, run or result, which says at least what is needed."""
    way_out = f"name another folder, or make a {kind} with '{KINDS[kind].made_by}'"
    if not folder.is_dir():
        recover(folder)
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
            f"again with '{KINDS[kind].made_by}'"
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
        sync(staging)  # or a power cut could leave an empty file under the name
        staging.replace(path)
    except BaseException:
        if staging.parent.is_dir():
            staging.unlink(missing_ok=True)
        raise
