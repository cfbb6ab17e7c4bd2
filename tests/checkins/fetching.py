"""What the tests of fetching share: patience without waiting, and small files as published ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from castpoi.checkins.download import Patience
from castpoi.checkins.fetch import DATASETS, Dataset, Fetched
from castpoi.core.progress import Task
from tests.checkins.file_server import FileServer
from tests.checkins.small_sources import GOWALLA, TSMC2014, small

GZ = "loc-gowalla_totalCheckins.txt.gz"
ZIP = "dataset_tsmc2014.zip"
NYC = "dataset_TSMC2014_NYC.txt"
HALF = len(GOWALLA) // 2


class Waits(list[float]):
    """The waits between attempts, noted instead of waited."""

    @property
    def patience(self) -> Patience:
        return Patience(attempts=3, silence_seconds=10, sleep=self.append)


class Publish:
    """Lets small data sets stand for the public ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, server: FileServer) -> None:
        self.monkeypatch, self.server = monkeypatch, server

    def __call__(self, source: Dataset) -> None:
        self.monkeypatch.setitem(DATASETS, source.name, source)

    def gowalla(self, checksum: str | None = "md5") -> None:
        self(small("gowalla", GOWALLA, self.server.url(GZ), checksum=checksum))

    def tsmc2014(self, dataset: str = "nyc", content: bytes = TSMC2014) -> None:
        self.server.files[ZIP] = content
        self(small(dataset, content, self.server.url(ZIP)))


@dataclass(frozen=True)
class Heard:
    """Progress that writes down what it hears."""

    tasks: list[tuple[str, float | None, list[float]]]

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        amounts: list[float] = []
        self.tasks.append((name, total, amounts))
        yield HeardTask(amounts)


@dataclass(frozen=True)
class HeardTask:
    amounts: list[float]

    def advance(self, amount: float = 1) -> None:
        self.amounts.append(amount)

    def describe(self, text: str) -> None:
        pass


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def is_whole(fetched: Fetched, folder: Path) -> bool:
    return fetched.file == folder / GZ and fetched.file.read_bytes() == GOWALLA
