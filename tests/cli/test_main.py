"""The command as a whole: exit codes, errors in one line, help that names every option."""

import subprocess
import sys
from collections.abc import Callable
from errno import EACCES, ENOSPC
from io import StringIO

import click
import pytest
from polars.exceptions import ComputeError
from rich.console import Console as RichConsole

from castpoi import __version__
from castpoi.cli import main
from castpoi.cli.console import Console
from castpoi.core.errors import CastPoiError
from tests.conftest import CommandLine, Ended

ALL_VERBS = [
    *((verb,) for verb in main.VERBS if verb not in main.GROUPS),
    *((group, verb) for group, verbs in main.GROUPS.items() for verb in verbs),
]


def test_the_version_is_printed(castpoi: CommandLine) -> None:
    assert castpoi("--version") == Ended(0, f"castpoi, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "verbs"),
    [
        (("--help",), main.VERBS),
        (("-h",), main.VERBS),
        *(((group, "--help"), verbs) for group, verbs in main.GROUPS.items()),
    ],
)
def test_the_help_has_every_verb_with_one_line(
    castpoi: CommandLine, words: tuple[str, ...], verbs: dict[str, tuple[str, str]]
) -> None:
    ended = castpoi(*words)
    assert ended.code == 0
    assert [verb for verb, (_, line) in verbs.items() if f"{verb} " not in ended.out] == []
    assert [line for _, line in verbs.values() if line not in ended.out] == []


@pytest.mark.parametrize("words", ALL_VERBS, ids=" ".join)
def test_the_help_of_a_verb_explains_each_option(
    castpoi: CommandLine, words: tuple[str, ...]
) -> None:
    ended = castpoi(*words, "--help")
    group: click.Command | None = main.castpoi
    for word in words:
        assert isinstance(group, click.Group)
        group = group.get_command(click.Context(group), word)
    command = group
    assert command is not None
    options = [one for one in command.params if isinstance(one, click.Option)]
    names = {name for one in options for name in one.opts if name.startswith("--")}
    assert {"--json", "--quiet", "--debug"} <= names
    assert [name for name in names if name not in ended.out] == []
    assert [one.name for one in options if not one.help] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), ""),
        (("data",), ""),
        (
            ("trian",),
            "There is no command 'trian'; did you mean 'train'? the commands are data, train",
        ),
        (("data", "fly"), "There is no command 'fly'; the commands are prepare, describe"),
        (("train", "c", "--sed", "1"), "No such option '--sed'. (Did you mean one of"),
        (("data", "prepare"), "Missing argument 'SOURCES...'"),
        (("data", "prepare", "x.csv"), "Missing option '--out'"),
        (("data", "prepare", "x.csv", "--out", "c", "--split", "half"), "Invalid value for"),
        (("train", "c", "--seed", "1", "--seed=2"), "The option '--seed' is given twice"),
        (("data", "audit", "c", "--out", "a"), "No such option '--out'"),
        (
            ("serve", "r", "--import-city", "--no-import-city"),
            "'--import-city' is given",
        ),
    ],
)
def test_wrong_usage_ends_with_2_and_one_json_object(
    castpoi: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    ended = castpoi(*words)
    assert ended.code == 2
    assert sentence in ended.err
    if sentence:
        as_json = castpoi(*words, "--json")
        assert as_json.code == 2
        assert sentence in as_json.json["error"]


def test_an_option_of_several_values_and_a_switch_may_be_repeated(castpoi: CommandLine) -> None:
    words = ("train", "nowhere", "--out", "run", "--set", "width=8", "--set", "heads=2")
    assert castpoi(*words, "--quiet", "--quiet").code == 1


Failing = Callable[..., Ended]


@pytest.fixture
def failing(castpoi: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Run a verb whose function of the library raises an error."""

    def run(problem: BaseException, *words: str) -> Ended:
        def stop(*_: object, **__: object) -> None:
            raise problem

        monkeypatch.setattr("castpoi.cli.report.write_report", stop)
        return castpoi("report", "results", "--out", "new", *words)

    return run


def test_an_unexpected_error_is_one_line_with_a_traceback_only_on_request(failing: Failing) -> None:
    problem = ZeroDivisionError("no places")
    ended = failing(problem)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "castpoi: unexpected ZeroDivisionError: no places; this is a bug in castpoi, please "
        "report it with the output of '--debug'\n"
    )
    assert failing(problem, "--json").json["error"].startswith("unexpected ZeroDivisionError")
    debugged = failing(problem, "--debug")
    assert debugged.code == 1
    assert "Traceback (most recent call last)" in debugged.err


def test_a_known_error_has_a_traceback_only_on_request(failing: Failing) -> None:
    problem = CastPoiError("the city is closed; come back tomorrow")
    assert failing(problem).err == "castpoi: the city is closed; come back tomorrow\n"
    assert "Traceback" in failing(problem, "--debug").err


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            ComputeError("IO error: No space left on device (os error 28)"),
            "the disk is full (IO error: No space left on device (os error 28)); free some space "
            "and run the command again",
        ),
        (
            OSError(ENOSPC, "No space left on device"),
            "the disk is full ([Errno 28] No space left on device); free some space and run the "
            "command again",
        ),
        (
            PermissionError(EACCES, "Permission denied", "a/b"),
            "a/b: Permission denied; fix it, or choose another path",
        ),
    ],
)
def test_an_error_of_the_machine_is_not_called_a_bug(
    failing: Failing, problem: Exception, words: str
) -> None:
    ended = failing(problem)
    assert (ended.code, ended.err) == (1, f"castpoi: {words}\n")


def test_an_interruption_ends_with_130(failing: Failing) -> None:
    ended = failing(KeyboardInterrupt())
    assert (ended.code, ended.err.strip()) == (130, "castpoi: interrupted")


def test_help_imports_neither_polars_nor_a_learning_library() -> None:
    probe = (
        "import sys\n"
        "from castpoi.cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "print([name for name in ('polars', 'numpy', 'torch') if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_table_shows_brackets_as_they_are() -> None:
    screen = StringIO()
    console = Console(as_json=False, out=RichConsole(file=screen, width=60))
    console.table(["[red]place", "n [7]"], [["Gate [7] [b]", "[/]"]], title="[x] of a [city]")
    shown = screen.getvalue()
    for words in ("[x] of a [city]", "[red]place", "n [7]", "Gate [7] [b]", "[/]"):
        assert words in shown
