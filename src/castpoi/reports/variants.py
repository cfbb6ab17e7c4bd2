"""Runs of our own method with other settings than its preset: variants, not more seeds of it."""

from collections.abc import Mapping
from typing import Any, Final

from castpoi.methods import METHODS
from castpoi.model import config as model
from castpoi.reports.outline import OUR_METHODS
from castpoi.training import config as training

_OF_NO_WEIGHT: Final = ("threads",)  # settings on which no number is meant to depend


def changes_of(method: str, trained: Mapping[str, Any]) -> dict[str, str]:
    """What the manifest of a run says was set otherwise than in the method's own preset.

    What the manifest does not tell is as in the preset: a setting that came later makes no variant
    of an older run. Of methods that are not ours nothing is known.
    """
    if method not in OUR_METHODS or "config" not in trained:
        return {}
    own = METHODS.named(method).default_preset
    assert own is not None
    told = _settings(own) | trained["config"].get("model", {})
    told |= trained["config"].get("training", {}).get("settings", {})
    for name in model.PRESETS:  # another preset as it is has a short name
        if name != own and not _unlike(told, name):
            return {"preset": name}
    return {name: _shown(value) for name, value in _unlike(told, own).items()}


def _unlike(told: Mapping[str, Any], preset: str) -> dict[str, Any]:
    expected = _settings(preset)
    compared = told.keys() & expected.keys() - set(_OF_NO_WEIGHT)
    return {name: told[name] for name in told if name in compared and told[name] != expected[name]}


def _settings(preset: str) -> dict[str, Any]:
    return model.PRESETS[preset].to_dict() | training.PRESETS[preset].to_dict()


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
