"""A real PostgreSQL server for tests: on loopback, in a folder of its own, removed afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_PATIENCE_SECONDS = 60


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server and give the URL of its database; skip the test where there is none."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and postgres are not on this machine")
    # Not below pytest's folder: that is root's alone, and PostgreSQL refuses to run as root.
    with tempfile.TemporaryDirectory(prefix="castpoi-postgres-") as folder:
        cluster = Path(folder) / "cluster"
        cluster.mkdir()
        as_user = _as_nobody(Path(folder), cluster)
        initdb = [str(programs / "initdb"), "-D", str(cluster), "-U", "castpoi"]
        subprocess.run([*as_user, *initdb, "-A", "trust", "-N"], check=True, capture_output=True)
        port = _free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (Path(folder) / "log").open("wb") as log:
            server = subprocess.Popen(
                [*as_user, programs / "postgres", "-D", cluster, *options], stderr=log, stdout=log
            )
        try:
            _wait_for(port, server)
            yield f"postgresql://castpoi@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # at once, even with open connections
            server.wait(timeout=_PATIENCE_SECONDS)


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Stop all processes of a server while the block runs; its sockets stay open."""
    import psycopg

    with psycopg.connect(url) as connection:
        folder = connection.execute("SHOW data_directory").fetchall()[0][0]
    # as root, since the folder is that of the server's user
    postmaster = int((Path(folder) / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGSTOP)  # first, so that it begins no other
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    processes = [postmaster, *map(int, children)]
    try:
        for process in processes[1:]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):  # one that had ended already
                os.kill(process, signal.SIGCONT)


def _programs() -> Path | None:
    """The folder of the server's programs."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def _as_nobody(*folders: Path) -> list[str]:
    """Words before a command that give up root's rights, if we have them."""
    if os.geteuid() != 0:
        return []
    for folder in folders:
        shutil.chown(folder, "nobody")
    return ["setpriv", "--reuid=nobody", "--clear-groups", "--"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    import psycopg

    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="castpoi", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)
