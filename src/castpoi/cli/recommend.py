"""`castpoi recommend`: where next, and why, for a user or a history."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import castpoi
from castpoi.cli.console import Console, speaks
from castpoi.cli.options import cold_places_option, private_places_options

if TYPE_CHECKING:  # imported when the verb runs, so that --help stays quick
    from castpoi.recommend.recommendation import ContributingVisit, Recommendation, Recommendations


class Point(click.ParamType[tuple[float, float]]):
    """A latitude and a longitude, as LAT,LON; an error does not repeat them."""

    name = "LAT,LON"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Two numbers from a text."""
        try:
            lat, lon = (float(degrees) for degrees in str(value).split(","))
        except ValueError:
            self.fail("it must be a latitude and a longitude in degrees: LAT,LON.", param, ctx)
        return lat, lon


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--user", metavar="ID", help="Somebody of the run's city.")
@click.option(
    "--history",
    "history_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help='Visits of anybody: a table with place and time, or JSON [{"place", "at"}].',
)
@click.option(
    "--k", type=click.IntRange(min=1), default=10, show_default=True, help="How many places."
)
@click.option("--explain", is_flag=True, help="Show terms and visits behind each place.")
@click.option("--near", type=Point(), help="Where the person is, in degrees.")
@click.option(
    "--within-km", type=float, metavar="X", help="Only this far from --near or the last visit."
)
@click.option(
    "--category", "categories", multiple=True, metavar="NAME", help="Only of this category."
)
@click.option("--exclude-visited", is_flag=True, help="Only places the history never visits.")
@click.option("--new-only", is_flag=True, help="Only places not among the last 512 visits.")
@click.option(
    "--at",
    metavar="TIME",
    help="The moment of asking, e.g. 2012-04-03T18:00-04:00; later visits are left out. For a run "
    "trained with --known-time the moment of the next visit, now unless told.",
)
@click.option(
    "--city", type=click.Path(path_type=Path), help="Where the run's city is now, if it has moved."
)
@cold_places_option
@private_places_options
@speaks
def recommend(
    console: Console,
    run: Path,
    *,
    user: str | None,
    history_file: Path | None,
    k: int,
    explain: bool,
    near: tuple[float, float] | None,
    within_km: float | None,
    categories: tuple[str, ...],
    exclude_visited: bool,
    new_only: bool,
    at: str | None,
    **reading: Any,
) -> None:
    """Recommend the likeliest next places with a RUN.

    For a user of the run's city, or for anybody by a file of visits; a time without an offset
    from UTC is the wall clock of the visited place. Filters apply before the best are taken.
    """
    from castpoi.recommend.input_files import read_history
    from castpoi.recommend.request import Request

    if (user is None) == (history_file is None):
        raise click.UsageError("Give either --user or --history.")
    request = Request.of(
        history=None if history_file is None else read_history(history_file),
        user=user,
        k=k,
        at=at,
        near=near,
        within_km=within_km,
        categories=categories or None,
        exclude_visited=exclude_visited,
        new_only=new_only,
        explain=explain,
    )
    (answer,) = castpoi.load(run, **reading).recommend_many([request])
    for remark in answer.remarks:
        console.note(f"Note: {remark}.")
    show(console, answer)
    console.result(answer.to_dict())


def show(console: Console, answer: "Recommendations") -> None:
    """Print recommendations as a table, and below it the reason for each."""
    from castpoi.recommend.explain import LAST_VISITS

    console.table(
        ["", "place", "category", "km", "%", "score"],
        [_row(rank, each) for rank, each in enumerate(answer, start=1)],
        title=f"Where next ({answer.model})",
        left=3,
    )
    is_read = answer.visits_by == "attention"
    for rank, each in enumerate(answer, start=1):
        console.say(f"{rank}. {_label(each)}: {each.sentence}")
        _show_explanation(
            console, each, "of the attention to" if is_read else "of the loss without"
        )
    if not is_read and any(each.visits for each in answer):
        console.say(
            f"Loss without a visit: how much the score falls, as a share of the falls for the last "
            f"{LAST_VISITS} visits."
        )


def _row(rank: int, each: "Recommendation") -> list[str]:
    km = "-" if each.distance_km is None else f"{each.distance_km:.1f}"
    percent, score = f"{100 * each.probability:.2f}", f"{each.score:.3f}"
    return [str(rank), each.name or each.place, each.category or "-", km, percent, score]


def _show_explanation(console: Console, each: "Recommendation", weighed: str) -> None:
    from castpoi.recommend.sentence import ago_words, distance_words

    if each.visits is None:
        return
    if each.terms is not None:
        terms = " + ".join(f"{name} {value:.3f}" for name, value in each.terms.items())
        console.say(f"   score {each.score:.3f} = {terms}")
    for visit in each.visits:
        where = "here" if visit.place == each.place else f"{distance_words(visit.distance_km)} away"
        console.say(
            f"   {visit.weight:6.1%} {weighed} {_label(visit)}, {where}, "
            f"{ago_words(60 * visit.hours_ago)}; score without it {visit.score_without:.3f}"
        )
    console.say()


def _label(place: "Recommendation | ContributingVisit") -> str:
    return place.name or place.category or place.place
