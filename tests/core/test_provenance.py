import os
import re
import subprocess
from pathlib import Path

import pytest

from castpoi.core import provenance


@pytest.fixture(autouse=True)
def fresh_commit() -> None:
    provenance.commit.cache_clear()


def test_the_commit_is_that_of_castpois_own_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    _git(tmp_path, "init", "--quiet")
    assert provenance.commit() is None  # the package is in a checkout that does not track it
    _git(tmp_path, "add", "__init__.py")
    _git(tmp_path, "commit", "--quiet", "--message", "one")
    provenance.commit.cache_clear()
    assert re.fullmatch("[0-9a-f]{40}", provenance.commit() or "")
    (tmp_path / "__init__.py").write_text("changed = True")
    provenance.commit.cache_clear()
    assert re.fullmatch("[0-9a-f]{40}-dirty", provenance.commit() or "")
    provenance.commit.cache_clear()


def test_asking_for_the_commit_writes_nothing_into_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", "__init__.py")
    _git(tmp_path, "commit", "--quiet", "--message", "one")
    os.utime(tmp_path / "__init__.py", (0, 0))  # git would note this in its index
    before = (tmp_path / ".git" / "index").read_bytes()
    assert re.fullmatch("[0-9a-f]{40}", provenance.commit() or "")
    assert (tmp_path / ".git" / "index").read_bytes() == before
    provenance.commit.cache_clear()


def test_outside_a_checkout_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    assert provenance.commit() is None
    provenance.commit.cache_clear()


def test_the_peak_of_memory_grows_with_what_is_held() -> None:
    before = provenance.peak_memory_mb()
    held = b"x" * ((before or 0) + 100) * 2**20
    after = provenance.peak_memory_mb()
    assert before is not None
    assert after is not None
    assert after >= before + 90
    assert len(held) > 0


def _git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)
