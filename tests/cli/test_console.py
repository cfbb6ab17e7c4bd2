"""What a person sees."""

from io import StringIO

from rich.console import Console as RichConsole

from castpoi.cli.console import Console


def test_a_table_shows_brackets_as_they_stand() -> None:
    screen = StringIO()
    console = Console(as_json=False, out=RichConsole(file=screen, width=60))
    console.table(["[red]place", "n [7]"], [["Gate [7] [b]", "[/]"]], title="[x] of a [city]")
    shown = screen.getvalue()
    for words in ("[x] of a [city]", "[red]place", "n [7]", "Gate [7] [b]", "[/]"):
        assert words in shown
