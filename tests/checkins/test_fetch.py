"""Public data sets in a folder: downloaded, resumed, checked, unpacked, put there by hand."""

import gzip
import hashlib
import json
import os
import socket
from dataclasses import replace
from typing import Any

import pytest

from castpoi.checkins.fetch import DATASETS, record_of
from castpoi.core.errors import BadInput, DownloadFailed
from tests.checkins.conftest import GZ, HALF, NYC, ZIP, Site
from tests.checkins.file_server import Answer
from tests.checkins.small_sources import (
    GOWALLA,
    NYC_TEXT,
    ROWS,
    TSMC2014,
    gowalla_text,
    small,
    zipped,
)
from tests.messages import refused

OTHER = gzip.compress(gowalla_text(seed=1), mtime=0)


def record_in(site: Site, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(record_of(site.folder / name).read_bytes())
    return content


def without_checksum(site: Site) -> None:
    site.publish(small("gowalla", GOWALLA, site.server.url(GZ), checksum=None))


def test_a_gzip_is_downloaded_with_a_record_of_its_origin(site: Site) -> None:
    fetched = site.fetch()
    assert site.has_gowalla()
    assert (fetched.rows, fetched.bytes, fetched.downloaded) == (ROWS, len(GOWALLA), True)
    assert not fetched.resumed
    assert site.names == {GZ, GZ + ".source.json"}
    record = record_in(site, GZ)
    assert record["url"] == site.server.url(GZ)
    assert record["bytes"] == len(GOWALLA)
    assert record["sha256"] == hashlib.sha256(GOWALLA).hexdigest()
    assert record["checks"] == ["md5", "rows"]
    assert record["checksum"] == f"md5 of {GZ}"
    assert record["fetched_at_utc"].endswith("+00:00")
    assert "KDD 2011" in record["citation"]


def test_a_file_without_published_checksum_is_recorded_as_such(site: Site) -> None:
    without_checksum(site)
    assert site.fetch().checksum == "checksum not known"
    assert record_in(site, GZ)["checks"] == ["rows"]


def test_a_silent_server_is_given_up_after_a_few_attempts(site: Site) -> None:
    site.server.always = Answer(silent_after=0)
    with refused(DownloadFailed):
        site.fetch(silence_seconds=0.2)
    assert site.pauses == [1, 2]
    assert GZ not in site.names


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_connection_that_breaks_off_is_resumed_there(is_chunked: bool, site: Site) -> None:
    cuts = [Answer(cut_after=cut, is_chunked=is_chunked) for cut in (HALF, 100)]
    site.server.answers = [*cuts, Answer()]
    assert site.fetch().resumed
    assert site.has_gowalla()
    assert site.server.ranges == [None, f"bytes={HALF}-", f"bytes={HALF + 100}-"]
    assert site.pauses == [1, 2]


def test_a_later_call_resumes_the_part_of_an_earlier_one(site: Site) -> None:
    site.server.answers = [Answer(cut_after=HALF)]
    with refused(DownloadFailed):
        site.fetch(attempts=1)
    assert (site.folder / f"{GZ}.part").read_bytes() == GOWALLA[:HALF]
    assert site.fetch(attempts=1).resumed
    assert site.has_gowalla()
    assert site.names == {GZ, GZ + ".source.json"}


@pytest.mark.parametrize(
    "second", [Answer(knows_ranges=False), Answer(status=416), Answer(extent="bytes 1-2/3")]
)
def test_a_server_that_does_not_send_the_rest_starts_from_the_beginning(
    second: Answer, site: Site
) -> None:
    site.server.answers = [Answer(cut_after=HALF), second]
    assert not site.fetch().resumed
    assert site.has_gowalla()
    assert site.server.ranges[:2] == [None, f"bytes={HALF}-"]


def test_a_part_that_is_complete_needs_no_server(site: Site) -> None:
    site.publish(replace(small("gowalla", GOWALLA, site.server.url(GZ)), size=len(GOWALLA)))
    site.put(f"{GZ}.part", GOWALLA)
    assert site.fetch().resumed
    assert site.server.asked == []


def test_a_refused_connection_is_tried_again_and_an_unknown_host_is_not(site: Site) -> None:
    with refused(DownloadFailed):
        site.fetch(mirror="http://127.0.0.1:1/x.gz")
    assert site.pauses == [1, 2]

    def refuse(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    site.monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with refused(DownloadFailed):
        site.fetch(mirror="http://castpoi.invalid/x.gz")
    assert site.pauses == [1, 2]


def redirection(target: str) -> Answer:
    return Answer(status=302, headers=(("Location", target),))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(announces=3 << 30), id="too long"),
        pytest.param(Answer(status=204), id="no file"),
        pytest.param(redirection("file:///etc/passwd"), id="redirected to a file"),
        pytest.param(redirection(f"/{GZ}"), id="redirected in circles"),
    ],
)
def test_a_wrong_answer_is_refused(answer: Answer, site: Site) -> None:
    site.server.always = answer
    with refused(DownloadFailed):
        site.fetch(attempts=1)


