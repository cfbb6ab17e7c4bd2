"""castpoi: where will a person go next, from the places they have been?

city = castpoi.prepare(visits)                  # a frame, a file, or several
model = castpoi.train(city)                     # castpoi-next
model.recommend(user=470)                       # the next places, with reasons
castpoi.evaluate(model)                         # ranks and metrics
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

__version__ = "0.2.0"

_HOMES: Final = {
    "prepare": "library.prepare",
    "synthesize": "library.prepare",
    "train": "library.train",
    "evaluate": "library.evaluate",
    "evaluate_lists": "library.evaluate",
    "compare": "library.compare",
    "load": "recommend.recommender",
    "City": "checkins.city",
    "Client": "library.client",
    "Recommender": "recommend.recommender",
    "Recommendations": "recommend.recommendation",
    "Result": "evaluation.result",
    "Comparison": "library.compare",
    "History": "library.evaluate",
    "CastPoiError": "core.errors",
}

__all__ = [
    "CastPoiError",
    "City",
    "Client",
    "Comparison",
    "History",
    "Recommendations",
    "Recommender",
    "Result",
    "__version__",
    "compare",
    "evaluate",
    "evaluate_lists",
    "load",
    "prepare",
    "synthesize",
    "train",
]

if TYPE_CHECKING:
    from castpoi.checkins.city import City
    from castpoi.core.errors import CastPoiError
    from castpoi.evaluation.result import Result
    from castpoi.library.client import Client
    from castpoi.library.compare import Comparison, compare
    from castpoi.library.evaluate import History, evaluate, evaluate_lists
    from castpoi.library.prepare import prepare, synthesize
    from castpoi.library.train import train
    from castpoi.recommend.recommendation import Recommendations
    from castpoi.recommend.recommender import Recommender, load
else:

    def __getattr__(name: str) -> object:
        """A public name, imported when it is first used: `import castpoi` stays quick."""
        if name in _HOMES:
            return getattr(import_module(f"castpoi.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """The public names, for completion."""
        return __all__
