"""Public data sets in a folder: checked, unpacked, shared, put there by hand."""

import gzip
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.checkins.fetch import DATASETS, fetch, record_of
from castpoi.core.errors import BadInput, DownloadFailed
from tests.checkins.fetching import GZ, HALF, NYC, ZIP, Publish, Waits, is_whole, leftovers
from tests.checkins.file_server import Answer, FileServer
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


def test_a_gzip_arrives_whole_with_its_origin_beside_it(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    fetched = fetch("gowalla", tmp_path / "new" / "folder")
    assert is_whole(fetched, tmp_path / "new" / "folder")
    assert (fetched.rows, fetched.bytes, fetched.downloaded) == (ROWS, len(GOWALLA), True)
    assert not fetched.resumed
    assert leftovers(tmp_path / "new" / "folder") == {GZ, GZ + ".source.json"}
    record = json.loads(record_of(fetched.file).read_bytes())
    assert record["url"] == server.url(GZ)
    assert record["bytes"] == len(GOWALLA)
    assert record["sha256"] == hashlib.sha256(GOWALLA).hexdigest()
    assert record["checks"] == ["md5", "integrity", "rows"]
    assert record["checksum"] == f"md5 of {GZ}"
    assert record["fetched_at_utc"].endswith("+00:00")
    assert "KDD 2011" in record["citation"]


def test_a_file_without_published_checksum_says_so(publish: Publish, tmp_path: Path) -> None:
    publish.gowalla(checksum=None)
    fetched = fetch("gowalla", tmp_path)
    assert fetched.checksum == "checksum not known"
    record = json.loads(record_of(fetched.file).read_bytes())
    assert record["checks"] == ["integrity", "rows"]


def test_a_part_whose_halves_do_not_fit_is_fetched_once_more_from_the_start(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(cut_after=HALF)]
    once = replace(waits.patience, attempts=1)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=once)
    (tmp_path / f"{GZ}.part").write_bytes(bytes(HALF))
    assert is_whole(fetch("gowalla", tmp_path, patience=once), tmp_path)
    assert server.ranges == [None, f"bytes={HALF}-", None]


def test_a_missing_file_is_not_asked_for_twice_and_the_way_by_hand_is_told(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.files.clear()
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=waits.patience)
    assert len(server.asked) == 1
    assert leftovers(tmp_path) == set()


