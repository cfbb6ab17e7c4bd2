"""castpoi: where will a person go next, from the places they have been?"""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from castpoi.serving.cold_places import TableOfPlaces
    from castpoi.serving.recommender import Recommender
    from castpoi.serving.shortlist_choice import Setting

__version__ = "0.1.0"


def load(
    run: str | Path,
    *,
    city: str | Path | None = None,
    exact_up_to: int = 20_000,
    shortlist: "Setting" = 256,
    private_categories: Iterable[str] | None = None,
    places: "TableOfPlaces | None" = None,
) -> "Recommender":
    """A recommender from the folder of a run; see `castpoi.serving.recommender.load`."""
    # named, not imported: every module of castpoi imports this one, which must stay quick
    serving = import_module("castpoi.serving.recommender")
    recommender: Recommender = serving.load(
        run,
        city=city,
        exact_up_to=exact_up_to,
        shortlist=shortlist,
        private_categories=private_categories,
        places=places,
    )
    return recommender
