"""`castpoi data fetch` as a person types it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from castpoi.checkins.fetch import DATASETS
from tests.checkins.file_server import FileServer, serving
from tests.checkins.small_sources import GOWALLA, NYC_TEXT, ROWS, TSMC2014, small
from tests.conftest import CommandLine, documented_keys

GZ = "loc-brightkite_totalCheckins.txt.gz"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as served:
        served.files = {GZ: GOWALLA, "dataset_tsmc2014.zip": TSMC2014}
        url = served.url("dataset_tsmc2014.zip")
        monkeypatch.setitem(DATASETS, "tky", small("tky", TSMC2014, url))
        brightkite = small("brightkite", GOWALLA, served.url(GZ), checksum=None)
        monkeypatch.setitem(DATASETS, "brightkite", brightkite)
        yield served


def test_fetch_says_what_came_and_what_to_do_next(
    castpoi: CommandLine, server: FileServer, tmp_path: Path
) -> None:
    ended = castpoi("data", "fetch", "brightkite", "--out", tmp_path)
    assert ended.code == 0
    assert f"{tmp_path / GZ}: downloaded and checked, 2,000 rows" in ended.out
    assert "(checksum not known)" in ended.out
    assert f"Next: castpoi data prepare {tmp_path / GZ} --out brightkite" in ended.out
    assert ended.err == ""
    again = castpoi("data", "fetch", "brightkite", "--out", tmp_path)
    assert again.code == 0
    assert "already there and checked" in again.out
    assert len(server.asked) == 1


def test_fetch_as_json_is_one_object(
    castpoi: CommandLine, server: FileServer, tmp_path: Path
) -> None:
    file = tmp_path / "dataset_TSMC2014_TKY.txt"
    ended = castpoi("data", "fetch", "tky", "--out", tmp_path, "--json")
    assert ended.code == 0
    content = ended.json
    assert content.keys() == documented_keys("data fetch")
    assert content.pop("seconds") >= 0
    assert content == {
        "dataset": "tky",
        "file": str(file),
        "bytes": 2 * len(NYC_TEXT),
        "rows": 2 * ROWS,
        "downloaded": True,
        "resumed": False,
        "verified": True,
        "checksum": "sha256 of dataset_tsmc2014.zip",
    }
    assert castpoi("data", "fetch", "tky", "--out", tmp_path, "--json").json["downloaded"] is False
