"""The options of a command that recommends places but keeps private ones to those who know them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from castpoi.checkins.record import PRIVATE_CATEGORIES


def keeps_private_places(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--private-category` and `--recommend-private`, as `private_categories`."""

    @click.option(
        "--private-category",
        "private_categories",
        metavar="NAME",
        multiple=True,
        default=PRIVATE_CATEGORIES,
        show_default=True,
        help="Category whose places are recommended only to those who have been there; may be "
        "given several times.",
    )
    @click.option("--recommend-private", is_flag=True, help="Recommend such places to everybody.")
    @wraps(command)
    def wrapped(
        *arguments: Any,
        private_categories: tuple[str, ...],
        recommend_private: bool,
        **options: Any,
    ) -> None:
        kept = () if recommend_private else private_categories
        command(*arguments, private_categories=kept, **options)

    return wrapped
