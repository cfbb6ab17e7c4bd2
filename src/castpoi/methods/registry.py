"""The ranking methods by name: the one place where a method is made known.

A method is added by one entry here, a sequence model by one more in `baselines/sequence.py`;
evaluation, comparison and the command line ask only this table. Modules are named, not imported (as
the verbs in cli/main.py), so that listing methods stays quick and restoring a run never pulls in
the code that trained it.

A package of your own adds methods without a change here: each is a `Method`, made known by an entry
point of the group `castpoi.methods` (docs/reproduce.md shows one).
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, UnknownMethod
from castpoi.methods.ranker import SavableRanker

GROUP: Final = "castpoi.methods"
"""The entry points by which an installed package makes its methods known."""


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
    presets: tuple[str, ...] = ()
    """Settings to start from, by name, the default first; only a learned method has some."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that make the method what it is, by name, as a person would write them."""

    @property
    def default_preset(self) -> str | None:
        """The preset where nobody names one."""
        return next(iter(self.presets), None)

    @property
    def needs_training(self) -> bool:
        """Whether it is learned; otherwise counting is enough."""
        return self.trainer is not None

    @property
    def is_ours(self) -> bool:
        """Whether castpoi itself trains it, and not the code of another package."""
        return (self.trainer or "").startswith("castpoi.")

    def check_free(self, names: Collection[str], *, where: str = "") -> None:
        """Refuse a change of what makes the method what it is; `where` begins the sentence."""
        fixed = next((name for name in self.settings if name in names), None)
        if fixed is not None:
            raise BadInput(
                f"{where}{self.name} is defined by {fixed}={self.settings[fixed]}, which cannot be "
                f"changed; leave out {fixed}"
            )

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
    """All methods castpoi knows, the best one first."""

    def __init__(self, *methods: Method) -> None:
        self._by_name = {method.name: method for method in methods}
        self._broken: dict[str, str] = {}

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

    def add_installed(self, points: Iterable[EntryPoint]) -> None:
        """Make methods of other packages known; one that fails is told to who asks for it."""
        for point in points:
            try:
                self.register(_method_of(point))
            except Exception as problem:  # a stranger's code may do anything
                self._broken[point.name] = f"{type(problem).__name__}: {problem}"

    def named(self, name: str) -> Method:
        """The method of this name."""
        if name in self._by_name:
            return self._by_name[name]
        if name in self._broken:
            raise UnknownMethod(
                f"method '{name}' is installed but does not load: {self._broken[name]}; mend the "
                f"package that has it, or install it again"
            )
        close = difflib.get_close_matches(name.lower(), self.names, n=1)
        guess = f"did you mean '{close[0]}'? " if close else ""
        raise UnknownMethod(
            f"no method is named '{name}'; {guess}the methods are {', '.join(self.names)}"
        )


def _sequence(name: str, line: str) -> Method:
    """A learned baseline that reads the places of the last visits, in order."""
    return Method(
        name=name,
        line=line,
        ranker="castpoi.baselines.sequence:SequenceRanker",
        trainer="castpoi.training.sequence:train_sequence",
        presets=("paper", "tuned"),
    )


METHODS = Methods(
    Method(
        name="castpoi-next",
        line="ours: CaST-POI with own habits and nearness instead of the reader",
        ranker="castpoi.model.ranker:CastPoiRanker",
        trainer="castpoi.training.castpoi:train_castpoi",
        presets=("next",),
    ),
    Method(
        name="castpoi",
        line="the paper's: every candidate reads the history for itself",
        ranker="castpoi.model.ranker:CastPoiRanker",
        trainer="castpoi.training.castpoi:train_castpoi",
        presets=("fast", "paper"),
    ),
    Method(
        name="revisit",
        line="own visits to the place times its popularity (the paper's heuristic)",
        ranker="castpoi.baselines.simple:Revisit",
    ),
    Method(
        name="popularity",
        line="check-ins of everybody at the place",
        ranker="castpoi.baselines.simple:Popularity",
    ),
    Method(
        name="nearest",
        line="nearest to the last visit first",
        ranker="castpoi.baselines.simple:Nearest",
    ),
    Method(
        name="markov",
        line="own moves from the last place, then the crowd's, then popularity",
        ranker="castpoi.baselines.markov:Markov",
    ),
    Method(
        name="recent",
        line="most recently visited first",
        ranker="castpoi.baselines.simple:Recent",
    ),
    Method(
        name="target-attention",
        line="CaST-POI's reader without distance, age and gate (after DIN)",
        ranker="castpoi.model.ranker:CastPoiRanker",
        trainer="castpoi.training.castpoi:train_castpoi",
        presets=("fast", "paper"),
        settings={"spatial_bias": "false", "temporal_bias": "false", "revisit_gate": "false"},
    ),
    _sequence("esasrec", "SASRec as recent replications have it: gates, pre-norm"),
    _sequence("sasrec", "self-attention over the last visits"),
    _sequence("bert4rec", "self-attention both ways, guesses masked visits"),
    _sequence("caser", "convolutions over the last visits"),
    _sequence("narm", "a recurrent network with attention"),
    _sequence("srgnn", "a graph network over the moves of the last visits"),
    _sequence("stamp", "attention led by the last visit and the mean of all"),
    _sequence("core", "a weighted mean of the places visited"),
)


def _method_of(point: EntryPoint) -> Method:
    """The method that an entry point names, under its own name."""
    found = point.load()
    if not isinstance(found, Method):
        raise TypeError(f"{point.value} is no castpoi.methods.registry.Method")
    if found.name != point.name:
        raise ValueError(f"the entry point is named {point.name}, its method {found.name}")
    return found


def _imported(reference: str) -> Any:
    """What `module:name` points to."""
    module, _, name = reference.partition(":")
    return reduce(getattr, name.split("."), import_module(module))


METHODS.add_installed(entry_points(group=GROUP))
