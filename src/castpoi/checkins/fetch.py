"""Downloading public data sets into a folder, with every check that is possible.

    FOLDER/FILE                    the input of `castpoi data prepare`
    FOLDER/FILE.source.json        address, size, SHA-256, checks, date, what to cite
    FOLDER/dataset_tsmc2014.zip    kept, because New York and Tokyo are in the same zip
    FOLDER/FILE.part               an unfinished download; the next command resumes it

A file gets its name only after every check has passed. A file that is there already is checked in
the same way and never removed. Without a published checksum a file is checked by the CRC in its zip
or gzip and by its number of rows.
"""

import gzip
import hashlib
import shlex
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Final

from castpoi.checkins.download import Patience, download
from castpoi.core.errors import BadInput, DownloadFailed
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import now_utc

_LONGEST_TEXT: Final = 8 << 30  # limit for an unpacked file in bytes; a longer one is a zip bomb
_CHUNK: Final = 1 << 20
GIT_BLOB: Final = "git blob id"
"""Method of a checksum: the id that git gives the content of a file."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A public data set: its addresses, and the published facts about its file."""

    name: str  # the word on the command line
    urls: tuple[str, ...]  # of the same file, tried in turn
    published: str  # name of the published file, a zip or a gzip
    members: tuple[str, ...] = ()  # for a zip, the possible names of the check-ins in it
    size: int | None = None  # published size of the file in bytes, if known
    checksum: tuple[str, str] | None = None  # published, if known: (method in `hashlib`, digits)
    text_checksums: tuple[tuple[str, str], ...] = ()  # the same of copies of the unpacked file
    recipe: str | None = None  # the cleaning recipe of the paper for the raw file
    min_rows: int  # number of check-ins according to the publisher; the file may have more
    page: str  # description by its publisher
    citation: str  # what to cite, and the terms of use

    @property
    def file(self) -> str:
        """Name of the file that `castpoi data prepare` reads."""
        return self.members[0].rpartition("/")[2] if self.members else self.published


def _tsmc2014(
    name: str, member: str, min_rows: int, text_checksums: tuple[tuple[str, str], ...] = ()
) -> Dataset:
    hosts = ("www-public.imtbs-tsp.eu", "www-public.it-sudparis.eu", "www-public.tem-tsp.eu")
    return Dataset(
        name=name,
        urls=tuple(f"http://{host}/~zhang_da/pub/dataset_tsmc2014.zip" for host in hosts),
        published="dataset_tsmc2014.zip",
        # in a folder of the zip, where public loaders open them
        members=(f"dataset_tsmc2014/{member}", member),
        # stated by scikit-mobility, skmob/data/datasets/foursquare_nyc/foursquare_nyc.json
        checksum=("sha256", "cbe3fdab373d24b09b5fc53509c8958c77ff72b6c1a68589ce337d4f9a80235b"),
        text_checksums=text_checksums,
        recipe="tky",
        min_rows=min_rows,  # dataset_TSMC2014_readme.txt of the authors
        page="https://sites.google.com/site/yangdingqi/home/foursquare-dataset",
        citation="For research; no licence is stated, the authors ask to be cited: D. Yang, "
        "D. Zhang, V. W. Zheng, Z. Yu. Modeling User Activity Preference by Leveraging User "
        "Spatial Temporal Characteristics in LBSNs. IEEE Transactions on Systems, Man, and "
        "Cybernetics: Systems 45(1), 129-142, 2015.",
    )


def _snap(name: str, *, min_rows: int) -> Dataset:
    published = f"loc-{name}_totalCheckins.txt.gz"
    return Dataset(
        name=name,
        urls=(f"https://snap.stanford.edu/data/{published}",),
        published=published,
        min_rows=min_rows,  # the page of SNAP; the files have a few more
        page=f"https://snap.stanford.edu/data/loc-{name}.html",
        citation="For research; no licence is stated, cite: E. Cho, S. A. Myers, J. Leskovec. "
        "Friendship and Mobility: User Movement in Location-Based Social Networks. KDD 2011.",
    )


