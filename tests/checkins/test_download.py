"""Downloads that break off and are resumed; addresses that are wrong, busy, gone or untrusted."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins.download import Patience, download
from castpoi.core.errors import DownloadFailed
from castpoi.core.progress import SILENCE, Task
from tests.checkins.conftest import GZ, HALF, Site
from tests.checkins.file_server import Answer, serving
from tests.checkins.small_sources import GOWALLA, small
from tests.messages import refused


def test_a_slow_server_is_not_given_up_while_bytes_come(site: Site) -> None:
    site.server.always = Answer(chunk=len(GOWALLA) // 6, pause_seconds=0.1)  # 0.6 s in all
    site.fetch(silence_seconds=0.4)
    assert site.has_gowalla()
    assert site.pauses == []


def test_a_silent_server_is_given_up_after_a_few_attempts(site: Site) -> None:
    site.server.always = Answer(silent_after=0)
    with refused(DownloadFailed):
        site.fetch(silence_seconds=0.2)
    assert site.pauses == [1, 2]
    assert GZ not in site.names


def test_a_server_that_never_answers_is_given_up(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/{GZ}"
        with refused(DownloadFailed):
            site.fetch(mirror=url, silence_seconds=0.1)


def test_a_connection_that_breaks_off_is_resumed_there(site: Site) -> None:
    site.server.answers = [Answer(cut_after=HALF), Answer(cut_after=100), Answer()]
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
    assert site.server.ranges[-1] == f"bytes={HALF}-"
    assert site.names == {GZ, GZ + ".source.json"}


def test_a_stream_without_length_that_breaks_off_is_resumed_too(site: Site) -> None:
    site.server.answers = [Answer(is_chunked=True, cut_after=HALF), Answer(is_chunked=True)]
    assert site.fetch().resumed
    assert site.has_gowalla()


@dataclass(frozen=True)
class Recorded:
    """Progress that records its tasks: name, total and amounts."""

    tasks: list[tuple[str, float | None, list[float]]] = field(default_factory=list)

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        self.tasks.append((name, total, []))
        yield self

    def advance(self, amount: float = 1) -> None:
        self.tasks[-1][2].append(amount)

    def describe(self, text: str) -> None:
        pass


def test_progress_counts_every_byte_once(site: Site) -> None:
    site.server.answers = [Answer(cut_after=HALF), Answer(chunk=1000)]
    progress = Recorded()
    site.fetch(progress=progress)
    names = [name for name, _, _ in progress.tasks]
    assert names == [f"{GZ} (MB)", f"{GZ} (MB)", f"checking {GZ}"]
    _, total, amounts = progress.tasks[1]
    assert total == pytest.approx(len(GOWALLA) / 1e6)
    assert amounts[0] == pytest.approx(HALF / 1e6)
    assert sum(amounts) == pytest.approx(total)


def test_a_server_that_ignores_ranges_starts_from_the_beginning(site: Site) -> None:
    site.server.answers = [Answer(cut_after=HALF), Answer(knows_ranges=False)]
    assert not site.fetch().resumed
    assert site.has_gowalla()
    assert site.server.ranges == [None, f"bytes={HALF}-"]


def test_a_part_longer_than_the_file_is_downloaded_from_the_beginning(site: Site) -> None:
    site.server.answers = [Answer(is_chunked=True, cut_after=HALF), Answer(status=416)]
    site.fetch()
    assert site.has_gowalla()
    assert site.server.ranges == [None, f"bytes={HALF}-", None]


@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(0, len(GOWALLA) - 1), max_size=5))
def test_the_file_is_complete_wherever_and_however_often_the_connection_breaks(
    cuts: list[int],
) -> None:
    with serving() as server, TemporaryDirectory() as folder:
        server.files[GZ] = GOWALLA
        server.answers = [Answer(cut_after=cut) for cut in cuts]
        part, patience = Path(folder) / f"{GZ}.part", Patience(attempts=6, sleep=lambda _: None)
        url = server.url(GZ)
        download(url, part, size=len(GOWALLA), patience=patience, progress=SILENCE)
        assert part.read_bytes() == GOWALLA


@pytest.mark.parametrize("extent", ["bytes 499-999/1000", "nonsense"])
def test_another_part_than_requested_is_not_appended(extent: str, site: Site) -> None:
    new = bytes([1]) * 1000
    site.server.files["file"] = new
    site.server.answers = [Answer(extent=extent)]
    part, patience = site.put("file.part", bytes(500)), Patience(sleep=site.pauses.append)
    download(site.server.url("file"), part, size=None, patience=patience, progress=SILENCE)
    assert part.read_bytes() == new
    assert site.server.ranges == ["bytes=500-", None]


def test_a_part_that_is_complete_needs_no_server(site: Site) -> None:
    site.publish(replace(small("gowalla", GOWALLA, site.server.url(GZ)), size=len(GOWALLA)))
    site.put(f"{GZ}.part", GOWALLA)
    assert site.fetch().resumed
    assert site.has_gowalla()
    assert site.server.asked == []


def test_a_refused_connection_is_tried_again(site: Site) -> None:
    with refused(DownloadFailed):
        site.fetch(mirror="http://127.0.0.1:1/x")
    assert site.pauses == [1, 2]


@pytest.mark.parametrize(
    ("number", "pauses"), [(socket.EAI_NONAME, []), (socket.EAI_AGAIN, [1, 2])]
)
def test_only_a_temporary_failure_of_the_name_server_is_tried_again(
    number: int, pauses: list[float], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    def refuse(*_: object) -> None:
        raise socket.gaierror(number, "try later")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with refused(DownloadFailed):
        site.fetch(mirror="http://castpoi.invalid/x")
    assert site.pauses == pauses


def test_a_certificate_that_is_not_trusted_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    def refuse(*_: object, **__: object) -> None:
        problem = ssl.SSLCertVerificationError()
        problem.verify_message = "self-signed certificate"
        raise problem

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", refuse)
    with refused(DownloadFailed):
        site.fetch(mirror=site.server.url(GZ).replace("http:", "https:"))
    assert site.pauses == []


def redirection(target: str) -> Answer:
    return Answer(status=302, headers=(("Location", target),))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(announces=3 << 30), id="too long"),
        pytest.param(Answer(status=204), id="no file"),
        pytest.param(Answer(is_chunked=True, cut_after=HALF), id="always broken off"),
        pytest.param(redirection("file:///etc/passwd"), id="redirected to a file"),
        pytest.param(redirection(f"/{GZ}"), id="redirected in circles"),
    ],
)
def test_a_wrong_answer_is_refused(answer: Answer, site: Site) -> None:
    site.server.always = answer
    with refused(DownloadFailed):
        site.fetch(attempts=1)


def test_a_redirection_is_followed_over_http_and_keeps_the_range(site: Site) -> None:
    further, moved = redirection("/further"), redirection(f"/{GZ}")
    site.publish(small("gowalla", GOWALLA, site.server.url("old")))
    site.server.files |= {"old": b"moved", "further": b"moved again"}
    site.server.answers = [further, moved, Answer(cut_after=HALF), further, moved, Answer()]
    site.fetch()
    assert site.has_gowalla()
    assert site.server.ranges[-1] == f"bytes={HALF}-"
