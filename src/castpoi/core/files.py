"""Folders that appear whole or not at all, and the files in them: JSON, parquet and checksums.

`--overwrite` removes the files that castpoi writes into a kind of folder (`KINDS`) and no others: a
folder that also contains something else is refused.

The manifest of a city, run or result has the SHA-256 of every file and of its own entries, compared
at load, so no change of a stored file goes unnoticed.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl
from polars.exceptions import PanicException, PolarsError

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.staging import exchange, recover, staging_beside, sweep, sync, sync_tree

_MANIFEST: Final = "manifest.json"
SHA256: Final = "sha256"
"""Entry of the manifest: file name -> SHA-256; that of the manifest covers all but itself."""
DAMAGED: Final = (PolarsError, PanicException)
"""Errors of polars for damaged parquet; a PanicException is not an Exception."""


class FolderKind(NamedTuple):
    """One kind of folder."""

    title: str  # its name in errors
    files: tuple[str, ...] = ("*",)  # patterns of the files and folders in it that castpoi writes
    made_by: str = ""  # the command that makes it, if other commands read it
    manifest: str = _MANIFEST  # the file whose `kind` identifies the folder


_OF_RUN: Final = ("manifest.json", "config.json", "log.jsonl")  # kept with a suite's result
_RESULT: Final = (
    *("manifest.json", "metrics.json", "ranks.parquet"),
    *("run", *(f"run/{name}" for name in _OF_RUN)),
)
_RUN: Final = (*_OF_RUN, "model.safetensors", "places.parquet")
_CITY: Final = (
    "manifest.json",
    *(f"{table}.parquet" for table in ("checkins", "users", "places", "split")),
)
_REPORT: Final = (
    "manifest.json",
    "report.html",
    *("tables", "tables/*.md", "tables/*.csv", "tables/*.tex"),
    *("figures", "figures/*.svg", "figures/*.png"),
    *("cards", "cards/*.md"),
)
_TRAINING: Final = (
    *("manifest.json", "checkpoint.json", "epoch-*.safetensors"),
    *("log.jsonl", ".lock", ".*.tmp"),
)

KINDS: Final = {
    "city": FolderKind("city", _CITY, made_by="castpoi data prepare"),
    "run": FolderKind("run", _RUN, made_by="castpoi train"),
    "result": FolderKind("result", _RESULT, made_by="castpoi evaluate"),
    "report": FolderKind("report", _REPORT, made_by="castpoi report"),
    "training": FolderKind("training", _TRAINING),
    "synthesis": FolderKind(
        "synthetic city",
        ("synthesis.json", "checkins.parquet"),
        made_by="castpoi data synthesize",
        manifest="synthesis.json",
    ),
    "batch": FolderKind("batch of recommendations", ("manifest.json", "part-*", "_SUCCESS")),
    # replaced piece by piece, each piece under its own kind, so any other file may stay in it
    "demo": FolderKind("demo", made_by="castpoi demo"),
}
"""All kinds, by the word in their manifests."""


@contextmanager
def new_folder(target: Path, *, kind: str, overwrite: bool = False) -> Iterator[Path]:
    """Build a folder in a staging folder and move it to the target when the block succeeds.

    `kind` is one of `KINDS`. With `overwrite` a previous folder of the same kind is replaced,
    unless it holds files that castpoi did not write. If `target` is a link, the folder that it
    points to is built, and the link stays. At the end the folder is written to the disk.
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
    """Move a folder to its target; a previous target is moved to where the new folder was."""
    try:
        new.rename(target)  # replaces an empty folder; the system refuses to replace any other
    except OSError:
        if not target.exists():
            raise
        # the target may have been created since this command began
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
    """Turn an error of the disk into a sentence with the option to change."""
    try:
        yield
    except OSError as problem:
        raise BadInput(
            f"{target} cannot be written: {problem.strerror or problem}; choose another {option}"
        ) from problem


def check_vacant(target: Path, *, kind: str, overwrite: bool) -> None:
    """Refuse a target that exists or cannot be written, before any work is done."""
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
            f"{target} also holds {others[0]}{more}, which castpoi did not write and "
            "--overwrite would remove; move it away, or choose another --out"
        )


def check_writable(target: Path) -> None:
    """Refuse a target that cannot be written; clean up after killed commands (see `sweep`)."""
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
    """Whether the manifest of the folder is that of a `kind`."""
    try:
        manifest = json.loads((folder / KINDS[kind].manifest).read_bytes())
        return bool(manifest.get("kind") == kind)
    except (OSError, ValueError, AttributeError):
        return False


