"""Downloads that break off and are resumed; addresses that are wrong, busy, gone or untrusted."""

import socket
import ssl
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins.download import Patience, download
from castpoi.checkins.fetch import fetch
from castpoi.core.errors import BadInput, DownloadFailed
from castpoi.core.progress import Silence
from tests.checkins.fetching import GZ, HALF, Heard, Publish, Waits, is_whole, leftovers
from tests.checkins.file_server import Answer, FileServer, serving
from tests.checkins.small_sources import GOWALLA, small
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


def test_a_part_longer_than_the_file_begins_anew(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [Answer(is_chunked=True, cut_after=HALF), Answer(status=416)]
    fetched = fetch("gowalla", tmp_path, patience=waits.patience)
    assert is_whole(fetched, tmp_path)
    assert server.ranges == [None, f"bytes={HALF}-", None]


@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(0, len(GOWALLA) - 1), max_size=5))
def test_wherever_and_however_often_it_is_cut_the_file_arrives_as_it_is(cuts: list[int]) -> None:
    with serving() as server, TemporaryDirectory() as folder:
        server.files[GZ] = GOWALLA
        server.answers = [Answer(cut_after=cut) for cut in cuts]
        part = Path(folder) / f"{GZ}.part"
        download(
            server.url(GZ),
            part,
            size=len(GOWALLA),
            patience=Patience(attempts=6, sleep=lambda _: None),
            progress=Silence(),
        )
        assert part.read_bytes() == GOWALLA


@pytest.mark.parametrize("extent", ["bytes 499-999/1000", "nonsense"])
def test_another_part_than_requested_is_not_appended(
    extent: str, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    old, new = bytes(1000), bytes([1]) * 1000
    server.files["file"] = new
    server.answers = [Answer(extent=extent)]
    part = tmp_path / "file.part"
    part.write_bytes(old[:500])
    download(server.url("file"), part, size=None, patience=waits.patience, progress=Silence())
    assert part.read_bytes() == new
    assert server.ranges == ["bytes=500-", None]


def test_a_part_that_is_complete_already_needs_no_server(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish(replace(small("gowalla", GOWALLA, server.url(GZ)), size=len(GOWALLA)))
    (tmp_path / f"{GZ}.part").write_bytes(GOWALLA)
    fetched = fetch("gowalla", tmp_path)
    assert is_whole(fetched, tmp_path)
    assert fetched.resumed
    assert server.asked == []


def test_a_busy_server_is_asked_again_after_the_time_it_asks_for(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    publish.gowalla()
    server.answers = [
        Answer(status=503, headers=(("Retry-After", "7"),)),
        Answer(status=429, headers=(("Retry-After", "86400"),)),
    ]
    assert is_whole(fetch("gowalla", tmp_path, patience=waits.patience), tmp_path)
    assert waits == [7, 60]


def test_nobody_listening_is_tried_again(waits: Waits, tmp_path: Path) -> None:
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, mirror="http://127.0.0.1:1/x", patience=waits.patience)


@pytest.mark.parametrize(
    ("number", "pauses"), [(socket.EAI_NONAME, []), (socket.EAI_AGAIN, [1, 2])]
)
def test_only_a_name_server_that_may_come_back_is_tried_again(
    number: int,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
    waits: Waits,
    tmp_path: Path,
) -> None:
    def refuse(*_: object) -> None:
        raise socket.gaierror(number, "try later")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, mirror="http://castpoi.invalid/x", patience=waits.patience)
    assert waits == pauses


def test_a_certificate_that_cannot_be_trusted_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        problem = ssl.SSLCertVerificationError()
        problem.verify_message = "self-signed certificate"
        raise problem

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", refuse)
    mirror = server.url(GZ).replace("http:", "https:")
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, mirror=mirror, patience=waits.patience)
    assert waits == []


def test_an_absurdly_long_answer_is_refused(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    server.always = Answer(announces=3 << 30)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)


def test_an_answer_that_is_no_file_is_refused(
    publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    server.always = Answer(status=204)
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)


def test_a_redirection_is_followed_over_http_and_keeps_the_range(
    publish: Publish, server: FileServer, waits: Waits, tmp_path: Path
) -> None:
    further = Answer(status=302, headers=(("Location", "/further"),))
    moved = Answer(status=302, headers=(("Location", f"/{GZ}"),))
    publish(small("gowalla", GOWALLA, server.url("old")))
    server.files |= {"old": b"moved", "further": b"moved again"}
    server.answers = [further, moved, Answer(cut_after=HALF), further, moved, Answer()]
    assert is_whole(fetch("gowalla", tmp_path, patience=waits.patience), tmp_path)
    assert server.ranges[-1] == f"bytes={HALF}-"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", f"/{GZ}"])
def test_a_redirection_elsewhere_or_in_circles_is_refused(
    target: str, publish: Publish, server: FileServer, tmp_path: Path
) -> None:
    publish.gowalla()
    server.always = Answer(status=302, headers=(("Location", target),))
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path)


@pytest.mark.parametrize(
    "mirror",
    [
        "file:///etc/passwd",
        "ftp://example.org/x.gz",
        "loc-gowalla.gz",
        "http:///x.gz",
        "http://example.org:port/x",
        "http://me:secret@example.org/x",
    ],
)
def test_an_address_that_is_not_plain_http_is_refused(mirror: str, tmp_path: Path) -> None:
    with refused(BadInput) as caught:
        fetch("gowalla", tmp_path / "new", mirror=mirror)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_an_address_with_a_space_is_refused_at_once(waits: Waits, tmp_path: Path) -> None:
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, mirror="http://127.0.0.1/a b", patience=waits.patience)
    assert waits == []
