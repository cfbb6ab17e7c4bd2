"""A local server with small data sets in place of the public ones, which fails on request."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.checkins import fetch as module
from castpoi.checkins.fetch import DATASETS, Dataset, Fetched, fetch
from castpoi.core.progress import SILENCE, Progress
from tests.checkins.file_server import FileServer, serving
from tests.checkins.small_sources import GOWALLA, TSMC2014, small

GZ = "loc-gowalla_totalCheckins.txt.gz"
ZIP = "dataset_tsmc2014.zip"
NYC = "dataset_TSMC2014_NYC.txt"
HALF = len(GOWALLA) // 2


class Site:
    """The server, the folder for downloads, and the pauses between attempts."""

    def __init__(self, server: FileServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server, self.folder, self.monkeypatch = server, folder, monkeypatch
        self.pauses: list[float] = []
        server.files = {GZ: GOWALLA}
        self.publish(small("gowalla", GOWALLA, server.url(GZ), checksum="md5"))
        self.publish_zip(TSMC2014)

    def publish(self, data: Dataset) -> None:
        self.monkeypatch.setitem(DATASETS, data.name, data)

    def publish_zip(self, content: bytes) -> None:
        self.server.files[ZIP] = content
        for name in ("nyc", "tky"):
            self.publish(small(name, content, self.server.url(ZIP)))

    def fetch(
        self,
        dataset: str = "gowalla",
        *,
        attempts: int = 3,
        silence_seconds: float = 10.0,
        mirror: str | None = None,
        progress: Progress = SILENCE,
    ) -> Fetched:
        waits = tuple(map(float, range(1, attempts)))
        self.monkeypatch.setattr(module, "_WAITS_SECONDS", waits)
        self.monkeypatch.setattr(module, "_SILENCE_SECONDS", silence_seconds)
        self.monkeypatch.setattr("castpoi.checkins.fetch.time.sleep", self.pauses.append)
        if mirror is not None:
            self.publish(replace(DATASETS[dataset], urls=(mirror,)))
        return fetch(dataset, self.folder, progress=progress)

    def put(self, name: str, content: bytes) -> Path:
        """A file that somebody put into the folder."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_bytes(content)
        return self.folder / name

    @property
    def names(self) -> set[str]:
        """Names of the files in the folder."""
        return {path.name for path in self.folder.iterdir()}

    def has_gowalla(self) -> bool:
        """Whether the folder has the complete file of Gowalla."""
        return (self.folder / GZ).read_bytes() == GOWALLA


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as server:
        yield Site(server, tmp_path / "data", monkeypatch)