def test_a_redirection_is_followed_and_keeps_the_range(site: Site) -> None:
    site.publish(small("gowalla", GOWALLA, site.server.url("old.gz")))
    site.put("old.gz.part", GOWALLA[:HALF])
    site.server.files["old.gz"] = b"moved"
    site.server.answers = [redirection(f"/{GZ}")]
    assert site.fetch().resumed
    assert site.server.ranges[-1] == f"bytes={HALF}-"


def test_a_part_of_another_file_is_downloaded_once_more_from_the_start(site: Site) -> None:
    site.put(f"{GZ}.part", bytes(HALF))
    site.fetch(attempts=1)
    assert site.has_gowalla()
    assert site.server.ranges == [f"bytes={HALF}-", None]


def test_a_missing_file_is_requested_once_and_the_error_explains_the_way_by_hand(
    site: Site,
) -> None:
    site.server.files.clear()
    with refused(DownloadFailed):
        site.fetch()
    assert len(site.server.asked) == 1
    assert site.names == set()


def test_the_next_address_is_tried_when_one_fails(site: Site) -> None:
    urls = [site.server.url(name) for name in ("gone", "bad", GZ)]
    site.publish(small("gowalla", GOWALLA, *urls))
    site.server.files["bad"] = b"<html>please log in</html>"
    site.fetch()
    assert site.has_gowalla()
    assert [path for path, _ in site.server.asked] == ["/gone", "/bad", f"/{GZ}"]
    assert record_in(site, GZ)["url"] == site.server.url(GZ)


@pytest.mark.parametrize(
    ("size", "answer", "left"),
    [
        pytest.param(len(GOWALLA) + 1, Answer(is_chunked=True), 0, id="sends fewer bytes"),
        pytest.param(HALF, Answer(is_chunked=True), len(GOWALLA), id="sends more bytes"),
    ],
)
def test_a_file_of_another_size_than_published_is_refused(
    site: Site, size: int, answer: Answer, left: int
) -> None:
    site.publish(replace(small("gowalla", GOWALLA, site.server.url(GZ)), size=size))
    site.server.always = answer
    with refused(DownloadFailed):
        site.fetch()
    assert sum(path.stat().st_size for path in site.folder.iterdir()) <= left


def test_a_file_with_another_checksum_never_gets_its_name(site: Site) -> None:
    site.server.files[GZ] = OTHER
    with refused(DownloadFailed):
        site.fetch()
    assert site.names == set()


@pytest.mark.parametrize(
    "content",
    [GOWALLA[:-9], b"<html></html>", gzip.compress(b"1\n" * (ROWS - 1), mtime=0)],
    ids=["truncated", "foreign", "short"],
)
def test_a_wrong_gzip_is_found_without_a_checksum(content: bytes, site: Site) -> None:
    without_checksum(site)
    site.server.files[GZ] = content
    with refused(DownloadFailed):
        site.fetch()
    assert site.names == set()


def test_a_zip_bomb_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castpoi.checkins.fetch._LONGEST_TEXT", 1000)
    with refused(DownloadFailed):
        site.fetch()


def test_only_the_requested_text_is_unpacked_from_the_zip(site: Site) -> None:
    assert site.fetch("nyc").file == site.folder / NYC
    assert (site.folder / NYC).read_bytes() == NYC_TEXT
    assert site.names == {NYC, NYC + ".source.json", ZIP, ZIP + ".source.json"}
    record = record_in(site, NYC)
    assert record["checksum"] == f"sha256 of {ZIP}"
    assert record["url"].endswith(ZIP)
    assert "2015" in record["citation"]