def test_the_next_address_is_tried_when_one_fails(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish(small("gowalla", GOWALLA, server.url("gone"), server.url("bad"), server.url(GZ)))
    server.files["bad"] = b"<html>please log in</html>"
    fetched = fetch("gowalla", tmp_path)
    assert is_whole(fetched, tmp_path)
    assert [path for path, _ in server.asked] == ["/gone", "/bad", f"/{GZ}"]
    assert json.loads(record_of(fetched.file).read_bytes())["url"] == server.url(GZ)


def test_a_file_of_another_size_than_published_is_refused_before_a_byte_is_written(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish(replace(small("gowalla", GOWALLA, server.url(GZ)), size=len(GOWALLA) + 1))
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert leftovers(tmp_path) == set()


def test_no_byte_beyond_the_published_size_is_written(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish(replace(small("gowalla", GOWALLA, server.url(GZ)), size=HALF))
    server.always = Answer(is_chunked=True, chunk=1000)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert leftovers(tmp_path) == {f"{GZ}.part"}
    assert (tmp_path / f"{GZ}.part").stat().st_size <= HALF


def test_a_shorter_stream_than_published_is_refused(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish(replace(small("gowalla", GOWALLA, server.url(GZ)), size=len(GOWALLA) + 1))
    server.always = Answer(is_chunked=True)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert leftovers(tmp_path) == set()


def test_a_file_with_another_checksum_never_gets_its_name(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    server.files[GZ] = gzip.compress(gowalla_text(seed=1), mtime=0)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert leftovers(tmp_path) == set()


def test_a_server_that_always_cuts_and_is_always_wrong_comes_to_an_end(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.files[GZ] = gzip.compress(gowalla_text(seed=1), mtime=0)
    server.answers = [Answer(cut_after=HALF), Answer()] * 5
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, patience=waits.patience)
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    "content",
    [GOWALLA[:-9], b"<html></html>", gzip.compress(b"1\n" * (ROWS - 1), mtime=0)],
    ids=["truncated", "foreign", "short"],
)
def test_without_checksum_a_truncated_or_foreign_or_short_gzip_is_noticed(
    content: bytes, publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla(checksum=None)
    server.files[GZ] = content
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert leftovers(tmp_path) == set()


def test_a_bomb_is_noticed(
    publish: Publish, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    publish.gowalla()
    monkeypatch.setattr("castpoi.checkins.fetch._LONGEST_TEXT", 1000)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)


def test_the_last_row_counts_without_its_line_end(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla(checksum=None)
    server.files[GZ] = gzip.compress(b"1\n" * (ROWS - 1) + b"1")
    assert fetch("gowalla", tmp_path).rows == ROWS


def test_only_the_wanted_text_is_taken_from_the_zip(publish: Publish, tmp_path: Path) -> None:
    publish.tsmc2014()
    fetched = fetch("nyc", tmp_path)
    assert fetched.file == tmp_path / NYC
    assert fetched.file.read_bytes() == NYC_TEXT
    assert leftovers(tmp_path) == {NYC, NYC + ".source.json", ZIP, ZIP + ".source.json"}
    record = json.loads(record_of(fetched.file).read_bytes())
    assert record["checksum"] == f"sha256 of {ZIP}"
    assert record["url"].endswith(ZIP)
    assert "2015" in record["citation"]


def test_new_york_and_tokyo_share_one_download(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.tsmc2014("nyc")
    publish.tsmc2014("tky")
    fetch("nyc", tmp_path)
    fetched = fetch("tky", tmp_path)
    assert fetched.rows == 2 * ROWS
    assert not fetched.downloaded
    assert len(server.asked) == 1


def test_a_text_at_the_top_of_the_zip_is_found_as_well(publish: Publish, tmp_path: Path) -> None:
    publish.tsmc2014(content=zipped((NYC, NYC_TEXT)))
    assert fetch("nyc", tmp_path).rows == ROWS


def test_a_zip_without_the_text_is_refused(publish: Publish, tmp_path: Path) -> None:
    publish.tsmc2014(content=zipped(("../" + NYC, NYC_TEXT), ("other/" + NYC, NYC_TEXT)))
    with refused(DownloadFailed):
        fetch("nyc", tmp_path / "in")
    assert leftovers(tmp_path) == {"in"}
    assert leftovers(tmp_path / "in") == set()


def test_a_zip_that_lacks_the_second_city_says_so(publish: Publish, tmp_path: Path) -> None:
    content = zipped((NYC, NYC_TEXT))
    publish.tsmc2014("nyc", content)
    publish.tsmc2014("tky", content)
    fetch("nyc", tmp_path)
    with refused(DownloadFailed):
        fetch("tky", tmp_path)


@pytest.mark.parametrize("damage", ["no zip", "cut off", "flipped byte", "encrypted"])
def test_a_damaged_zip_is_refused(damage: str, publish: Publish, tmp_path: Path) -> None:
    content = bytearray(zipped((NYC, NYC_TEXT)))
    if damage == "no zip":
        content = bytearray(b"<html>not found</html>")
    elif damage == "cut off":
        del content[-10:]
    elif damage == "flipped byte":
        content[len(content) // 2] ^= 0xFF
    else:
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
    publish.tsmc2014(content=bytes(content))
    with refused(DownloadFailed):
        fetch("nyc", tmp_path)
    assert leftovers(tmp_path) == set()


def test_a_second_call_asks_nobody_and_changes_nothing(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    fetch("gowalla", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = fetch("gowalla", tmp_path)
    assert not again.downloaded
    assert (again.rows, again.bytes) == (ROWS, len(GOWALLA))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert len(server.asked) == 1


def test_a_file_that_changed_after_it_was_fetched_is_noticed_and_left_alone(
    publish: Publish, tmp_path: Path
) -> None:
    publish.gowalla(checksum=None)
    fetched = fetch("gowalla", tmp_path)
    changed = gzip.compress(gowalla_text(seed=1), mtime=0)
    fetched.file.write_bytes(changed)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert fetched.file.read_bytes() == changed


@pytest.mark.parametrize("record", [None, "{", '{"sha256": "x"}'])
def test_what_a_person_put_there_by_hand_is_checked_and_used(
    record: str | None, publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.tsmc2014()
    (tmp_path / ZIP).write_bytes(TSMC2014)
    if record is not None:
        record_of(tmp_path / ZIP).write_text(record)
    fetched = fetch("nyc", tmp_path)
    assert fetched.file.read_bytes() == NYC_TEXT
    assert not fetched.downloaded
    assert server.asked == []
    written = json.loads(record_of(fetched.file).read_bytes())
    assert (written["url"], written["origin"]) == (None, "found in the folder")


def test_a_text_put_there_by_hand_is_held_against_no_checksum(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.tsmc2014()
    (tmp_path / NYC).write_bytes(NYC_TEXT)
    assert fetch("nyc", tmp_path).checksum == "checksum not known"
    assert server.asked == []


def test_a_wrong_file_put_there_by_hand_is_refused_and_left_alone(
    publish: Publish, tmp_path: Path
) -> None:
    publish.gowalla()
    (tmp_path / GZ).write_bytes(b"something else")
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)
    assert (tmp_path / GZ).read_bytes() == b"something else"


def test_a_file_in_place_of_the_folder_is_refused(publish: Publish, tmp_path: Path) -> None:
    publish.gowalla()
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with refused(BadInput):
        fetch("gowalla", taken)


def test_a_folder_in_place_of_the_file_is_refused(publish: Publish, tmp_path: Path) -> None:
    publish.gowalla()
    (tmp_path / GZ).mkdir()
    with refused(BadInput):
        fetch("gowalla", tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_may_not_be_written_is_refused(publish: Publish, tmp_path: Path) -> None:
    publish.gowalla()
    tmp_path.chmod(0o500)
    try:
        with refused(BadInput):
            fetch("gowalla", tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_an_unknown_data_set_names_the_known_ones(tmp_path: Path) -> None:
    with refused(BadInput):
        fetch("paris", tmp_path)


def test_the_table_of_sources_is_sound() -> None:
    assert DATASETS["nyc"].file == NYC
    assert DATASETS["gowalla"].file == GZ
    for name, source in DATASETS.items():
        assert source.name == name
        assert all(url.endswith(f"/{source.published}") for url in source.urls)
        assert source.published.endswith(".zip" if source.members else ".gz")
        if source.checksum is not None:
            length = hashlib.new(source.checksum[0]).digest_size
            assert len(bytes.fromhex(source.checksum[1])) == length
