"""castpoi: where will a person go next, from the places they have been?"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["__version__", "load"]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from castpoi.recommend.recommender import load
else:

    def __getattr__(name: str) -> object:
        """`load`, imported on first use, so that importing castpoi stays fast."""
        if name == "load":
            return import_module("castpoi.recommend.recommender").load
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
