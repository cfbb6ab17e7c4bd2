"""The `castpoi` command: its commands and its exit codes.

Exit codes: 0 done, 1 an error in the input or the run (one sentence), 2 wrong usage, 130
interrupted.
"""

import errno
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from castpoi import __version__
from castpoi.core.errors import CastPoiError, did_you_mean

# Waiting threads sleep soon instead of spinning, so that they do not slow down a busy machine; see
# docs/decisions/0008-threads-that-sleep.md. Torch reads the variable once, when it is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

DATA_VERBS = {
    "prepare": ("prepare", "Read, clean and split check-ins: a CITY."),
    "describe": ("data", "Counts, rhythm and distances of a city."),
    "audit": ("data", "Check a city for leakage, wrong clocks and implausible data."),
    "export": ("data", "Write a city as atomic files of RecBole."),
    "synthesize": ("data", "Make the check-ins of a synthetic city."),
    "fetch": ("data", "Download a public data set."),
}
VISITS_VERBS = {
    "export": ("visits", "Write the visits of a service to a table."),
}
GROUPS = {"data": DATA_VERBS, "visits": VISITS_VERBS}
VERBS = {
    "data": ("main", "Prepare, describe, audit, export, make or fetch check-ins."),
    "train": ("train", "Train a method on a city and write a run."),
    "evaluate": ("evaluate", "Evaluate a run or a baseline on the test split."),
    "compare": ("compare", "Print results side by side."),
    "reproduce": ("experiments", "Run the missing experiments of a suite."),
    "tune": ("experiments", "Search the settings of a method on the validation split."),
    "report": ("report", "Write a page, tables and figures about many results."),
    "recommend": ("recommend", "Recommend next places for a user or a history."),
    "similar": ("recommend", "Show the places most similar to a place."),
    "serve": ("serve", "Serve a run's recommendations over HTTP."),
    "visits": ("main", "Export the visits that were posted to a service."),
    "evaluate-log": ("visits", "Evaluate the answers of a service by the visits that followed."),
    "methods": ("show", "List the methods, or the settings of one."),
    "show": ("show", "Show what a folder of castpoi contains, and what to do next."),
    "doctor": ("show", "Show versions and libraries for a bug report."),
    "demo": ("demo", "Run every step on a synthetic city, in a minute."),
}
"""Name -> (module of `castpoi.cli` with its command, one line of help)."""


class LazyGroup(click.Group):
    """A group that imports a command only when it is called, so that `--help` is fast."""

    def __init__(
        self, *arguments: Any, verbs: Mapping[str, tuple[str, str]] | None = None, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.verbs = verbs or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of use."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in self.verbs:
            return None
        module = import_module(f"castpoi.cli.{self.verbs[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; refuse unknown ones, with a guess, and options that are given twice."""
        if args[0] not in self.verbs and not args[0].startswith("-"):
            guess = did_you_mean(args[0], self.verbs)
            ctx.fail(
                f"There is no command '{args[0]}'; {guess}the commands are {', '.join(self.verbs)}."
            )
        name, command, words = super().resolve_command(ctx, args)
        if command is not None:
            own = click.Context(command, ctx, name, resilient_parsing=True)
            _, _, given = command.make_parser(own).parse_args(list(words))
            for option in given:
                if isinstance(option, click.Option) and _is_twice(option, given):
                    own.fail(f"The option '{option.opts[-1]}' is given twice; give it once.")
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with one line each, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in self.verbs.items()])


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with 'castpoi demo'. Every command takes --help, --json, --quiet and --debug.",
)
@click.version_option(__version__, prog_name="castpoi")
def castpoi() -> None:
    """Predict where a person goes next, from the places they have visited.

    Each step writes a folder: a table of check-ins becomes a CITY (data prepare), a city and a
    method become a RUN (train), a run becomes a RESULT (evaluate), and results become a table
    (compare) or a page (report).
    """


@click.group(cls=LazyGroup, verbs=DATA_VERBS)
def data() -> None:
    """Turn a table of check-ins into a CITY: clean, split and checked."""


@click.group(cls=LazyGroup, verbs=VISITS_VERBS)
def visits() -> None:
    """Work with the visit store of a service."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        given = None if arguments is None else words  # click expands wildcards on Windows
        code = castpoi.main(args=given, standalone_mode=False)  # a number if a command chose one
    except click.ClickException as wrong_usage:
        _fail(wrong_usage.format_message(), words, shown=wrong_usage.show)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", words)
        sys.exit(130)
    except CastPoiError as problem:
        _fail(str(problem), words)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as unexpected:  # the last resort: no traceback without --debug
        _fail(_sentence_of(unexpected), words)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _is_twice(option: click.Option, given: list[click.Parameter]) -> bool:
    """Whether an option has two values that may differ."""
    is_switch = option.is_flag and not option.secondary_opts
    return given.count(option) > 1 and not option.multiple and not is_switch


def _sentence_of(unexpected: Exception) -> str:
    if os.strerror(errno.ENOSPC) in str(unexpected):  # each library has its own error for this
        return f"the disk is full ({unexpected}); free some space and run the command again"
    if isinstance(unexpected, OSError):  # such as a folder without permission
        path = "the output" if unexpected.filename is None else unexpected.filename
        return f"{path}: {unexpected.strerror or unexpected}; fix it, or choose another path"
    return (
        f"unexpected {type(unexpected).__name__}: {unexpected}; this is a bug in castpoi, please "
        "report it with the output of '--debug'"
    )


def _fail(sentence: str, words: Sequence[str], shown: object = None) -> None:
    if "--json" in words:
        click.echo(json.dumps({"error": sentence}, ensure_ascii=False))
    if "--debug" in words:
        traceback.print_exc()
    if callable(shown):
        shown()
    else:
        click.echo(f"castpoi: {sentence}", err=True)


if __name__ == "__main__":
    main()
