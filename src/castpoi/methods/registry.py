"""The ranking methods by name. Adding a method takes its file and one entry here.

Modules are given by name and imported when they are used, so listing methods is fast, and loading a
run never imports the code that trained it. Another package adds a `Method` by an entry point of
the group `castpoi.methods` (docs/reproduce.md has an example).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Final

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, UnknownMethod, did_you_mean
from castpoi.methods.ranker import SavableRanker

GROUP: Final = "castpoi.methods"  # entry points by which an installed package adds methods


_COUNTED: Final = "castpoi.training.counted:train_counted"


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to rank places."""

    name: str
    line: str
    """Its description in one line."""
    label: str = ""
    """Its name in tables.  [default: the name]"""
    ranker: str
    """Its ranker, as `module:Class`."""
    trainer: str | None = None
    """The function that trains it, as `module:function`; None: its ranker has a `count`."""
    presets: tuple[str, ...] = ()
    """Names of settings to start from, the default first; only of a trained method."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that define the method, by name, as text."""
    can_continue: bool = False
    """Whether its training can continue from a run of another city with the same places."""
    version: int = 1
    """Raised when a change of the code moves its numbers; suites then replace older results."""
    demo_epochs: float = 1.0
    """Share of the epochs of `castpoi demo`; less for a method with slow epochs."""
    package: str = ""
    """A package of an extra, without which it cannot be used."""

    @property
    def is_available(self) -> bool:
        """Whether the package that it needs is installed."""
        return not self.package or find_spec(self.package) is not None

    @property
    def default_preset(self) -> str | None:
        """The preset that is used unless another is given."""
        return next(iter(self.presets), None)

    @property
    def needs_training(self) -> bool:
        """Whether it is trained; otherwise it only counts."""
        return self.trainer is not None

    @property
    def has_seeds(self) -> bool:
        """Whether another seed gives other ranks; a method that counts has none."""
        return self.trainer not in (None, _COUNTED)

    @property
    def is_ours(self) -> bool:
        """Whether castpoi itself trains it, and not the code of another package."""
        return (self.trainer or "").startswith("castpoi.")

    def check_free(self, names: Collection[str], *, where: str = "") -> None:
        """Refuse to change a setting that defines the method; `where` begins the message."""
        fixed = next((name for name in self.settings if name in names), None)
        if fixed is not None:
            raise BadInput(
                f"{where}{self.name} is defined by {fixed}={self.settings[fixed]}, which cannot be "
                f"changed; leave out {fixed}"
            )

    def check_preset(self, preset: str | None, *, where: str = "") -> None:
        """Refuse a preset that the method does not have; `where` begins the message."""
        if preset not in (None, *self.presets):
            rule = f"choose {' or '.join(self.presets)}" if self.presets else "leave it out"
            raise BadInput(f"{where}{self.name} has no preset {preset!r}; {rule}")

    def ranker_class(self) -> type[SavableRanker[Any]]:
        """Import and return the class of its ranker."""
        found: type[SavableRanker[Any]] = imported(self.ranker)
        return found

    def count(self, city: City, *, part: str) -> SavableRanker[Any]:
        """Its ranker, counted from the check-ins before the split to predict."""
        counted: SavableRanker[Any] = imported(self.ranker).count(city, part=part)
        return counted

    def trainer_function(self) -> Any:
        """Import and return the function that trains it (see `training.job.Trainer`)."""
        if self.trainer is None:
            raise TypeError(f"{self.name} only counts, it is not trained")
        return imported(self.trainer)


class Methods:
    """All methods, the best one first."""

    def __init__(self, *methods: Method) -> None:
        self._by_name = {method.name: method for method in methods}
        self._broken: dict[str, str] = {}

    def __iter__(self) -> Iterator[Method]:
        return iter(self._by_name.values())

    @property
    def best(self) -> Method:
        """The method to train unless another is given: the first one."""
        return next(iter(self))

    @property
    def names(self) -> list[str]:
        """The names of all methods."""
        return list(self._by_name)

    def register(self, method: Method) -> None:
        """Add a method."""
        if method.name in self._by_name:
            raise ValueError(f"a method named {method.name} is already registered")
        self._by_name[method.name] = method

    def add_installed(self, points: Iterable[EntryPoint]) -> None:
        """Add methods of other packages; one that fails raises an error only when it is used."""
        for point in points:
            try:
                self.register(_method_of(point))
            except Exception as problem:  # code of another package may raise anything
                self._broken[point.name] = f"{type(problem).__name__}: {problem}"

    def named(self, name: str) -> Method:
        """The method of this name."""
        if name in self._by_name:
            return self._by_name[name]
        if name in self._broken:
            raise UnknownMethod(
                f"method '{name}' is installed but does not load: {self._broken[name]}; fix the "
                f"package that has it, or install it again"
            )
        guess = did_you_mean(name, self.names)
        raise UnknownMethod(
            f"no method is named '{name}'; {guess}the methods are {', '.join(self.names)}"
        )

    def find(self, name: str) -> Method | None:
        """The method of this name; None where it is not installed."""
        return self._by_name.get(name)

    def label_of(self, name: str) -> str:
        """The name of a method in tables; also of one that is not installed."""
        method = self.find(name)
        return method.label or name if method else name


