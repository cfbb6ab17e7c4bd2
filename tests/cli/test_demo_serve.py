"""`castpoi demo --serve`: the demo that ends on the map."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from castpoi.methods.registry import METHODS
from castpoi.serving.service import Service
from tests.conftest import CommandLine


def test_the_demo_ends_on_a_service_that_knows_the_people_of_its_city(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[tuple[int, int]] = []

    def be_ready_and_stop(
        service: Service, listening: socket.socket, *, on_ready: Callable[[], None]
    ) -> None:
        asyncio.run(service.start())
        known.append(service.store.counts())
        on_ready()

    monkeypatch.setattr("castpoi.serving.server.serve_until_stopped", be_ready_and_stop)
    counted = {METHODS.best.name: METHODS.best, "popularity": METHODS.named("popularity")}
    monkeypatch.setattr(METHODS, "_by_name", counted)
    words = ("--out", tmp_path / "demo", "--users", 25, "--epochs", 1, "--serve", "--port", 0)
    ended = castpoi("demo", *words)
    assert ended.code == 0, ended.err
    assert "for the map of the city" in ended.out
    assert "is served at http://127.0.0.1:" in ended.out
    ((users, visits),) = known
    assert 0 < users <= 25
    assert visits > users
    assert (tmp_path / "demo" / "run.visits.sqlite").is_file()


def test_the_demo_serves_or_prints_one_object_but_not_both(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    ended = castpoi("demo", "--out", tmp_path / "demo", "--serve", "--json")
    assert ended.code == 2
    assert "--serve runs until stopped" in ended.err
    assert not (tmp_path / "demo").exists()