DATASETS: Final[dict[str, Dataset]] = {
    "nyc": _tsmc2014("nyc", "dataset_TSMC2014_NYC.txt", 227_428),
    "tky": _tsmc2014(
        "tky",
        "dataset_TSMC2014_TKY.txt",
        573_703,
        # of two copies in public repositories, which may be the same bytes
        text_checksums=(
            (GIT_BLOB, "25e34d9664e26d410d4ab13a398488b98c4b30b7"),
            ("sha256", "85542c605ce708d8584637756590383a84e9bbdb71342d0d8e78858ba2a0e5c8"),
        ),
    ),
    "gowalla": replace(
        _snap("gowalla", min_rows=6_442_890),
        # size and md5: sisinflab/DataRec, datarec/datasets/gowalla/gowalla_checkins.py
        size=105_470_044,
        checksum=("md5", "8ebd5ed2dd376d8982987c49429cb9f9"),
    ),
    # no size and no checksum of it is published as far as we know
    "brightkite": _snap("brightkite", min_rows=4_491_143),
}
"""The public data sets by the word on the command line."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A public data set in its folder, complete and checked."""

    dataset: str
    file: Path
    bytes: int
    rows: int
    seconds: float
    downloaded: bool  # False if the file was there already
    resumed: bool  # whether an unfinished download was continued
    checksum: str  # the published checksum that the file was compared with, or that none is known


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """The properties of a file that passed all checks."""

    bytes: int
    sha256: str
    rows: int
    checks: list[str]
    checksum: str = "checksum not known"


def fetch(
    dataset: str,
    folder: Path,
    *,
    progress: Progress = SILENCE,
    patience: Patience | None = None,
) -> Fetched:
    """Download a public data set to a folder, from its publisher.

    Raises:
        DownloadFailed: no address has the published file; the sentence explains the way by hand.
        BadInput: the data set is unknown, or the folder not writable.
    """
    if dataset not in DATASETS:
        known = ", ".join(DATASETS)
        raise BadInput(f"no public data set is called {dataset!r}; castpoi can fetch {known}")
    data, started = DATASETS[dataset], time.perf_counter()
    file, published = folder / data.file, folder / data.published
    resumed = False
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with writing(file):
        is_new = not file.exists() and not published.exists()
        if is_new:
            checked, resumed = _download(data, published, patience or Patience(), progress)
        else:
            checked = _check_present(file if file.exists() else published, data, progress)
        if not file.exists():
            checked = _unpack(published, file, data, checked.checksum, progress)
    return Fetched(
        dataset=dataset,
        file=file,
        bytes=checked.bytes,
        rows=checked.rows,
        seconds=time.perf_counter() - started,
        downloaded=is_new,
        resumed=resumed,
        checksum=checked.checksum,
    )


def record_of(file: Path) -> Path:
    """The file with the origin of a data set, next to it."""
    return file.with_name(file.name + ".source.json")


def _check_present(file: Path, data: Dataset, progress: Progress) -> _Checked:
    """Check a file that is there already: against its record, otherwise against what is known."""
    record = read_or_nothing(record_of(file))
    names = [each.name for each in fields(_Checked)]
    with progress.task(f"checking {file.name}"):
        if all(name in record for name in names):
            if record["sha256"] == _digest_of(file, "sha256"):
                return _Checked(**{name: record[name] for name in names})
            raise DownloadFailed(
                f"{file} has changed since {record_of(file).name} was written; remove both to "
                "download it again, or only the latter to check the file as it is"
            )
        try:
            checked = _checked(file, data, is_published=file.name == data.published)
        except DownloadFailed as problem:
            raise DownloadFailed(
                f"{file} is not the published file: {problem}; remove it to download it again or, "
                "if you trust it, use it with 'castpoi data prepare' as it is"
            ) from problem
    _write_record(file, data, checked, None)
    return checked


def _write_record(file: Path, data: Dataset, checked: _Checked, url: str | None) -> None:
    write_json(
        record_of(file),
        {
            "dataset": data.name,
            "url": url,
            "origin": "downloaded" if url else "found in the folder",
            **asdict(checked),
            "fetched_at_utc": now_utc(),
            "page": data.page,
            "citation": data.citation,
        },
    )


def _checked(path: Path, data: Dataset, *, is_published: bool) -> _Checked:
    """Check a published zip or gzip by all that is known, an unpacked text by its rows; its
    checksum is noted if it is that of a known copy."""
    checks: list[str] = []
    size = path.stat().st_size
    copies = () if is_published else data.text_checksums
    checksum = data.checksum if is_published else None
    if is_published and data.size is not None:
        if size != data.size:
            raise DownloadFailed(f"it has {size:,} bytes, the published file has {data.size:,}")
        checks.append("size")
    if checksum is not None:
        method, expected = checksum
        found = _digest_of(path, method)
        if found != expected:
            raise DownloadFailed(f"its {method} is {found}, that of the published file {expected}")
        checks.append(method)
    with _unpacked(path, data) if is_published else path.open("rb") as text:
        rows = _count_rows(text, data.min_rows)
    checks += ["integrity", "rows"] if is_published else ["rows"]
    checked = _Checked(bytes=size, sha256=_digest_of(path, "sha256"), rows=rows, checks=checks)
    if known := [method for method, digits in copies if _digest_of(path, method) == digits]:
        return replace(checked, checksum=f"{known[0]} of a known copy", checks=[*known, *checks])
    return replace(checked, checksum=f"{checksum[0]} of {data.published}") if checksum else checked


