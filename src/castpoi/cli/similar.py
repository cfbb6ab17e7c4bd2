"""`castpoi similar`: the places most similar to a place."""

from pathlib import Path
from typing import Any

import click

import castpoi
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, loading_options


@click.command()
@click.argument("run", type=FOLDER)
@click.argument("place")
@click.option(
    "--k", type=click.IntRange(min=1), default=10, show_default=True, help="Number of places."
)
@click.option(
    "--within-km", type=float, metavar="X", help="Only places within this distance of PLACE."
)
@click.option(
    "--category", "categories", multiple=True, metavar="NAME", help="Only places of this category."
)
@loading_options(leave_out=["city"])
@output_options
def similar(
    console: Console,
    run: Path,
    place: str,
    *,
    k: int,
    within_km: float | None,
    categories: tuple[str, ...],
    loading: dict[str, Any],
) -> None:
    """Show the places of a RUN that are most similar to a PLACE, given by its id.

    Places are compared by the vectors of the model. A model without vectors gives places of the
    same category, nearest first.
    """
    model = castpoi.load(run, **loading)
    answer = model.similar(place, k=k, within_km=within_km, categories=categories or None)
    console.table(
        ["", "place", "category", "km", "similarity"],
        [
            [
                str(rank),
                each.name or each.place,
                each.category or "-",
                f"{each.distance_km:.1f}",
                "-" if each.similarity is None else f"{each.similarity:.3f}",
            ]
            for rank, each in enumerate(answer, start=1)
        ],
        title=f"Similar to {place} by {answer.by} ({answer.model})",
        left=3,
    )
    console.result(answer.to_dict())
