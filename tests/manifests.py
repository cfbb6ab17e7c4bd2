"""Changes of stored folders that their checksums accept."""

from pathlib import Path

from castpoi.core.files import read_json, write_manifest


def accept_changes(folder: Path, **entries: object) -> None:
    """Write the checksums of a changed folder again, with some entries of its manifest changed."""
    write_manifest(folder, {**read_json(folder / "manifest.json"), **entries})
