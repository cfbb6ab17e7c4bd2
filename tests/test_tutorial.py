"""The commands of docs/tutorial.md work in their order, and answers have the shape shown there."""

import argparse
import json
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from castpoi.serving.service import Service
from tests.conftest import CommandLine
from tests.serving.live import living
from tests.training.small import TINY_WORDS

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
ADDRESS = "http://127.0.0.1:8080"
MADE = {"visits.csv", "my-city", "my-city.html", "my-run", "my-results", "my-run.visits.sqlite"}


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind (the words after the fence) and its text."""

    kind: str
    text: str


def blocks() -> list[Block]:
    found = re.findall(r"^```(.*?)\n(.*?)^```$", TUTORIAL.read_text("utf-8"), re.M | re.S)
    return [Block(kind.strip(), text) for kind, text in found]


def asked_and_shown() -> Iterator[tuple[list[str], Any]]:
    """Every curl command and the answer that the tutorial shows below it."""
    for block, below in pairwise(blocks()):
        if block.kind == "sh ask":
            assert below.kind == "json", block.text
            yield shlex.split(block.text), json.loads(below.text)


def curl(client: httpx.Client, words: list[str]) -> Any:
    """The JSON that curl would print, for the options of curl that the tutorial uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="header", default="Accept: */*")
    parser.add_argument("-d", dest="body")
    order = parser.parse_args(words[1:])
    assert order.address.startswith(f"{ADDRESS}/")
    answer = client.request(
        order.method or ("GET" if order.body is None else "POST"),
        order.address.removeprefix(ADDRESS),
        headers=dict([order.header.split(": ")]),
        content=order.body,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def shape(content: Any) -> Any:
    """The field names of an answer, without values, which depend on the training."""
    if isinstance(content, dict):
        return {name: shape(value) for name, value in content.items()}
    if isinstance(content, list):
        return [shape(value) for value in content]
    return None


def small(words: list[str]) -> list[str]:
    """The command with a tiny model, if it trains."""
    return [*words, "--threads", "1", *TINY_WORDS] if words[0] == "train" else words


def test_all_commands_of_the_tutorial_work_and_all_answers_are_as_shown(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[Any] = []

    def ask_and_stop(
        service: Service, listening: socket.socket, *, on_ready: Callable[[], None]
    ) -> None:
        with living(service) as live:
            answered.extend(curl(live.client, words) for words, _ in asked_and_shown())
            assert live.ask("GET", "/").status_code == 200  # the map
            on_ready()

    monkeypatch.setattr("castpoi.serving.server.serve_until_stopped", ask_and_stop)
    monkeypatch.setattr("castpoi.serving.logs.logged_to_stderr", nullcontext)
    monkeypatch.chdir(tmp_path)
    commands = [
        shlex.split(line)
        for block in blocks()
        if block.kind == "sh run"
        for line in block.text.splitlines()
    ]
    for name, *words in commands:
        assert name == "castpoi"
        more = ("--port", 0) if words[0] == "serve" else ()  # the usual port may be taken
        ended = castpoi(*small(words), *more)
        assert ended.code == 0, (words, ended.err)
    assert commands[-1][1] == "serve"
    assert {path.name for path in tmp_path.iterdir()} >= MADE
    shown = [answer for _, answer in asked_and_shown()]
    assert [shape(answer) for answer in answered] == [shape(answer) for answer in shown]
    *_, erased, left = answered
    assert (erased, left) == ({"erased": 1}, {"visits": [], "next": None})
