"""Addresses that are wrong, busy, gone, untrusted or lead elsewhere."""

import socket
import ssl
from pathlib import Path

import pytest

from castpoi.checkins.fetch import fetch
from castpoi.core.errors import BadInput, DownloadFailed
from tests.checkins.fetching import GZ, HALF, Publish, Waits, is_whole
from tests.checkins.file_server import Answer, FileServer
from tests.checkins.small_sources import GOWALLA, small
from tests.messages import refused


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
    ("number", "words", "pauses"),
    [
        (socket.EAI_NONAME, "http://castpoi.invalid/x has an unknown host name", []),
        (socket.EAI_AGAIN, "http://castpoi.invalid/x cannot be reached: try later", [1, 2]),
    ],
)
def test_only_a_name_server_that_may_come_back_is_tried_again(
    number: int,
    words: str,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
    waits: Waits,
    tmp_path: Path,
) -> None:
    def refuse(*_: object) -> None:
        raise socket.gaierror(number, "try later")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(DownloadFailed, match=words):
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
    ("mirror", "words"),
    [
        ("file:///etc/passwd", "an address begins with http:// or https://"),
        ("ftp://example.org/x.gz", "an address begins with http:// or https://"),
        ("loc-gowalla.gz", "an address begins with http:// or https://"),
        ("http:///x.gz", "an address begins with http:// or https://"),
        ("http://example.org:port/x", "is not an address: Port could not be cast"),
        ("http://me:secret@example.org/x", "an address with a user name in it is refused"),
    ],
)
def test_an_address_that_is_not_plain_http_is_refused(
    mirror: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=words) as told:
        fetch("gowalla", tmp_path / "new", mirror=mirror)
    assert "secret" not in str(told.value)
    assert not (tmp_path / "new").exists()


def test_an_address_with_a_space_is_refused_at_once(waits: Waits, tmp_path: Path) -> None:
    with refused(DownloadFailed):
        fetch("gowalla", tmp_path, mirror="http://127.0.0.1/a b", patience=waits.patience)
    assert waits == []
