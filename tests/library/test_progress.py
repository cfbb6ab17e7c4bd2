from io import StringIO

import pytest
from rich.console import Console as RichConsole
from rich.progress import TimeRemainingColumn

from castpoi.cli.console import Console
from castpoi.core.progress import SILENCE
from castpoi.library import progress
from castpoi.library.progress import Bars, NotebookLines


def terminal() -> RichConsole:
    return RichConsole(file=StringIO(), force_terminal=True)


def test_a_bar_shows_its_name_and_a_text_while_there_is_work() -> None:
    bars = Bars(terminal())
    with bars.task("training", total=2) as task:
        task.describe("epoch 1 · loss 2.345")
        task.advance()
        (bar,) = bars.display.tasks
        assert (bar.description, bar.completed) == ("training · epoch 1 · loss 2.345", 1)
        assert bars.display.live.is_started
    assert not bars.display.live.is_started


@pytest.mark.parametrize("shows", [True, False])
def test_a_bar_shows_the_remaining_time_unless_its_text_does(shows: bool) -> None:
    bars = Console(as_json=False, err=terminal()).progress(shows_remaining=shows)
    assert isinstance(bars, Bars)
    assert (TimeRemainingColumn in {type(column) for column in bars.display.columns}) is shows


def test_quiet_commands_and_files_have_no_bars() -> None:
    assert Console(as_json=False, quiet=True, err=terminal()).progress() is SILENCE
    assert Console(as_json=False, err=RichConsole(file=StringIO())).progress() is SILENCE


def test_a_notebook_shows_the_work_under_way_and_how_long_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.0)
    shown: list[str] = []
    lines = NotebookLines(shown.append)
    with lines.task("training", total=4) as task:
        task.describe("epoch 1 · loss 2.345")
        with lines.task("validation") as inner:
            inner.advance()
        task.advance()
    assert shown == [
        "training · 0% · epoch 1 · loss 2.345 · 0 s",
        "training · 0% · epoch 1 · loss 2.345 · 0 s\nvalidation · 0 s",
        "training · 25% · epoch 1 · loss 2.345 · 0 s",
        "training: 0 s",
    ]


def test_short_work_is_not_shown_in_a_notebook() -> None:
    shown: list[str] = []
    with NotebookLines(shown.append).task("reading") as task:
        task.advance()
    assert shown == []
