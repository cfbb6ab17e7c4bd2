"""A castpoi command that kills itself just before the n-th change of a name in a folder.

    python -m chaos.castpoi_command N FOLDER WORD...

A change of a name makes a whole file or folder appear, be replaced or disappear: a rename, an
exchange (renameat2, noticed by its lookup through ctypes) or the removal of a folder. N = 0 kills
nothing. The number of changes is the last line on standard error. `data fetch` gets a
small data set from the server at $CHAOS_DATA_URL in place of the public one.
"""

import atexit
import os
import signal
import sys
from typing import Any, Final

COUNTED: Final = "changes of a name:"
"""Begins the last line on standard error."""
_EXCHANGE: Final = ("ctypes.dlsym", "renameat2")


def changes_a_name(event: str, arguments: tuple[Any, ...], folder: str) -> bool:
    """Whether an audit event changes a name in the folder."""
    if event in {"os.rename", "shutil.rmtree"}:
        paths = arguments[: 2 if event == "os.rename" else 1]
        return any(
            isinstance(path, str | bytes | os.PathLike)
            and os.path.realpath(os.fsdecode(path)).startswith(folder)
            for path in paths
        )
    return event == _EXCHANGE[0] and arguments[-1] == _EXCHANGE[1]


def kill_before_change(number: int, folder: str) -> None:
    """End this process with SIGKILL just before the n-th change of a name from now on."""
    found = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal found
        if changes_a_name(event, arguments, folder):
            found += 1
            if found == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    atexit.register(lambda: print(COUNTED, found, file=sys.stderr))


def publish_small_data() -> None:
    """Replace the public Gowalla by a small file on a server of this machine."""
    from tests.checkins.small_sources import GOWALLA, small

    from castpoi.checkins.fetch import DATASETS

    DATASETS["gowalla"] = small("gowalla", GOWALLA, os.environ["CHAOS_DATA_URL"])


def main() -> None:
    """Run the command, and kill it before the given change."""
    number, folder, *words = sys.argv[1:]
    if words[:2] == ["data", "fetch"]:
        publish_small_data()
    from castpoi.cli.main import main as castpoi

    kill_before_change(int(number), os.path.realpath(folder))
    castpoi(words)


if __name__ == "__main__":
    main()
