"""`castpoi serve` as a process of its own: killed, started again, reloaded, stopped."""

import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from castpoi.serving.service import Service
from castpoi.serving.store import VisitStore
from tests.conftest import CommandLine
from tests.contract import odd_city
from tests.serving.live import PATIENCE_SECONDS, wait_until
from tests.serving.small_run import small_run

KEY = "a key for the tests only"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A city and, after the first test, a run and its store."""
    made = tmp_path_factory.mktemp("served")
    odd_city().save(made / "city")
    return made


@pytest.fixture
def run(castpoi: CommandLine, folder: Path) -> Path:
    if not (folder / "run").exists():
        trained = castpoi("train", folder / "city", "--model", "revisit", "--out", folder / "run")
        assert trained.code == 0
    return folder / "run"


@contextmanager
def serving(run: Path, log: Path, *words: str) -> Iterator[tuple["subprocess.Popen[str]", Any]]:
    """A process that serves a run, and the JSON that it prints when it is ready."""
    command = [sys.executable, "-m", "castpoi.cli.main", "serve", str(run), "--port", "0", "--json"]
    environment = {**os.environ, "CASTPOI_API_KEYS": KEY, "OMP_NUM_THREADS": "1"}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, *words], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def client_of(ready: Any) -> httpx.Client:
    return httpx.Client(
        base_url=ready["address"],
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=PATIENCE_SECONDS,
    )


def test_a_kill_amid_a_storm_of_visits_loses_none_that_was_acknowledged(
    run: Path, tmp_path: Path
) -> None:
    acknowledged: list[int] = []

    def storm(first: int, ready: Any) -> None:
        with client_of(ready) as client:
            for number in range(first, 10**6, 4):
                at = f"2012-05-01T08:{number // 60 % 60:02}:{number % 60:02}Z"
                visit = {"user": "storm", "place": f"p{number}", "at": at, "key": str(number)}
                try:
                    answer = client.post("/v1/visits", json=visit)
                except httpx.TransportError:
                    return
                assert answer.status_code == 200
                acknowledged.append(number)

    with serving(run, tmp_path / "log") as (process, ready):
        assert (ready["visits"], ready["needs_key"]) == (14, True)
        threads = [threading.Thread(target=storm, args=(first, ready)) for first in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) >= 80)
        process.kill()
        for thread in threads:
            thread.join()
    assert "Imported 14 check-ins of the run's city" in (tmp_path / "log").read_text()
    store = VisitStore(f"sqlite:///{run}.visits.sqlite")
    kept = set(store.histories(["storm"], most=10**6)["storm"].places)
    store.close()
    assert len(acknowledged) >= 80
    assert {f"p{number}" for number in acknowledged} <= kept


def test_a_served_run_is_replaced_on_sighup_and_stopped_on_sigterm(
    castpoi: CommandLine, run: Path, folder: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/visits.sqlite"
    words = ("--store", url, "--no-import-city")
    with serving(run, tmp_path / "log", *words) as (process, ready), client_of(ready) as client:
        assert ready["visits"] == 0
        question = {"user": "user 1", "k": 2}
        answer = client.post("/v1/recommend", json=question).json()
        assert answer["model"] == ready["model"]
        castpoi(
            "train", folder / "city", "--model", "markov", "--out", run, "--overwrite"
        )  # fmt: skip
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: client.get("/v1/model").json()["method"] == "markov")
        assert client.post("/v1/recommend", json=question).json()["model"] != ready["model"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    log = (tmp_path / "log").read_text()
    assert "request answered method=POST route=/v1/recommend status=200" in log
    assert "run loaded model=markov:" in log
    assert "user 1" not in log
    assert KEY not in log


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are of Linux")
def test_a_service_out_of_files_writes_one_line_and_goes_on_when_connections_end(
    run: Path, tmp_path: Path
) -> None:
    words = ("--store", f"sqlite:///{tmp_path}/visits.sqlite", "--no-import-city")
    with serving(run, tmp_path / "log", *words) as (process, ready), ExitStack() as idle:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (64, 64))
        address = ("127.0.0.1", int(ready["address"].rsplit(":", 1)[1]))
        for _ in range(120):
            idle.enter_context(socket.create_connection(address))
        before = cpu_seconds(process.pid)
        time.sleep(1)
        assert cpu_seconds(process.pid) - before < 0.2
        idle.close()
        with client_of(ready) as client:
            assert client.get("/readyz").status_code == 200
    log = (tmp_path / "log").read_text()
    assert log.count("connections not accepted reason='Too many open files") == 1
    assert "Traceback" not in log


def cpu_seconds(process: int) -> float:
    """Seconds of CPU that a process has used."""
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def quiet_logs() -> Iterator[None]:
    """Take back what `castpoi serve` does to the loggers of this process."""
    loggers = [logging.getLogger(name) for name in ("castpoi.serving", "uvicorn.error")]
    before = [(each.handlers, each.level, each.propagate) for each in loggers]
    yield
    for each, (handlers, level, propagate) in zip(loggers, before, strict=True):
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


@pytest.mark.usefixtures("quiet_logs")
def test_a_damaged_run_is_not_served(castpoi: CommandLine, run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in run.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.safetensors").write_bytes(b"not what it was")
    ended = castpoi("serve", broken, "--port", 0)
    assert ended.code == 1
    assert "has changed since it was made: model.safetensors" in ended.err


@pytest.mark.usefixtures("quiet_logs")
@pytest.mark.parametrize(
    ("words", "shortlist"),
    [
        ([], None),
        (["--shortlist", 5], None),
        (["--shortlist", 3], 3),
        (["--shortlist", "all"], None),
    ],
)
def test_the_size_of_the_shortlist_can_be_chosen(
    castpoi: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[object],
    shortlist: int | None,
) -> None:
    chosen: list[int | None] = []

    def load_and_stop(service: Service, *_: object, **__: object) -> None:
        chosen.append(service.load_run().shortlist)

    monkeypatch.setattr("castpoi.serving.server.serve_until_stopped", load_and_stop)
    ended = castpoi("serve", small_run(tmp_path), "--port", 0, *words)
    assert ended.code == 0, ended.err
    assert chosen == [shortlist]


@pytest.mark.parametrize("size", ["0", "-3", "few"])
def test_a_shortlist_that_is_no_size_is_wrong_usage(
    castpoi: CommandLine, run: Path, size: str
) -> None:
    ended = castpoi("serve", run, "--shortlist", size)
    assert ended.code == 2
    assert f"'{size}' is neither a number of places nor all" in ended.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--host", "0.0.0.0"], "is reachable from other machines, but no API key is set"),
        (["--store", "visits.sqlite"], "the visit store is not a URL"),
        (["--api-key-file", "missing"], "the API keys cannot be read from missing"),
        (["--host", "203.0.113.7", "--api-key-file", "KEYS"], "the server cannot listen on"),
    ],
)
def test_a_wrong_option_is_refused_before_the_run_is_loaded(
    castpoi: CommandLine, run: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    (tmp_path / "keys").write_text(KEY)
    words = [str(tmp_path / "keys") if word == "KEYS" else word for word in words]
    ended = castpoi("serve", run, "--port", 0, *words)
    assert ended.code == 1
    assert sentence in ended.err


def test_a_port_in_use_is_refused(castpoi: CommandLine, run: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ended = castpoi("serve", run, "--port", other.getsockname()[1])
    assert ended.code == 1
    assert ": Address already in use; choose another" in ended.err


def test_without_the_extra_the_command_that_installs_it_is_shown(
    castpoi: CommandLine, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "castpoi.serving.server", None)
    ended = castpoi("serve", run)
    assert ended.code == 1
    assert "which is not installed; pip install 'castpoi[serve]'" in ended.err
