"""How the command ends: exit codes, one line for a surprise, help that names every option."""

import subprocess
import sys
from errno import EACCES, ENOSPC
from pathlib import Path

import click
import pytest
from polars.exceptions import ComputeError

from castpoi import __version__
from castpoi.cli import data, main
from castpoi.cli.data_prepare import prepare
from castpoi.core.errors import CastPoiError
from tests.conftest import CommandLine
from tests.sources import NEW_YORK, table, table_rows, visits_in


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text(table(table_rows(visits_in(NEW_YORK))))
    return path


def test_the_version_is_told(castpoi: CommandLine) -> None:
    ended = castpoi("--version")
    assert (ended.code, ended.out) == (0, f"castpoi, version {__version__}\n")


@pytest.mark.parametrize("words", [("--help",), ("-h",)])
def test_the_help_names_every_verb(castpoi: CommandLine, words: tuple[str, ...]) -> None:
    ended = castpoi(*words)
    assert ended.code == 0
    for verb, (_, line) in main.VERBS.items():
        assert f"{verb} " in ended.out
        assert line in ended.out


def test_the_help_of_data_names_every_verb(castpoi: CommandLine) -> None:
    ended = castpoi("data", "--help")
    assert ended.code == 0
    for verb, (_, line) in data.VERBS.items():
        assert verb in ended.out
        assert line in ended.out


@pytest.mark.parametrize("verb", data.VERBS)
def test_the_help_of_a_verb_of_data_names_its_options(castpoi: CommandLine, verb: str) -> None:
    ended = castpoi("data", verb, "--help")
    assert ended.code == 0
    command = data.data.get_command(click.Context(data.data), verb)
    assert command is not None
    options = [option for one in command.params for option in one.opts if option.startswith("--")]
    assert {"--json", "--quiet", "--debug"} <= set(options)
    assert [option for option in options if option not in ended.out] == []


def test_the_words_of_prepare_are_a_contract() -> None:
    options = {option for one in prepare.params for option in one.opts}
    assert options >= {
        *("--out", "--format", "--columns", "--on-bad-rows", "--clock-shift", "--accept-rhythm"),
        *("--core", "--recipe", "--json"),
    }


@pytest.mark.parametrize("words", [(), ("data",)])
def test_a_group_without_a_verb_is_wrong_usage(
    castpoi: CommandLine, words: tuple[str, ...]
) -> None:
    assert castpoi(*words).code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fly",), "No such command 'fly'"),
        (("data", "fly"), "No such command 'fly'"),
        (("data", "prepare"), "Missing argument 'SOURCES...'"),
        (("data", "prepare", "x.csv"), "Missing option '--out'"),
        (
            ("data", "prepare", "x.csv", "--out", "c", "--split", "half"),
            "Invalid value for '--split'",
        ),
    ],
)
def test_wrong_usage_ends_with_2_and_one_json_object(
    castpoi: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    ended = castpoi(*words)
    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.err
    as_json = castpoi(*words, "--json")
    assert as_json.code == 2
    assert sentence in as_json.json["error"]


def surprise(problem: BaseException) -> object:
    def stop(*_: object, **__: object) -> None:
        raise problem

    return stop


def test_a_surprise_is_one_line_and_its_traceback_is_shown_only_on_request(
    castpoi: CommandLine, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = ZeroDivisionError("no places")
    monkeypatch.setattr("castpoi.cli.data_prepare.prepare_city", surprise(problem))
    words = ("data", "prepare", source, "--out", source.parent / "city")
    ended = castpoi(*words)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "castpoi: unexpected ZeroDivisionError: no places; this is a fault of castpoi, please "
        "report it with what '--debug' shows\n"
    )
    as_json = castpoi(*words, "--json")
    assert as_json.json["error"].startswith("unexpected ZeroDivisionError: no places")
    debugged = castpoi(*words, "--debug")
    assert debugged.code == 1
    assert "Traceback (most recent call last)" in debugged.err


def test_a_known_problem_has_a_traceback_only_on_request(
    castpoi: CommandLine, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = CastPoiError("the city is closed; come back tomorrow")
    monkeypatch.setattr("castpoi.cli.data_prepare.prepare_city", surprise(problem))
    words = ("data", "prepare", source, "--out", source.parent / "city")
    assert castpoi(*words).err == "castpoi: the city is closed; come back tomorrow\n"
    assert "Traceback" in castpoi(*words, "--debug").err


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            ComputeError("IO error: No space left on device (os error 28)"),
            "the disk is full (IO error: No space left on device (os error 28)); make room and "
            "give the command again",
        ),
        (
            OSError(ENOSPC, "No space left on device"),
            "the disk is full ([Errno 28] No space left on device); make room and give the "
            "command again",
        ),
        (
            PermissionError(EACCES, "Permission denied", "a/b"),
            "a/b: Permission denied; mend that, or name another",
        ),
    ],
)
def test_a_refusal_of_the_machine_is_no_fault_of_ours(
    castpoi: CommandLine,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
    words: str,
) -> None:
    monkeypatch.setattr("castpoi.cli.data_prepare.prepare_city", surprise(problem))
    ended = castpoi("data", "prepare", source, "--out", source.parent / "city")
    assert (ended.code, ended.err) == (1, f"castpoi: {words}\n")


def test_an_interruption_ends_with_130(
    castpoi: CommandLine, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castpoi.cli.data_prepare.prepare_city", surprise(KeyboardInterrupt()))
    ended = castpoi("data", "prepare", source, "--out", source.parent / "city")
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
