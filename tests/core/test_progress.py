from io import StringIO

import pytest
from rich.console import Console as RichConsole
from rich.progress import TimeRemainingColumn

from castpoi.cli.console import Bars, Console


def test_a_bar_shows_its_name_and_a_text() -> None:
    terminal = RichConsole(file=StringIO(), force_terminal=True)
    with Console(as_json=False, err=terminal).progress() as progress:
        assert isinstance(progress, Bars)
        with progress.task("training", total=2) as task:
            task.describe("epoch 1 · loss 2.345")
            (bar,) = progress.bars.tasks
            assert bar.description == "training · epoch 1 · loss 2.345"


@pytest.mark.parametrize("shows", [True, False])
def test_a_bar_shows_the_remaining_time_unless_its_text_does(shows: bool) -> None:
    terminal = RichConsole(file=StringIO(), force_terminal=True)
    with Console(as_json=False, err=terminal).progress(shows_remaining=shows) as progress:
        assert isinstance(progress, Bars)
        kinds = {type(column) for column in progress.bars.columns}
        assert (TimeRemainingColumn in kinds) is shows
