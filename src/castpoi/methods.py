"""The ranking methods by name: the one place where a method is made known.

A method is added by one entry here; evaluation, comparison and the command line ask only this
table. Modules are named, not imported (as the verbs in cli/lazy.py), so that listing methods
stays quick and restoring a run never pulls in the code that trained it.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any

from castpoi.checkins.city import City
from castpoi.errors import UnknownMethod
from castpoi.ranker import SavableRanker


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to rank places."""

    name: str
    line: str
    """What it does, in one line."""
    ranker: str
    """Its ranker, as `module:Class`."""
    trainer: str | None = None
    """The function that learns it, as `module:function`; None: its ranker's `count` counts it."""

    @property
    def needs_training(self) -> bool:
        """Whether it is learned; otherwise counting is enough."""
        return self.trainer is not None

    def ranker_class(self) -> type[SavableRanker[Any]]:
        """The class that scores places, imported now."""
        found: type[SavableRanker[Any]] = _imported(self.ranker)
        return found

    def count(self, city: City, *, part: str) -> SavableRanker[Any]:
        """Its ranker, counted from what may be known before `part` is foretold."""
        counted: SavableRanker[Any] = _imported(self.ranker).count(city, part=part)
        return counted

    def trainer_function(self) -> Any:
        """The function that learns it, imported now (see `training.train.Trainer`)."""
        if self.trainer is None:
            raise TypeError(f"{self.name} is counted, not learned")
        return _imported(self.trainer)


class Methods:
    """All methods castpoi knows, best first."""

    def __init__(self, *methods: Method) -> None:
        self._by_name = {method.name: method for method in methods}

    def __iter__(self) -> Iterator[Method]:
        return iter(self._by_name.values())

    @property
    def best(self) -> Method:
        """The method to train when nobody names one: the first of the table."""
        return next(iter(self))

    @property
    def names(self) -> list[str]:
        """The names a person may ask for."""
        return list(self._by_name)

    def register(self, method: Method) -> None:
        """Make one more method known."""
        if method.name in self._by_name:
            raise ValueError(f"a method named {method.name} is already registered")
        self._by_name[method.name] = method

    def named(self, name: str) -> Method:
        """The method of this name."""
        if name in self._by_name:
            return self._by_name[name]
        close = difflib.get_close_matches(name.lower(), self.names, n=1)
        guess = f"did you mean '{close[0]}'? " if close else ""
        raise UnknownMethod(
            f"no method is named '{name}'; {guess}the methods are {', '.join(self.names)}"
        )


METHODS = Methods(
    Method(
        name="castpoi",
        line="every candidate reads the history for itself (CaST-POI; learned)",
        ranker="castpoi.model.ranker:CastPoiRanker",
        trainer="castpoi.training.castpoi_trainer:train_castpoi",
    ),
    Method(
        name="revisit",
        line="own visits to the place times its popularity (the paper's heuristic)",
        ranker="castpoi.baselines.revisit:Revisit",
    ),
    Method(
        name="popularity",
        line="check-ins of everybody at the place",
        ranker="castpoi.baselines.popularity:Popularity",
    ),
    Method(
        name="nearest",
        line="nearest to the last visit first",
        ranker="castpoi.baselines.nearest:Nearest",
    ),
    Method(
        name="markov",
        line="own moves from the last place, then the crowd's, then popularity",
        ranker="castpoi.baselines.markov:Markov",
    ),
    Method(
        name="recent",
        line="most recently visited first",
        ranker="castpoi.baselines.recent:Recent",
    ),
)


def _imported(reference: str) -> Any:
    """What `module:name` points to."""
    module, _, name = reference.partition(":")
    return reduce(getattr, name.split("."), import_module(module))
