"""Downloads that break off, and how they are continued or begun anew."""

import gzip
import socket
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins.fetch import fetch
from castpoi.checkins.fetch_download import Patience, download
from castpoi.core.errors import DownloadFailed
from castpoi.core.progress import Silence
from tests.checkins.fetching import GZ, HALF, Heard, Publish, Waits, is_whole, leftovers
from tests.checkins.file_server import Answer, FileServer, serving
from tests.checkins.small_sources import (
    GOWALLA,
    gowalla_text,
    small,
)
from tests.messages import refused


def test_a_slow_server_is_waited_for_as_long_as_bytes_come(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.always = Answer(chunk=len(GOWALLA) // 12, pause_seconds=0.1)  # 1.2 s in all
    fetched = fetch("gowalla", tmp_path, patience=replace(waits.patience, silence_seconds=1))
    assert is_whole(fetched, tmp_path)
    assert waits == []


def test_a_silent_server_is_given_up_after_a_few_attempts(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.always = Answer(silent_after=0)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=replace(waits.patience, silence_seconds=0.3))
    assert waits == [1, 2]
    assert GZ not in leftovers(tmp_path)


def test_a_server_that_never_answers_is_given_up(waits: Waits, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/{GZ}"
        impatience = replace(waits.patience, silence_seconds=0.2)
        with refused(DownloadFailed):
            fetch("gowalla", tmp_path, mirror=url, patience=impatience)


def test_a_connection_cut_in_the_middle_is_resumed_where_it_broke_off(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(cut_after=HALF), Answer(cut_after=100), Answer()]
    fetched = fetch("gowalla", tmp_path, patience=waits.patience)
    assert is_whole(fetched, tmp_path)
    assert fetched.resumed
    assert server.ranges == [None, f"bytes={HALF}-", f"bytes={HALF + 100}-"]
    assert waits == [1, 2]


def test_a_later_call_resumes_what_an_earlier_one_left(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(cut_after=HALF)]
    once = replace(waits.patience, attempts=1)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=once)
    assert (tmp_path / f"{GZ}.part").read_bytes() == GOWALLA[:HALF]
    fetched = fetch("gowalla", tmp_path, patience=once)
    assert is_whole(fetched, tmp_path)
    assert fetched.resumed
    assert server.ranges[-1] == f"bytes={HALF}-"
    assert leftovers(tmp_path) == {GZ, GZ + ".source.json"}


def test_a_cut_stream_without_length_is_resumed_too(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(is_chunked=True, cut_after=HALF), Answer(is_chunked=True)]
    fetched = fetch("gowalla", tmp_path, patience=waits.patience)
    assert is_whole(fetched, tmp_path)
    assert fetched.resumed


def test_a_cut_stream_without_length_is_noticed(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.always = Answer(is_chunked=True, cut_after=HALF)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=replace(waits.patience, attempts=1))


def test_the_listener_hears_of_every_byte_once(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(cut_after=HALF), Answer(chunk=1000)]
    heard = Heard([])
    fetch("gowalla", tmp_path, patience=waits.patience, progress=heard)
    names = [name for name, _, _ in heard.tasks]
    assert names == [f"{GZ} (MB)", f"{GZ} (MB)", f"checking {GZ}"]
    _, total, amounts = heard.tasks[1]
    assert total == pytest.approx(len(GOWALLA) / 1e6)
    assert amounts[0] == pytest.approx(HALF / 1e6)
    assert sum(amounts) == pytest.approx(total)


def test_a_server_that_ignores_ranges_begins_anew(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(cut_after=HALF), Answer(knows_ranges=False)]
    fetched = fetch("gowalla", tmp_path, patience=waits.patience)
    assert is_whole(fetched, tmp_path)
    assert not fetched.resumed
    assert server.ranges == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize("heeds_if_range", [True, False])
def test_a_file_that_changed_meanwhile_begins_anew(
    heeds_if_range: bool, publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    other = gzip.compress(gowalla_text(seed=1), mtime=0)
    publish(small("gowalla", GOWALLA, server.url(GZ), checksum=None))
    server.files[GZ] = other
    once = replace(waits.patience, attempts=1)
    server.answers = [Answer(cut_after=HALF, etag='"old"')]
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=once)
    server.files[GZ] = GOWALLA
    server.always = Answer(etag='"new"', heeds_if_range=heeds_if_range)
    if not heeds_if_range:
        with refused(DownloadFailed):
            fetch("gowalla", tmp_path, patience=once)
    fetched = fetch("gowalla", tmp_path, patience=waits.patience)
    assert is_whole(fetched, tmp_path)
    assert not fetched.resumed


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_firm_mark_of_the_version_nothing_is_resumed(
    etag: str | None, publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(cut_after=HALF, etag=etag), Answer(etag=etag)]
    assert is_whole(fetch("gowalla", tmp_path, patience=waits.patience), tmp_path)
    assert server.ranges == [None, None]


def test_a_part_of_another_address_is_not_continued(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.files["elsewhere.gz"] = GOWALLA
    server.answers = [Answer(cut_after=HALF)]
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=replace(waits.patience, attempts=1))
    fetch("gowalla", tmp_path, mirror=server.url("elsewhere.gz"))
    assert server.ranges == [None, None]


def test_a_part_longer_than_the_file_begins_anew(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(is_chunked=True, cut_after=HALF), Answer(status=416)]
    fetched = fetch("gowalla", tmp_path, patience=waits.patience)
    assert is_whole(fetched, tmp_path)
    assert server.ranges == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("memory", ["", "[]", '{"url": 3, "etag": 4, "total": "x"}'])
def test_a_part_with_a_broken_memory_begins_anew(
    memory: str, publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    (tmp_path / f"{GZ}.part").write_bytes(b"anything")
    (tmp_path / f"{GZ}.part.json").write_text(memory)
    assert is_whole(fetch("gowalla", tmp_path), tmp_path)
    assert server.ranges == [None]


@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(0, len(GOWALLA) - 1), max_size=5))
def test_wherever_and_however_often_it_is_cut_the_file_arrives_as_it_is(cuts: list[int]) -> None:
    with serving() as server, TemporaryDirectory() as folder:
        server.files[GZ] = GOWALLA
        server.answers = [Answer(cut_after=cut) for cut in cuts]
        part = Path(folder) / f"{GZ}.part"
        received = download(
            server.url(GZ),
            part,
            size=len(GOWALLA),
            patience=Patience(attempts=6, sleep=lambda _: None),
            progress=Silence(),
        )
        assert part.read_bytes() == GOWALLA
        assert received.bytes == len(GOWALLA)


OLD, NEW = bytes(1000), bytes([1]) * 1000


@pytest.mark.parametrize(
    "answer",
    [
        Answer(etag='"new"', heeds_if_range=False),
        Answer(extent="bytes 499-998/1000"),
        Answer(extent="bytes 500-999/1001"),
        Answer(headers=(("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"),)),
    ],
    ids=["another version", "another beginning", "another length", "another day"],
)
def test_the_rest_of_another_file_is_never_glued_to_the_part(
    answer: Answer, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    server.files["file"] = OLD
    server.answers = [Answer(cut_after=500)]
    part = tmp_path / "file.part"
    once = replace(waits.patience, attempts=1)
    with refused(DownloadFailed):
        download(server.url("file"), part, size=None, patience=once, progress=Silence())
    server.files["file"] = NEW
    server.answers = [answer]
    download(server.url("file"), part, size=None, patience=waits.patience, progress=Silence())
    assert part.read_bytes() == NEW
    assert server.ranges == [None, "bytes=500-", None]


def test_a_part_that_is_already_whole_asks_nobody(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    part = tmp_path / f"{GZ}.part"
    download(server.url(GZ), part, size=None, patience=waits.patience, progress=Silence())
    fetched = fetch("gowalla", tmp_path)
    assert is_whole(fetched, tmp_path)
    assert fetched.resumed
    assert len(server.asked) == 1
