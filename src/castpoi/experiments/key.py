"""The key of an experiment: all that its result depends on; the same key, the same result."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from castpoi.experiments.code_version import code_version
from castpoi.experiments.experiment import Experiment
from castpoi.methods.registry import METHODS

CODE: Final = "code"


@dataclass(frozen=True, kw_only=True)
class Key:
    """City, method, preset, settings, seed and code version."""

    fingerprint: str
    method: str
    preset: str | None
    settings: Mapping[str, str]
    seed: int
    code: str
    """See `code_version`."""

    def to_dict(self) -> dict[str, Any]:
        """The key in JSON's words."""
        return asdict(self)

    def changes_since(self, former: Mapping[str, Any]) -> list[str]:
        """The parts in which a former key, in JSON's words, differs from this one."""
        now = self.to_dict()
        return [field.name for field in fields(self) if former.get(field.name) != now[field.name]]


def key_of(experiment: Experiment) -> Key:
    """The key of an experiment with the code as it is on disk at this moment."""
    return keys_of([experiment])[0]


def keys_of(experiments: Sequence[Experiment]) -> list[Key]:
    """The keys of experiments; the code of each method is read once for all of them."""
    names = {experiment.row.method for experiment in experiments}
    codes = {name: code_version(METHODS.named(name)) for name in names}
    return [_key(experiment, codes[experiment.row.method]) for experiment in experiments]


def _key(experiment: Experiment, code: str) -> Key:
    method = METHODS.named(experiment.row.method)
    return Key(
        fingerprint=experiment.city.fingerprint,
        method=method.name,
        preset=experiment.row.preset,
        settings={**experiment.row.settings, **method.settings},
        seed=experiment.seed,
        code=code,
    )
