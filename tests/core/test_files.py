"""Folders appear whole or not at all; JSON is read or refused in words."""

import json
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from polars.exceptions import PanicException

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import (
    check_vacant,
    is_folder_of,
    new_file,
    new_folder,
    read_json,
    read_manifest,
    read_or_nothing,
    read_table,
    write_json,
)
from tests.messages import refused


def make_city(folder: Path, word: str = "old") -> None:
    folder.mkdir()
    write_json(folder / "manifest.json", {"kind": "city", "word": word})


def test_a_folder_appears_only_when_it_is_finished(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "city"
    with new_folder(target, kind="city") as staging:
        (staging / "part").write_text("half")
        assert not target.exists()
        assert staging.parent == target.parent
    assert (target / "part").read_text() == "half"
    assert list(target.parent.iterdir()) == [target]


def _fail_halfway(staging: Path) -> None:
    (staging / "part").write_text("half")
    raise ZeroDivisionError


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        new_folder(tmp_path / "city", kind="city") as staging,
    ):
        _fail_halfway(staging)
    assert list(tmp_path.iterdir()) == []


def test_a_former_folder_is_replaced_whole_when_asked(tmp_path: Path) -> None:
    make_city(tmp_path / "city")
    (tmp_path / "city" / "users.parquet").touch()
    with new_folder(tmp_path / "city", kind="city", overwrite=True) as staging:
        write_json(staging / "manifest.json", {"kind": "city", "word": "new"})
    assert read_manifest(tmp_path / "city", kind="city")["word"] == "new"
    assert [path.name for path in (tmp_path / "city").iterdir()] == ["manifest.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["city"]


def test_a_folder_with_files_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    make_city(tmp_path / "city")
    (tmp_path / "city" / "NOTES.md").write_text("mine")
    words = r"city also holds NOTES.md, which castpoi did not write .*; move it away, or choose"
    with pytest.raises(BadInput, match=words):
        check_vacant(tmp_path / "city", kind="city", overwrite=True)
    (tmp_path / "city" / "own").mkdir()
    (tmp_path / "city" / "own" / "manifest.json").touch()
    with refused(BadInput):
        check_vacant(tmp_path / "city", kind="city", overwrite=True)


def test_a_file_that_comes_while_the_new_folder_is_built_is_not_removed(tmp_path: Path) -> None:
    make_city(tmp_path / "city")
    with (
        refused(BadInput),
        new_folder(tmp_path / "city", kind="city", overwrite=True),
    ):
        (tmp_path / "city" / "NOTES.md").write_text("mine")
    assert (tmp_path / "city" / "NOTES.md").read_text() == "mine"
    assert read_manifest(tmp_path / "city", kind="city")["word"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["city"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_second_of_two_commands_at_once_replaces_only_when_asked(
    tmp_path: Path, overwrite: bool
) -> None:
    words = "already holds a city; choose another --out or replace it with --overwrite"
    with (
        nullcontext() if overwrite else pytest.raises(BadInput, match=words),
        new_folder(tmp_path / "city", kind="city", overwrite=overwrite) as staging,
    ):
        write_json(staging / "manifest.json", {"kind": "city", "word": "second"})
        make_city(tmp_path / "city", "first")
    word = read_manifest(tmp_path / "city", kind="city")["word"]
    assert word == ("second" if overwrite else "first")
    assert [path.name for path in tmp_path.iterdir()] == ["city"]


def test_a_former_folder_stays_if_the_new_one_cannot_be_moved(tmp_path: Path) -> None:
    make_city(tmp_path / "city")
    with (
        refused(BadInput),
        new_folder(tmp_path / "city", kind="city", overwrite=True) as staging,
    ):
        staging.rmdir()
    assert read_manifest(tmp_path / "city", kind="city")["word"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["city"]


def test_a_link_stays_and_the_folder_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    make_city(tmp_path / "disk" / "city")
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "city")
    with new_folder(tmp_path / "link", kind="city", overwrite=True) as staging:
        write_json(staging / "manifest.json", {"kind": "city", "word": "new"})
    assert (tmp_path / "link").is_symlink()
    assert read_manifest(tmp_path / "disk" / "city", kind="city")["word"] == "new"
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["city"]


def test_a_folder_of_its_kind_is_taken_unless_it_may_be_replaced(tmp_path: Path) -> None:
    make_city(tmp_path / "city")
    words = r"already holds a city; choose another --out or replace it with --overwrite"
    with pytest.raises(BadInput, match=words):
        check_vacant(tmp_path / "city", kind="city", overwrite=False)
    check_vacant(tmp_path / "city", kind="city", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_of_another_kind_is_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    make_city(tmp_path / "city")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.json").write_text("not json")
    for name in ("city", "file", "folder"):
        with refused(BadInput):
            check_vacant(tmp_path / name, kind="run", overwrite=overwrite)


def test_a_target_inside_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with refused(BadInput):
        check_vacant(tmp_path / "file" / "deep" / "city", kind="city", overwrite=False)


def test_the_root_folder_and_a_loop_of_links_are_refused_in_words(tmp_path: Path) -> None:
    with refused(BadInput):
        check_vacant(Path("/"), kind="city", overwrite=True)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for target in (tmp_path / "loop", tmp_path / "loop" / "city"):
        with refused(BadInput):
            check_vacant(target, kind="city", overwrite=False)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o755), (0o077, 0o700)])
def test_a_folder_has_the_permissions_of_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with new_folder(tmp_path / "city", kind="city"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "city").stat().st_mode) == mode