def _method_of(point: EntryPoint) -> Method:
    """The method of an entry point, which must have its name."""
    found = point.load()
    if not isinstance(found, Method):
        raise TypeError(f"{point.value} is no castpoi.methods.registry.Method")
    if found.name != point.name:
        raise ValueError(f"the entry point is named {point.name}, its method {found.name}")
    return found


def imported(reference: str) -> Any:
    """Import the object of a reference `module:name`."""
    module, _, name = reference.partition(":")
    return reduce(getattr, name.split("."), import_module(module))


def _castpoi(name: str, label: str, line: str, *presets: str, **more: Any) -> Method:
    ranker, trainer = "castpoi.model.ranker:CastPoiRanker", "castpoi.training.castpoi:train_castpoi"
    return Method(
        name=name, label=label, line=line, ranker=ranker, trainer=trainer, presets=presets,
        can_continue=True, **more,
    )  # fmt: skip


def _counting(name: str, label: str, line: str, ranker: str) -> Method:
    return Method(name=name, label=label, line=line, ranker=f"castpoi.baselines.{ranker}")


def _sequence(name: str, label: str, line: str, **more: Any) -> Method:
    """A baseline that is trained to read the places of the last visits, in order."""
    ranker = "castpoi.baselines.sequence:SequenceRanker"
    trainer, presets = "castpoi.training.sequence:train_sequence", ("paper", "tuned")
    return Method(
        name=name, label=label, line=line, ranker=ranker, trainer=trainer, presets=presets, **more
    )


def _learned_counts(name: str, label: str, line: str, ranker: str) -> Method:
    """A counting method with settings."""
    return Method(
        name=name, label=label, line=line, ranker=f"castpoi.baselines.{ranker}",
        trainer=_COUNTED, presets=("tuned",),
    )  # fmt: skip


_TARGET_ATTENTION: Final = {
    "spatial_bias": "false", "temporal_bias": "false", "revisit_gate": "false",
}  # fmt: skip

# fmt: off
METHODS = Methods(
    _castpoi("castpoi-next", "CaST-POI next",
             "our model: visit patterns and distances instead of CaST-POI's attention",
             "next", version=2),
    _castpoi("castpoi", "CaST-POI", "the paper's CaST-POI: every candidate attends to the history",
             "fast", "paper"),
    _counting("revisit", "Revisit heuristic",
              "own visits to the place times its popularity (the paper's heuristic)",
              "simple:Revisit"),
    _counting("popularity", "Popularity", "number of check-ins at the place", "simple:Popularity"),
    _counting("nearest", "Nearest", "nearest to the last visit first", "simple:Nearest"),
    _counting("markov", "Markov",
              "own moves from the last place, then everybody's, then popularity", "markov:Markov"),
    _counting("recent", "Most recent", "most recently visited first", "simple:Recent"),
    Method(name="castpoi-trees", label="CaST-POI next + trees",
           line="castpoi-next and boosted trees, their scores summed (extra castpoi[boosted])",
           ranker="castpoi.baselines.boosted.with_network:NetworkAndTrees",
           trainer="castpoi.training.network_and_trees:train_both", presets=("next",),
           package="lightgbm"),
    Method(name="boosted", label="Boosted trees",
           line="LightGBM's LambdaMART on counted features (extra castpoi[boosted])",
           ranker="castpoi.baselines.boosted.ranker:BoostedRanker",
           trainer="castpoi.training.boosted:train_boosted", presets=("tuned",),
           package="lightgbm", demo_epochs=30),
    _learned_counts("ppm", "PPM", "Markov chains of order k, own and everybody's, with back-off",
                    "ppm:Ppm"),
    _learned_counts("tifu-knn", "TIFU-KNN", "decayed own visits, and those of similar people",
                    "tifu_knn:TifuKnn"),
    _learned_counts("ease", "EASE", "a linear model of places that the same people visit",
                    "ease:Ease"),
    _castpoi("target-attention", "Target attention",
             "CaST-POI's attention without distance, age and gate (after DIN)", "fast", "paper",
             settings=_TARGET_ATTENTION, demo_epochs=1 / 3),
    _sequence("esasrec", "eSASRec", "SASRec as in recent replications: gates, pre-norm"),
    _sequence("hstu", "HSTU", "gated attention without a softmax, biased by position and time"),
    _sequence("sasrec", "SASRec", "self-attention over the last visits"),
    _sequence("bert4rec", "BERT4Rec", "bidirectional self-attention, predicts masked visits",
              demo_epochs=2 / 3),
    _sequence("caser", "Caser", "convolutions over the last visits"),
    _sequence("narm", "NARM", "a recurrent network with attention"),
    _sequence("srgnn", "SR-GNN", "a graph network over the moves of the last visits",
              demo_epochs=2 / 3),
    _sequence("stamp", "STAMP", "attention led by the last visit and the mean of all"),
    _sequence("core", "CORE", "a weighted mean of the places visited"),
)
# fmt: on

METHODS.add_installed(entry_points(group=GROUP))
