"""What the tests of fetching share: a local server that misbehaves when asked to."""

from collections.abc import Iterator

import pytest

from tests.checkins.fetching import GZ, ZIP, Publish, Waits
from tests.checkins.file_server import FileServer, serving
from tests.checkins.small_sources import GOWALLA, TSMC2014


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as served:
        served.files = {GZ: GOWALLA, ZIP: TSMC2014}
        yield served


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch, server: FileServer) -> Publish:
    return Publish(monkeypatch, server)
