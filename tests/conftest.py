"""What many tests share: the command line in-process, and the real check-ins where they are."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from castpoi.cli.main import main

pytest_plugins = ["tests.messages"]

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        content: dict[str, Any] = json.loads(self.out)
        return content


class CommandLine:
    """Runs `castpoi` commands in this process, as a person would type them."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> Ended:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        captured = self.capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ended(code, captured.out, captured.err)


@pytest.fixture
def castpoi(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real check-ins are not at {SHARED_DATA}")
    return SHARED_DATA