def _digest_of(path: Path, method: str) -> str:
    started = hashlib.new("sha1" if method == GIT_BLOB else method, usedforsecurity=False)
    if method == GIT_BLOB:
        started.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as content:
        return hashlib.file_digest(content, lambda: started).hexdigest()


@contextmanager
def _unpacked(path: Path, data: Dataset) -> Iterator[IO[bytes]]:
    """The text in a zip or gzip; a reader at its end has checked its CRC."""
    try:
        if not data.members:
            with gzip.open(path) as text:
                yield text  # type: ignore[misc]  # GzipFile reads bytes like any binary file
            return
        with zipfile.ZipFile(path) as folder:
            names = [name for name in data.members if name in folder.namelist()]
            if not names:
                raise DownloadFailed(f"it has no {data.file}")
            with folder.open(names[0]) as text:
                yield text
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as problem:
        kind = "zip" if data.members else "gzip"
        raise DownloadFailed(f"it is not a complete {kind} file: {problem}") from problem
    except (NotImplementedError, RuntimeError) as problem:  # encryption or unknown compression
        raise DownloadFailed(f"it cannot be unpacked: {problem}") from problem


def _count_rows(text: IO[bytes], least: int) -> int:
    rows, length, last = 0, 0, b"\n"
    while chunk := text.read(_CHUNK):
        rows += chunk.count(b"\n")
        length += len(chunk)
        last = chunk[-1:]
        if length > _LONGEST_TEXT:
            raise DownloadFailed(f"it unpacks to more than {_LONGEST_TEXT:,} bytes")
    rows += last != b"\n"
    if rows < least:
        raise DownloadFailed(f"it has {rows:,} rows, at least {least:,} are published")
    return rows


def _unpack(
    published: Path, file: Path, data: Dataset, checksum: str, progress: Progress
) -> _Checked:
    staging = file.with_name(f".{file.name}.tmp")
    try:
        with progress.task(f"unpacking {file.name}"):
            with _unpacked(published, data) as text, staging.open("wb") as sink:
                shutil.copyfileobj(text, sink)
            checked = replace(_checked(staging, data, is_published=False), checksum=checksum)
            staging.replace(file)
    except DownloadFailed as problem:
        raise DownloadFailed(
            f"{published} cannot be unpacked to {file.name}: {problem}; remove it to download it "
            "again"
        ) from problem
    finally:
        staging.unlink(missing_ok=True)
    _write_record(file, data, checked, read_or_nothing(record_of(published)).get("url"))
    return checked


def _download(
    data: Dataset, target: Path, patience: Patience, progress: Progress
) -> tuple[_Checked, bool]:
    """Download and check a file from the first address that has it; and whether it was resumed."""
    part = target.with_name(target.name + ".part")
    reasons = []
    for url in data.urls:
        try:
            checked, resumed = _download_checked(data, url, part, patience, progress)
        except DownloadFailed as problem:
            reasons.append(str(problem))
            continue
        part.replace(target)
        _write_record(target, data, checked, url)
        return checked, resumed
    raise DownloadFailed(
        f"{data.name} cannot be downloaded: {'; '.join(reasons)}. "
        f"Download {data.published} by hand from {data.urls[0]} (described at {data.page}) "
        f"or from a copy you trust, put it at {target.absolute()} and run 'castpoi data fetch "
        f"{data.name} --out {shlex.quote(str(target.parent))}' again to check it."
    )


def _download_checked(
    data: Dataset, url: str, part: Path, patience: Patience, progress: Progress
) -> tuple[_Checked, bool]:
    for _ in range(2):
        resumed = download(url, part, size=data.size, patience=patience, progress=progress)
        try:
            with progress.task(f"checking {data.published}"):
                return _checked(part, data, is_published=True), resumed
        except DownloadFailed as problem:
            part.unlink()
            failed = problem
        if not resumed:  # otherwise its two halves may be of different files: once more, in one go
            break
    raise DownloadFailed(f"{url} has another file: {failed}") from failed
