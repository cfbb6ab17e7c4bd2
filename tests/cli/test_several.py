"""Options that take several values at once."""

import click
import pytest
from click.testing import CliRunner

from castpoi.cli.several import TakesSeveral


@click.command(cls=TakesSeveral, several={"--seeds": str.isdigit})
@click.argument("city", nargs=-1)
@click.option("--seeds", multiple=True, type=int)
@click.option("--quiet", is_flag=True)
def command(city: tuple[str, ...], seeds: tuple[int, ...], quiet: bool) -> None:
    """Tell what was read."""
    click.echo(f"{city} {seeds} {quiet}")


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("nyc --seeds 1 2 3", "('nyc',) (1, 2, 3) False"),
        ("--seeds 1 2 nyc 3", "('nyc', '3') (1, 2) False"),
        ("--seeds 1 --quiet 2", "('2',) (1,) True"),
        ("--seeds=1,2 3", "() (1, 2, 3) False"),
        ("--seeds 1 --seeds 2", "() (1, 2) False"),
        ("nyc", "('nyc',) () False"),
    ],
)
def test_values_belong_to_an_option_until_another_word_comes(words: str, read: str) -> None:
    ended = CliRunner().invoke(command, words.split())
    assert ended.output == f"{read}\n"


@pytest.mark.parametrize("words", ["--seeds", "--seeds --quiet", "--seeds nyc", "--seeds --seeds"])
def test_an_option_without_a_value_is_refused(words: str) -> None:
    assert CliRunner().invoke(command, words.split()).exit_code == 2
