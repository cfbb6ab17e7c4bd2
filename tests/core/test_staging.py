"""What a killed command leaves behind is put back or removed by the next one."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from castpoi.core import staging
from castpoi.core.files import check_vacant, new_file, read_manifest, write_json
from castpoi.core.staging import staging_beside, sweep, try_lock

_REPLACE = """
import os, signal, sys
from pathlib import Path
from castpoi.core import staging
from castpoi.core.files import new_folder, write_json

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def killed_at_last(*paths):
    global left
    left -= 1
    return rename(*paths) if left else killed()

left, rename = int(sys.argv[2]), os.rename
if left:
    os.rename, staging._exchanged_at_once = killed_at_last, lambda *_: False
else:
    staging.shutil.rmtree = killed
with new_folder(Path(sys.argv[1]), kind="city", overwrite=True) as folder:
    write_json(folder / "manifest.json", {"kind": "city", "word": "new"})
"""


def make_city(folder: Path, word: str) -> None:
    folder.mkdir()
    write_json(folder / "manifest.json", {"kind": "city", "word": word})


@pytest.mark.parametrize(
    ("renames", "word"),
    [(0, "new"), (2, "old"), (3, "old"), (4, "new")],
    ids=["exchanged at once", "before the former moves", "no city", "before the former goes"],
)
def test_a_replacement_that_is_killed_leaves_a_whole_city(
    tmp_path: Path, renames: int, word: str
) -> None:
    city = tmp_path / "city"
    make_city(city, "old")
    ended = subprocess.run([sys.executable, "-c", _REPLACE, city, str(renames)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    assert read_manifest(city, kind="city")["word"] == word
    check_vacant(city, kind="city", overwrite=True)
    assert list(tmp_path.iterdir()) == [city]
    assert read_manifest(city, kind="city")["word"] == word


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two folders in one step")
def test_a_replaced_folder_is_never_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_city(tmp_path / "city", "old")
    make_city(tmp_path / "new", "new")
    monkeypatch.setattr(Path, "rename", None)
    staging.exchange(tmp_path / "new", tmp_path / "city")
    words = [read_manifest(tmp_path / name, kind="city")["word"] for name in ("city", "new")]
    assert words == ["new", "old"]


def test_only_what_no_living_process_holds_is_removed_or_put_back(tmp_path: Path) -> None:
    city = tmp_path / "city"
    with staging_beside(city) as one, staging_beside(city) as other:
        former = one.rename(one.with_name(f"{one.name}.former"))
        sweep(city)
        assert former.is_dir()
        assert other.is_dir()
        assert not city.exists()
    sweep(city)
    assert list(tmp_path.iterdir()) == [city]


def test_a_former_folder_that_cannot_be_put_back_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = tmp_path / ".city.0123abcd.former"
    former.mkdir()

    def refuse(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refuse)
        sweep(tmp_path / "city")
    assert former.is_dir()
    sweep(tmp_path / "city")
    assert list(tmp_path.iterdir()) == [tmp_path / "city"]


def test_only_staging_folders_of_the_same_target_are_removed(tmp_path: Path) -> None:
    others = [".city.notes", ".city", "city.0123abcd", ".city2.0123abcd", ".city.0123abcd.old"]
    for name in (*others, ".city.0123abcd", ".city.89abcdef"):
        (tmp_path / name).mkdir()
    (tmp_path / ".city.aaaabbbb").symlink_to(tmp_path / ".city.notes")
    sweep(tmp_path / "city")
    assert {path.name for path in tmp_path.iterdir()} == {*others, ".city.aaaabbbb"}
    sweep(tmp_path / "absent" / "city")


def test_where_folders_cannot_be_locked_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise OSError(errno.EBADF, "Bad file descriptor")  # as NFS does

    monkeypatch.setattr(staging, "try_lock", refuse)
    with staging_beside(tmp_path / "city") as folder:
        sweep(tmp_path / "city")
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_staging_folder_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(number: int, *, wait: bool) -> bool:
        monkeypatch.setattr(staging, "try_lock", try_lock)
        sweep(tmp_path / "city")
        return try_lock(number, wait=wait)

    monkeypatch.setattr(staging, "try_lock", too_late)
    with staging_beside(tmp_path / "city") as folder:
        assert folder.is_dir()


def test_a_new_file_appears_only_when_it_is_finished(tmp_path: Path) -> None:
    (tmp_path / ".town.csv.0123abcd").mkdir()  # of a killed command
    with new_file(tmp_path / "town.csv") as staged:
        staged.write_text("user,place")
        assert not (tmp_path / "town.csv").exists()
    assert (tmp_path / "town.csv").read_text() == "user,place"
    assert list(tmp_path.iterdir()) == [tmp_path / "town.csv"]
