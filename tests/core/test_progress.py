from io import StringIO

import pytest
from rich.console import Console as RichConsole
from rich.progress import TimeRemainingColumn

from castpoi.cli.console import Bars, Console
from castpoi.core.progress import SILENCE, describe


class Deaf:
    """A task that can only count."""

    def advance(self, amount: float = 1) -> None:
        pass


class Telling(Deaf):
    """A task that can show words too."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def describe(self, text: str) -> None:
        self.shown.append(text)


def test_words_reach_only_those_who_can_show_them() -> None:
    telling = Telling()
    with SILENCE.task("training") as silent:
        for task in (Deaf(), silent, telling):
            describe(task, "epoch 1")
    assert telling.shown == ["epoch 1"]


def test_a_bar_shows_its_name_and_what_is_going_on() -> None:
    terminal = RichConsole(file=StringIO(), force_terminal=True)
    with Console(as_json=False, err=terminal).progress() as progress:
        assert isinstance(progress, Bars)
        with progress.task("training", total=2) as task:
            describe(task, "epoch 1 · loss 2.345")
            (bar,) = progress.bars.tasks
            assert bar.description == "training · epoch 1 · loss 2.345"


@pytest.mark.parametrize("tells", [True, False])
def test_a_bar_tells_the_time_that_is_left_unless_its_words_do(tells: bool) -> None:
    terminal = RichConsole(file=StringIO(), force_terminal=True)
    with Console(as_json=False, err=terminal).progress(tells_remaining=tells) as progress:
        assert isinstance(progress, Bars)
        kinds = {type(column) for column in progress.bars.columns}
        assert (TimeRemainingColumn in kinds) is tells
