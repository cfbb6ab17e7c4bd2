"""Options: built from dataclasses, with several values, and seeds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from castpoi.cli.options import SeveralValues, field_docstrings, options_of, parsed
from castpoi.core.config import Range
from tests.conftest import CommandLine


@dataclass(frozen=True)
class Base:
    least_visits: Annotated[int, Range(1, 9, "small")] = 3
    """Fewest visits of a `user`,
    all places together."""


@dataclass(frozen=True)
class Plan(Base):
    share: float | None = None
    """Share of users."""
    kind: Literal["fast", "slow"] = "fast"
    quiet: bool = False
    names: tuple[str, ...] = ()
    file: Path = Path("here")


@click.command()
@options_of(Plan, "plan", names={"names": "name"})
def planned(plan: Plan) -> None:
    click.echo(plan)


@click.command()
@options_of(Plan, "plan", only=["kind"], types={"kind": click.STRING})
def brief(plan: Plan) -> None:
    click.echo(plan)


def test_each_field_is_an_option_with_its_type_and_default() -> None:
    assert CliRunner().invoke(planned, []).output == f"{Plan()}\n"
    words = "--least-visits 4 --share 0.5 --kind slow --quiet --name a --name b --file x"
    plan = Plan(4, 0.5, "slow", quiet=True, names=("a", "b"), file=Path("x"))
    assert CliRunner().invoke(planned, words.split()).output == f"{plan}\n"
    for wrong in ("--share half", "--kind medium", "--least-visits 1.5", "--names a"):
        assert CliRunner().invoke(planned, wrong.split()).exit_code == 2


def test_the_help_of_an_option_is_the_docstring_of_its_field() -> None:
    assert field_docstrings(Plan) == {
        "least_visits": "Fewest visits of a user, all places together.", "share": "Share of users.",
    }  # fmt: skip
    shown = CliRunner().invoke(planned, ["--help"]).output
    assert "Fewest visits of a user, all places together.  [default: 3]" in " ".join(
        shown.split()
    ).replace("together. [", "together.  [")


def test_fields_can_be_selected_and_have_types_of_their_own() -> None:
    assert CliRunner().invoke(brief, ["--kind", "medium"]).output == f"{Plan(kind='medium')}\n"  # type: ignore[arg-type]
    assert CliRunner().invoke(brief, ["--quiet"]).exit_code == 2


@dataclass(frozen=True, kw_only=True)
class Trip:
    """A field without a default is an option that must be given."""

    to: Annotated[str, "PLACE"]
    """Place to go to.  [default: none]"""
    days: Annotated[tuple[int, ...], click.IntRange(min=1), "N..."] = ()
    """Days of the trip."""
    cost: Annotated[float, "EURO"] | None = None
    """Cost."""


@click.command()
@options_of(Trip, "trip", types={"cost": parsed("CENT", int)}, make=dict)
def travel(trip: dict[str, object]) -> None:
    click.echo(trip)


def test_an_annotation_gives_an_option_its_type_and_metavar() -> None:
    shown = CliRunner().invoke(travel, ["--help"]).output
    for words in ("--to PLACE", "Place to go to.  [default: none]", "--days N...", "--cost CENT"):
        assert words in shown
    assert CliRunner().invoke(travel, ["--to", "x", "--days", "0"]).exit_code == 2
    assert CliRunner().invoke(travel, ["--days", "1"]).exit_code == 2


def test_only_the_values_that_are_given_are_arguments_of_make() -> None:
    read = CliRunner().invoke(travel, ["--to", "x", "--days", "1", "--days", "2"]).output
    assert read == "{'to': 'x', 'days': (1, 2)}\n"
    assert CliRunner().invoke(travel, ["--to", "x", "--cost", "7"]).output == (
        "{'to': 'x', 'cost': 7}\n"
    )


@click.command(cls=SeveralValues, several={"--seeds": str.isdigit})
@click.argument("city", nargs=-1)
@click.option("--seeds", multiple=True, type=int)
@click.option("--quiet", is_flag=True)
def command(city: tuple[str, ...], seeds: tuple[int, ...], quiet: bool) -> None:
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
    assert CliRunner().invoke(command, words.split()).output == f"{read}\n"


@pytest.mark.parametrize("words", ["--seeds", "--seeds --quiet", "--seeds nyc", "--seeds --seeds"])
def test_an_option_without_a_value_is_refused(words: str) -> None:
    assert CliRunner().invoke(command, words.split()).exit_code == 2


@pytest.mark.parametrize("seed", [-1, 2**32])
@pytest.mark.parametrize(
    "words",
    [
        ["train", "CITY", "--seed"],
        ["tune", "CITY", "--model", "sasrec", "--try", "dropout=0.2", "--seed"],
        ["reproduce", "CITY", "--suite", "main", "--seeds"],
        ["demo", "--seed"],
    ],
    ids=lambda words: words[0],
)
def test_a_seed_that_no_generator_takes_is_refused_before_any_work(
    castpoi: CommandLine, tmp_path: Path, words: list[str], seed: int
) -> None:
    ended = castpoi(words[0], "--out", tmp_path / "out", *words[1:], seed)
    assert ended.code == 2
    assert f"{seed} is not in the range 0<=x<=4294967295" in ended.err
    assert not (tmp_path / "out").exists()
