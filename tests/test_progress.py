from io import StringIO

from rich.console import Console as RichConsole

from castpoi.cli.console import Bars, Console
from castpoi.progress import SILENCE, describe


class Deaf:
    """A task that can only count."""

    def advance(self, amount: float = 1) -> None:
        pass


def test_words_reach_only_those_who_can_show_them() -> None:
    describe(Deaf(), "epoch 1")
    with SILENCE.task("training") as task:
        describe(task, "epoch 1")


def test_a_bar_shows_its_name_and_what_is_going_on() -> None:
    terminal = RichConsole(file=StringIO(), force_terminal=True)
    with Console(as_json=False, err=terminal).progress() as progress:
        assert isinstance(progress, Bars)
        with progress.task("training", total=2) as task:
            describe(task, "epoch 1 · loss 2.345")
            (bar,) = progress.bars.tasks
            assert bar.description == "training · epoch 1 · loss 2.345"
