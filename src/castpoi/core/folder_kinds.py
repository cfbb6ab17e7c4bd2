"""The kinds of folders that castpoi writes, and the files that it writes into each.

`--overwrite` removes these files and no others: a folder that also holds something else is refused.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class FolderKind:
    """One kind of folder."""

    title: str
    """What an error message calls it."""
    files: tuple[str, ...] = ("*",)
    """Patterns of the files and folders in it that castpoi writes."""
    made_by: str = ""
    """The command that makes one, where other commands read it."""
    manifest: str = "manifest.json"
    """The file whose `kind` identifies the folder."""


_RUN: Final = ("manifest.json", "config.json", "log.jsonl", "model.safetensors", "places.parquet")
_RESULT: Final = ("manifest.json", "metrics.json", "ranks.parquet", "top.parquet")
_OF_SUITE: Final = (
    "experiment.json",
    ".experiment.json.tmp",
    "run",
    "run/manifest.json",
    "run/config.json",
    "run/log.jsonl",
)
"""Added to a result by `castpoi reproduce`."""
_CITY: Final = (
    "manifest.json",
    "checkins.parquet",
    "users.parquet",
    "places.parquet",
    "split.parquet",
)
_REPORT: Final = (
    "manifest.json",
    "report.html",
    *("tables", "tables/*.md", "tables/*.csv", "tables/*.tex"),
    *("figures", "figures/*.svg", "figures/*.png"),
    *("cards", "cards/*.md"),
)
_TRAINING: Final = (
    "manifest.json",
    "checkpoint.json",
    "epoch-*.safetensors",
    "log.jsonl",
    ".lock",
    ".*.tmp",
)

KINDS: Final = {
    "city": FolderKind("city", _CITY, made_by="castpoi data prepare"),
    "run": FolderKind("run", _RUN, made_by="castpoi train"),
    "result": FolderKind("result", (*_RESULT, *_OF_SUITE), made_by="castpoi evaluate"),
    "report": FolderKind("report", _REPORT),
    "training": FolderKind("training", _TRAINING),
    "synthesis": FolderKind(
        "synthetic city", ("synthesis.json", "checkins.parquet"), manifest="synthesis.json"
    ),
    # replaced piece by piece, each piece under its own kind, so any other file may stay in it
    "demo": FolderKind("demo"),
}
"""All kinds, by the word in their manifests."""


def other_files(folder: Path, kind: str) -> list[str]:
    """Paths inside a folder of a kind that castpoi does not write there, sorted."""
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    patterns = KINDS[kind].files
    return [path for path in found if not any(fnmatchcase(path, each) for each in patterns)]
