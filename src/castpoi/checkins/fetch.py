"""Public data sets, from their publishers to a folder, checked and with their origin beside them.

    FOLDER/FILE                what `castpoi data prepare` reads
    FOLDER/FILE.source.json    address, size, SHA-256, checks, day, what to cite
    FOLDER/dataset_tsmc2014.zip    kept, since New York and Tokyo stand in the same zip

A file appears under its name only after every check has passed. What a person put there by hand
is checked in the same way and never removed.
"""

import shlex
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from castpoi.checkins.fetch_check import (
    Checked,
    check_published,
    check_text,
    digest_of,
    unpacked,
)
from castpoi.checkins.fetch_download import Patience, check_address, discard, download, on_disk
from castpoi.checkins.fetch_sources import Source, source_of
from castpoi.core.errors import DownloadFailed
from castpoi.core.files import read_or_nothing, write_json
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import now_utc

_PATIENCE: Final = Patience()


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A public data set that stands in its folder, whole and checked."""

    dataset: str
    file: Path
    bytes: int
    seconds: float
    downloaded: bool
    """False where the file was already there."""
    resumed: bool
    """A part from before was continued."""
    checksum: str
    """The published checksum that the file was held against, or that none is known."""
    rows: int


@dataclass(frozen=True, kw_only=True)
class _Coming:
    """How a file came to stand in the folder."""

    downloaded: bool = False
    resumed: bool = False


def fetch(
    dataset: str,
    folder: Path,
    *,
    mirror: str | None = None,
    progress: Progress = SILENCE,
    patience: Patience = _PATIENCE,
) -> Fetched:
    """Bring a public data set into a folder, from its publisher or from a mirror's address.

    Raises:
        DownloadFailed: no address gives the published file; says what to do by hand.
        BadInput: the data set is unknown, the mirror is no address, the folder not writable.
    """
    source = source_of(dataset)
    if mirror is not None:
        check_address(mirror)
    started = time.perf_counter()
    file = folder / source.file
    with on_disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if _is_there(file):
        checked, coming = _standing(file, source, progress), _Coming()
    else:
        urls = source.urls if mirror is None else (mirror,)
        checked, coming = _bring(source, file, urls, progress, patience)
    return Fetched(
        dataset=dataset,
        file=file,
        bytes=checked.bytes,
        seconds=time.perf_counter() - started,
        downloaded=coming.downloaded,
        resumed=coming.resumed,
        checksum=checked.checksum,
        rows=checked.rows,
    )


def record_of(file: Path) -> Path:
    """Where the origin of a fetched file is written down."""
    return file.with_name(file.name + ".source.json")


def _is_there(path: Path) -> bool:
    with on_disk(path):
        return path.exists()


def _bring(
    source: Source, file: Path, urls: tuple[str, ...], progress: Progress, patience: Patience
) -> tuple[Checked, _Coming]:
    published = file.with_name(source.published)
    if _is_there(published):
        checked, coming = _standing(published, source, progress), _Coming()
    else:
        checked, coming = _download(source, published, urls, progress, patience)
    if not source.members:
        return checked, coming
    with progress.task(f"unpacking {file.name}"):
        checked = _unpack(published, file, source, checked.checksum)
    _write_record(file, source, checked, read_or_nothing(record_of(published)).get("url"))
    return checked, coming


def _download(
    source: Source, target: Path, urls: tuple[str, ...], progress: Progress, patience: Patience
) -> tuple[Checked, _Coming]:
    part = target.with_name(target.name + ".part")
    reasons = []
    for url in urls:
        try:
            checked, coming = _download_checked(source, url, part, progress, patience)
        except DownloadFailed as problem:
            reasons.append(str(problem))
            continue
        with on_disk(target):
            part.replace(target)
        discard(part)
        _write_record(target, source, checked, url)
        return checked, coming
    raise DownloadFailed(_by_hand(source, target, reasons))


def _download_checked(
    source: Source,
    url: str,
    part: Path,
    progress: Progress,
    patience: Patience,
    *,
    is_last_try: bool = False,
) -> tuple[Checked, _Coming]:
    received = download(url, part, size=source.size, patience=patience, progress=progress)
    try:
        with on_disk(part), progress.task(f"checking {source.published}"):
            checked = check_published(part, source)
    except DownloadFailed as problem:
        discard(part)
        if received.resumed and not is_last_try:
            # the halves may not belong together: once more, from the start
            return _download_checked(source, url, part, progress, patience, is_last_try=True)
        raise DownloadFailed(f"{url} gives another file: {problem}") from problem
    return checked, _Coming(downloaded=True, resumed=received.resumed)


def _standing(file: Path, source: Source, progress: Progress) -> Checked:
    """Check a file that is already there: against its record, or anew if it has none."""
    with on_disk(file), progress.task(f"checking {file.name}"):
        recorded = _checked_before(file)
        if recorded is not None and recorded.sha256 == digest_of(file, "sha256"):
            return recorded
        if recorded is not None:
            raise DownloadFailed(
                f"{file} has changed since {record_of(file).name} was written; remove both to "
                "fetch it anew, or only the latter to have the file checked as it is"
            )
        is_published = file.name == source.published
        try:
            checked = check_published(file, source) if is_published else check_text(file, source)
        except DownloadFailed as problem:
            raise DownloadFailed(
                f"{file} is there but is not the published file: {problem}; remove it to fetch it "
                "anew or, if you trust it, give it to 'castpoi data prepare' as it is"
            ) from problem
    _write_record(file, source, checked, None)
    return checked


def _checked_before(file: Path) -> Checked | None:
    record = read_or_nothing(record_of(file))
    try:
        return Checked(
            bytes=file.stat().st_size,
            sha256=str(record["sha256"]),
            rows=int(record["rows"]),
            checks=tuple(record["checks"]),
            checksum=str(record["checksum"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _unpack(published: Path, file: Path, source: Source, checksum: str) -> Checked:
    staging = file.with_name(f".{file.name}.tmp")
    try:
        with on_disk(file):
            with unpacked(published, source) as text, staging.open("wb") as sink:
                shutil.copyfileobj(text, sink)
            checked = check_text(staging, source, checksum=checksum)
            staging.replace(file)
    except DownloadFailed as problem:
        raise DownloadFailed(
            f"{published} does not give {file.name}: {problem}; remove it to fetch it anew"
        ) from problem
    finally:
        staging.unlink(missing_ok=True)
    return checked


def _write_record(file: Path, source: Source, checked: Checked, url: str | None) -> None:
    with on_disk(file):
        write_json(
            record_of(file),
            {
                "dataset": source.dataset,
                "url": url,
                "origin": "downloaded" if url else "found in the folder",
                "bytes": checked.bytes,
                "sha256": checked.sha256,
                "rows": checked.rows,
                "checks": list(checked.checks),
                "checksum": checked.checksum,
                "fetched_at_utc": now_utc(),
                "page": source.page,
                "citation": source.citation,
            },
        )


def _by_hand(source: Source, target: Path, reasons: list[str]) -> str:
    folder = shlex.quote(str(target.parent))
    return (
        f"{source.dataset} could not be fetched: {'; '.join(reasons)}. "
        f"Download {source.published} by hand from {source.urls[0]} (described at {source.page}) "
        f"or from a copy you trust, put it at {target.absolute()} and run "
        f"'castpoi data fetch {source.dataset} --out {folder}' again to check it."
    )
