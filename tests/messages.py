"""Errors and their sentences: `with refused(BadInput): ...` compares with `tests/messages.snap`.

A test says which error it expects and from which input; the sentence is in the snapshot, so that a
change of wording is one diff. `pytest --write-messages` writes the sentences again; paths of
temporary folders are `<tmp>` there, ports `<port>` and digests `<digest>`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from castpoi.core.errors import CastPoiError

SNAPSHOT: Final = Path(__file__).with_name("messages.snap")
_TEMPORARY: Final = re.compile(
    r"(?<!\w)/(?:[^\s'\"/]+/)*pytest-of-[^/]+/pytest-\d+(?:/popen-gw\d+)?(?:/test_\w*\d)?"
)
_PORT: Final = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_DIGEST: Final = re.compile(r"\b[0-9a-f]{12,}\b")


class Messages:
    """The sentences of the snapshot, by test; those of one test are in their order."""

    def __init__(self, file: Path = SNAPSHOT, *, write: bool = False) -> None:
        self.file = file
        self.write = write
        self.known: dict[str, list[str]] = (
            json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        )
        self.seen: dict[str, list[str]] = {}
        self.test = ""

    def check(self, error: CastPoiError) -> None:
        """Compare the sentence of an error with the snapshot, or note it there."""
        sentence = f"{type(error).__name__}: {stable(str(error))}"
        seen = self.seen.setdefault(self.test, [])
        seen.append(sentence)
        if self.write:
            return
        known = self.known.get(self.test, [])
        assert len(seen) <= len(known), (
            f"{self.file.name} has no such sentence of {self.test}: {sentence!r}; "
            "write it with: pytest --write-messages"
        )
        assert sentence == known[len(seen) - 1]

    def save(self, *, deselected: bool) -> None:
        """Write the snapshot; sentences of tests that exist but did not run are kept."""
        kept = {test: known for test, known in self.known.items() if exists(test)}
        content = {**kept, **self.seen} if deselected else self.seen
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        self.file.write_text(text + "\n", encoding="utf-8")


def exists(test: str) -> bool:
    """Whether there is a test with this key of the snapshot."""
    file, _, name = test.partition("::")
    path = SNAPSHOT.parent / file
    return path.is_file() and f"def {name.partition('[')[0]}(" in path.read_text(encoding="utf-8")


def stable(sentence: str) -> str:
    """A sentence without what differs from run to run: temporary folders, ports and digests."""
    return _DIGEST.sub("<digest>", _PORT.sub("<port>", _TEMPORARY.sub("<tmp>", sentence)))


MESSAGES: Final = pytest.StashKey[Messages]()
_current: list[Messages] = []


@contextmanager
def refused(kind: type[CastPoiError]) -> Iterator[pytest.ExceptionInfo[CastPoiError]]:
    """Expect an error of this very class, with the sentence of the snapshot."""
    with pytest.raises(kind) as caught:
        yield caught
    (messages,) = _current
    messages.check(caught.value)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--write-messages`."""
    parser.addoption(
        "--write-messages", action="store_true", help="write tests/messages.snap from what is seen"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the snapshot."""
    config.stash[MESSAGES] = Messages(write=bool(config.getoption("--write-messages")))
    _current[:] = [config.stash[MESSAGES]]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name the test whose errors follow, and forget those of an earlier run of it."""
    messages = item.config.stash[MESSAGES]
    messages.test = item.nodeid.removeprefix("tests/")
    messages.seen.pop(messages.test, None)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the sentences of a worker that has finished."""
    node.config.stash[MESSAGES].seen |= node.workeroutput.get("messages", {})


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the sentences of all workers, if that was asked for."""
    messages = session.config.stash[MESSAGES]
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker["messages"] = messages.seen
    elif messages.write:
        messages.save(deselected=session.config.args != [str(session.config.rootpath / "tests")])