def test_new_york_and_tokyo_share_one_download(site: Site) -> None:
    site.fetch("nyc")
    fetched = site.fetch("tky")
    assert fetched.rows == 2 * ROWS
    assert not fetched.downloaded
    assert len(site.server.asked) == 1


def damaged(damage: str) -> bytes:
    content = bytearray(zipped((NYC, NYC_TEXT)))
    if damage == "cut off":
        del content[-10:]
    elif damage == "flipped byte":
        content[len(content) // 2] ^= 0xFF
    elif damage == "encrypted":
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
    elif damage == "other members":
        return zipped(("../" + NYC, NYC_TEXT), ("other/" + NYC, NYC_TEXT))
    return b"<html>not found</html>" if damage == "no zip" else bytes(content)


@pytest.mark.parametrize(
    "damage", ["no zip", "cut off", "flipped byte", "encrypted", "other members"]
)
def test_a_damaged_zip_is_refused(damage: str, site: Site) -> None:
    site.publish_zip(damaged(damage))
    with refused(DownloadFailed):
        site.fetch("nyc")
    assert site.names == set()
    assert [path.name for path in site.folder.parent.iterdir()] == ["data"]


def test_a_second_call_requests_and_changes_nothing(site: Site) -> None:
    site.fetch()
    before = {path: path.stat().st_mtime_ns for path in site.folder.iterdir()}
    again = site.fetch()
    assert not again.downloaded
    assert (again.rows, again.bytes) == (ROWS, len(GOWALLA))
    assert {path: path.stat().st_mtime_ns for path in site.folder.iterdir()} == before
    assert len(site.server.asked) == 1


def test_a_file_that_changed_after_the_download_is_refused_and_kept(site: Site) -> None:
    without_checksum(site)
    site.fetch()
    file = site.put(GZ, OTHER)
    with refused(DownloadFailed):
        site.fetch()
    assert file.read_bytes() == OTHER


@pytest.mark.parametrize("record", [None, b"{", b'{"sha256": "x"}'])
def test_a_zip_that_was_put_there_by_hand_is_checked_and_used(
    record: bytes | None, site: Site
) -> None:
    site.put(ZIP, TSMC2014)
    if record is not None:
        site.put(ZIP + ".source.json", record)
    assert not site.fetch("nyc").downloaded
    assert (site.folder / NYC).read_bytes() == NYC_TEXT
    assert site.server.asked == []
    written = record_in(site, NYC)
    assert (written["url"], written["origin"]) == (None, "found in the folder")


def test_a_text_that_was_put_there_by_hand_may_be_a_known_copy(site: Site) -> None:
    known = hashlib.sha256(NYC_TEXT).hexdigest()
    site.publish(replace(DATASETS["nyc"], text_sha256=known))
    site.put(NYC, NYC_TEXT)
    assert site.fetch("nyc").checksum == "sha256 of a known copy"


def test_a_wrong_file_that_was_put_there_by_hand_is_refused_and_kept(site: Site) -> None:
    file = site.put(GZ, b"something else")
    with refused(DownloadFailed):
        site.fetch()
    assert file.read_bytes() == b"something else"


def test_a_file_in_place_of_the_folder_is_refused(site: Site) -> None:
    site.folder.write_text("a file")
    with refused(BadInput):
        site.fetch()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_may_not_be_written_is_refused(site: Site) -> None:
    site.folder.mkdir(mode=0o500)
    try:
        with refused(BadInput):
            site.fetch()
    finally:
        site.folder.chmod(0o700)


def test_an_unknown_data_set_is_refused_with_the_known_ones(site: Site) -> None:
    with refused(BadInput):
        site.fetch("paris")


def test_the_table_of_data_sets_is_consistent() -> None:
    assert DATASETS["nyc"].file == NYC
    assert DATASETS["gowalla"].file == GZ
    for name, data in DATASETS.items():
        assert data.name == name
        assert all(url.endswith(f"/{data.published}") for url in data.urls)
        assert data.published.endswith(".zip" if data.members else ".gz")
        if data.checksum:
            length = hashlib.new(data.checksum[0]).digest_size
            assert len(bytes.fromhex(data.checksum[1])) == length
