"""SHA-256 of every file of a city, run or result, stored in its manifest and compared at load.

The manifest has a checksum of its own entries too, so no change of a stored file goes unnoticed.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import KINDS, write_json

SHA256: Final = "sha256"
"""Entry of the manifest: file name -> SHA-256; that of the manifest covers all but itself."""
_MANIFEST: Final = "manifest.json"


def write_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the manifest of a folder, with the checksums of the files that are in it.

    Returns:
        The manifest with its checksums.
    """
    entries = {name: value for name, value in manifest.items() if name != SHA256}
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != _MANIFEST]
    checksums = {path.name: _sha256_of(path) for path in files}
    own = _sha256_of_manifest({**entries, SHA256: checksums})
    sealed = {**entries, SHA256: {**checksums, _MANIFEST: own}}
    write_json(folder / _MANIFEST, sealed)
    return sealed


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
    if stored.get(_MANIFEST) != _sha256_of_manifest({**manifest, SHA256: checksums}):
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


def _sha256_of_manifest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