def test_an_output_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    with (
        refused(BadInput),
        new_folder(tmp_path / ("c" * 250), kind="city"),
    ):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kind": "run"}', "{"])
def test_a_folder_is_of_a_kind_only_by_its_manifest(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    assert not is_folder_of(tmp_path, "city")
    (tmp_path / "manifest.json").write_text('{"kind": "city"}')
    assert is_folder_of(tmp_path, "city")


def test_a_manifest_is_refused_in_words(tmp_path: Path) -> None:
    with refused(BrokenFolder):
        read_manifest(tmp_path / "gone", kind="city")
    with refused(BrokenFolder):
        read_manifest(tmp_path, kind="city")
    write_json(tmp_path / "manifest.json", {"kind": "run"})
    with refused(BrokenFolder):
        read_manifest(tmp_path, kind="city")
    write_json(tmp_path / "manifest.json", {})
    with refused(BrokenFolder):
        read_manifest(tmp_path, kind="city")


@pytest.mark.parametrize(
    ("kind", "command"),
    [("city", "data prepare"), ("run", "train"), ("result", "evaluate")],
)
def test_the_error_for_a_wrong_folder_names_the_command_that_makes_one(
    tmp_path: Path, kind: str, command: str
) -> None:
    with pytest.raises(BrokenFolder, match=f"or make a {kind} with 'castpoi {command}'"):
        read_manifest(tmp_path, kind=kind)


def test_json_is_refused_in_words(tmp_path: Path) -> None:
    with refused(BrokenFolder):
        read_json(tmp_path / "gone.json")
    (tmp_path / "a.json").write_text("{")
    with refused(BrokenFolder):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[1]")
    with refused(BrokenFolder):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("content", [None, "", "{", "[1]"])
def test_json_that_is_absent_or_torn_is_read_as_empty(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    assert read_or_nothing(tmp_path / "a.json") == {}
    write_json(tmp_path / "a.json", {"count": 1})
    assert read_or_nothing(tmp_path / "a.json") == {"count": 1}


def test_json_keeps_letters_of_every_language_and_replaces_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})
    write_json(path, {"name": "Café ラーメン ☕"})
    assert "Café ラーメン ☕" in path.read_text(encoding="utf-8")
    assert read_json(path) == json.loads(path.read_bytes())
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """The inodes that are synced, and those that were when a path was moved last."""
    noted: dict[str, set[int]] = {"all": set(), "before the move": set()}

    def note(fsync: Callable[[int], None], number: int) -> None:
        noted["all"].add(os.fstat(number).st_ino)
        fsync(number)

    def note_move(move: Callable[..., None], *paths: Path) -> None:
        noted["before the move"] = set(noted["all"])
        move(*paths)

    monkeypatch.setattr(os, "fsync", partial(note, os.fsync))
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, partial(note_move, getattr(os, name)))
    return noted


def test_a_new_folder_is_on_the_disk_before_and_after_it_is_moved(
    tmp_path: Path, synced: dict[str, set[int]]
) -> None:
    with new_folder(tmp_path / "city", kind="city") as staging:
        (staging / "deep").mkdir()
        (staging / "deep" / "part").write_text("whole")
    made = [tmp_path / "city", *(tmp_path / "city").rglob("*")]
    assert {path.stat().st_ino for path in made} <= synced["before the move"]
    assert tmp_path.stat().st_ino in synced["all"] - synced["before the move"]


def test_a_file_is_on_the_disk_before_it_is_moved(
    tmp_path: Path, synced: dict[str, set[int]]
) -> None:
    write_json(tmp_path / "a.json", {})
    assert (tmp_path / "a.json").stat().st_ino in synced["before the move"]
    with new_file(tmp_path / "town.csv") as staged:
        staged.write_text("user,place")
    assert (tmp_path / "town.csv").stat().st_ino in synced["before the move"]
    assert tmp_path.stat().st_ino in synced["all"] - synced["before the move"]


def test_a_panic_of_the_parquet_reader_is_a_damaged_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(*_: object, **__: object) -> None:
        raise PanicException("called `Result::unwrap()` on an `Err` value\nand more lines")

    monkeypatch.setattr(pl, "read_parquet", panic)
    words = r"t.parquet is damaged \(called `Result::unwrap\(\)` on an `Err` value\); make again$"
    with pytest.raises(BrokenFolder, match=words):
        read_table(tmp_path / "t.parquet", pl.Schema({"a": pl.Int64}), how_to_fix="make again")