def find_folders(folders: Sequence[Path], kind: str) -> list[Path]:
    """The folders of a kind among the given ones and directly inside them, each once.

    A folder without any is returned as it is; reading it raises an error.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        shown = [each for each in sorted(folder.glob("*")) if not each.name.startswith(".")]
        inside = [each for each in shown if is_folder_of(each, kind)]
        for each in [folder] if is_folder_of(folder, kind) or not inside else inside:
            found.setdefault(each.resolve(), each)
    return list(found.values())


def read_manifest(folder: Path, *, kind: str, needs: Set[str] = frozenset()) -> dict[str, Any]:
    """Read the manifest of a city, run or result, with at least the keys in `needs`."""
    fix = f"choose another folder, or make a {kind} with '{KINDS[kind].made_by}'"
    if not folder.is_dir():
        recover(folder)
    if not folder.is_dir():
        raise BrokenFolder(f"{folder} is not a folder; expected a {kind}; {fix}")
    path = folder / _MANIFEST
    if not path.is_file():
        raise BrokenFolder(f"{folder} has no manifest.json, so it is not a {kind}; {fix}")
    manifest = read_json(path)
    if manifest.get("kind") != kind:
        found = f"is a {manifest['kind']}" if "kind" in manifest else "is something else"
        raise BrokenFolder(f"{folder} {found}, expected a {kind}; {fix}")
    if lacking := needs - manifest.keys():
        raise BrokenFolder(
            f"the manifest of {folder} lacks {', '.join(sorted(lacking))}; make the {kind} again "
            f"with '{KINDS[kind].made_by}'"
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
            f"{path} is a JSON {type(content).__name__}, expected an object; {again}"
        )
    return content


def read_or_nothing(path: Path) -> dict[str, Any]:
    """One JSON object from a file; empty if the file is missing or damaged."""
    try:
        return read_json(path)
    except BrokenFolder:
        return {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write one JSON object to a file, whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text to a file, whole or not at all."""
    staging = path.with_name(f".{path.name}.tmp")
    try:
        staging.write_text(text, encoding="utf-8")
        sync(staging)  # or a power cut could leave an empty file under the name
        staging.replace(path)
    except BaseException:
        if staging.parent.is_dir():
            staging.unlink(missing_ok=True)
        raise


def other_files(folder: Path, kind: str) -> list[str]:
    """Paths inside a folder of a kind that castpoi does not write there, sorted."""
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    patterns = KINDS[kind].files
    return [path for path in found if not any(fnmatchcase(path, each) for each in patterns)]


def write_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the manifest of a folder with the checksums of its files, and return it."""
    entries = {name: value for name, value in manifest.items() if name != SHA256}
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != _MANIFEST]
    checksums = {path.name: _sha256_of(path) for path in files}
    own = _sha256_of_entries({**entries, SHA256: checksums})
    sealed = {**entries, SHA256: {**checksums, _MANIFEST: own}}
    write_json(folder / _MANIFEST, sealed)
    return sealed


@dataclass(frozen=True, kw_only=True)
class OfMethod:
    """A run or a result, which has a manifest."""

    manifest: dict[str, Any]

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.manifest["method"])

    @property
    def seed(self) -> int:
        """Seed of its training."""
        return int(self.manifest["seed"])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of its city."""
        return str(self.manifest["fingerprint"])


def check_files(folder: Path, manifest: dict[str, Any], names: Iterable[str]) -> None:
    """Refuse a folder whose manifest, or one of these files, has changed since it was written."""
    if faults := file_faults(folder, manifest, names):
        raise BrokenFolder(
            f"{folder} has changed since it was made: {', '.join(faults)}; make it again with "
            f"'{KINDS[manifest['kind']].made_by}'"
        )


def file_faults(folder: Path, manifest: dict[str, Any], names: Iterable[str]) -> tuple[str, ...]:
    """Return one sentence for each of these files that has changed, and for the manifest."""
    stored = manifest[SHA256] if isinstance(manifest[SHA256], dict) else {}
    faults = [_fault_of(folder / name, stored.get(name)) for name in names]
    checksums = {name: value for name, value in stored.items() if name != _MANIFEST}
    if stored.get(_MANIFEST) != _sha256_of_entries({**manifest, SHA256: checksums}):
        faults.append(f"{_MANIFEST} does not have the SHA-256 of its own entries")
    return tuple(fault for fault in faults if fault is not None)


def _fault_of(path: Path, stored: object) -> str | None:
    try:
        found = _sha256_of(path)
    except FileNotFoundError:
        return f"{path.name} is missing"
    except OSError as problem:
        return f"{path.name} cannot be read ({problem.strerror})"
    return None if found == stored else f"{path.name} does not have the SHA-256 of its manifest"


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_entries(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def write_private_table(
    table: pl.DataFrame | pl.LazyFrame, path: Path, *, metadata: dict[str, str] | None = None
) -> None:
    """Write a table, with metadata of the file, to a new file that only its owner may read."""
    path.touch(mode=0o600)
    write = table.write_parquet if isinstance(table, pl.DataFrame) else table.sink_parquet
    write(path, compression="zstd", metadata=metadata)


def read_table(
    path: Path,
    schema: pl.Schema,
    *,
    how_to_fix: str,
    optional: Set[str] = frozenset(),
) -> pl.DataFrame:
    """Read the columns of a schema, in its order and types; `optional` ones may be missing.

    `how_to_fix` ends the sentences of errors.
    """
    try:
        frame = pl.read_parquet(path, glob=False)
        missing = [pl.lit(None).alias(name) for name in optional - set(frame.columns)]
        return frame.with_columns(missing).select(schema.names()).cast(schema)
    except FileNotFoundError as problem:
        raise BrokenFolder(f"{path} is missing; {how_to_fix}") from problem
    except OSError as problem:
        raise BrokenFolder(f"{path} cannot be read: {_brief(problem)}; {how_to_fix}") from problem
    except DAMAGED as problem:
        raise BrokenFolder(f"{path} is damaged ({_brief(problem)}); {how_to_fix}") from problem


def _brief(problem: BaseException) -> str:
    return str(problem).strip().splitlines()[0][:160]
