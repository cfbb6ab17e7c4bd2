"""SHA-256 of every file of a city, stored in its manifest and compared at load.

The fingerprint covers the content of a split, the same for every machine and every library. The
checksums cover what it leaves out: row numbers, names, zones, local offsets and the manifest.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

SHA256: Final = "sha256"
"""Entry of the manifest: file name -> SHA-256; for the manifest itself, of its other entries."""
_MANIFEST: Final = "manifest.json"


def with_checksums(manifest: dict[str, Any], folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """The manifest with the SHA-256 of these files of the folder, and its own."""
    checksums = {name: _sha256_of(folder / name) for name in names}
    return {**manifest, SHA256: {**checksums, _MANIFEST: _sha256_of_entries(manifest)}}


def file_faults(manifest: dict[str, Any], folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """What is wrong with these files and the manifest, in words; empty if nothing is."""
    entries = {name: value for name, value in manifest.items() if name != SHA256}
    stored = manifest[SHA256] if isinstance(manifest[SHA256], dict) else {}
    faults = [_fault_of(folder / name, stored.get(name)) for name in names]
    if stored.get(_MANIFEST) != _sha256_of_entries(entries):
        faults.append(f"{_MANIFEST} does not have the SHA-256 of its own entries")
    return tuple(fault for fault in faults if fault is not None)


def _fault_of(path: Path, stored: object) -> str | None:
    try:
        found = _sha256_of(path)
    except FileNotFoundError:
        return f"{path.name} is missing"
    except OSError as problem:
        return f"{path.name} cannot be read ({problem.strerror})"
    if found == stored:
        return None
    return f"{path.name} has SHA-256 {found[:12]}, the manifest says {str(stored)[:12]}"


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_entries(entries: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()
