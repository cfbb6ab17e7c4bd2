"""What many tests share: the command line in-process, and the real check-ins where they are."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from castpoi.cli.main import main

if TYPE_CHECKING:
    from castpoi.reports.evidence import Evidence
    from castpoi.reports.significance import Verdicts

pytest_plugins = ["tests.messages", "tests.run_fixtures"]

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


def documented_keys(verb: str) -> set[str]:
    """Keys of the JSON object of a verb, from docs/cli.md."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{verb}` \| (`.*) \|$", page.partition("## JSON output")[2], re.M)
    always = re.sub(r"\([^)]*\)|;.*", "", row)
    return {key for words in re.findall("`([^`]*)`", always) for key in words.split(", ")}


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


@pytest.fixture(scope="session")
def committed() -> "Evidence":
    """The results in this repository."""
    from castpoi.reports.evidence import read_evidence

    return read_evidence(Path(__file__).resolve().parents[1] / "results")


@pytest.fixture(scope="session")
def committed_verdicts(committed: "Evidence") -> "Verdicts":
    """Their tests, with one draw of the bootstrap."""
    from castpoi.reports.significance import judge_all

    return judge_all(committed, draws=1)
