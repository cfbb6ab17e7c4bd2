"""The `castpoi` command: its verbs, and how it ends.

Exit codes: 0 done, 1 a problem with the input or the run (one clear sentence), 2 wrong usage.
"""

import errno
import json
import os
import sys
import traceback
from collections.abc import Sequence

import click

from castpoi import __version__
from castpoi.cli.console import wants
from castpoi.cli.lazy import LazyGroup
from castpoi.core.errors import CastPoiError

# Threads that wait for one another soon sleep instead of spinning, so that a busy machine is not
# slowed down by our waiting; see docs/decisions/0008-threads-that-sleep.md. Torch reads it once.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

VERBS = {
    "data": ("castpoi.cli.data", "Prepare, describe, audit, synthesize or fetch check-ins."),
    "train": ("castpoi.cli.train", "Train a method on a city and write a run."),
    "evaluate": ("castpoi.cli.evaluate", "Rank every test target and write a result."),
    "compare": ("castpoi.cli.compare", "Print results side by side."),
    "reproduce": ("castpoi.cli.reproduce", "Run all that a suite of experiments lacks."),
    "tune": ("castpoi.cli.tune", "Try settings of a method, judged by validation alone."),
    "report": ("castpoi.cli.report", "One page, tables and figures about many results."),
    "recommend": ("castpoi.cli.recommend", "Where next, and why: for a user or a history."),
    "serve": ("castpoi.cli.serve", "Serve a run's recommendations over HTTP."),
    "demo": ("castpoi.cli.demo", "The whole road on a synthetic city."),
}


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with 'castpoi demo'. Every verb takes --help, --json, --quiet and --debug.",
)
@click.version_option(__version__, prog_name="castpoi")
def castpoi() -> None:
    """Where will a person go next, from the places they have been?

    A road of folders: a raw table becomes a CITY (data prepare), a city and a method become a
    RUN (train), a run becomes a RESULT (evaluate), results become a table (compare).
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    try:
        words = None if arguments is None else list(arguments)
        code = castpoi.main(args=words, standalone_mode=False)  # a number if a command chose one
    except click.ClickException as wrong_usage:
        _fail(wrong_usage.format_message(), arguments, shown=wrong_usage.show)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", arguments)
        sys.exit(130)
    except CastPoiError as problem:
        _fail(str(problem), arguments)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as surprise:  # the last door: no traceback unless asked for
        _fail(_sentence_of(surprise), arguments)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _sentence_of(surprise: Exception) -> str:
    if os.strerror(errno.ENOSPC) in str(surprise):  # each library that writes has its own error
        return f"the disk is full ({surprise}); make room and give the command again"
    if isinstance(surprise, OSError):  # a folder that may not be entered
        what = "the output" if surprise.filename is None else surprise.filename
        return f"{what}: {surprise.strerror or surprise}; mend that, or name another"
    return (
        f"unexpected {type(surprise).__name__}: {surprise}; this is a fault of castpoi, please "
        "report it with what '--debug' shows"
    )


def _fail(sentence: str, arguments: Sequence[str] | None, shown: object = None) -> None:
    if wants("--json", arguments):
        click.echo(json.dumps({"error": sentence}, ensure_ascii=False))
    if wants("--debug", arguments):
        traceback.print_exc()
    if callable(shown):
        shown()
    else:
        click.echo(f"castpoi: {sentence}", err=True)


if __name__ == "__main__":
    main()
