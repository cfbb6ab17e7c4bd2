"""Runs with other settings than their method's preset: variants, not more seeds of it."""

from collections.abc import Mapping
from typing import Any, Final

from castpoi.methods.registry import METHODS
from castpoi.model import config as model
from castpoi.training import config as training
from castpoi.training.config import SequenceTraining

_OF_NO_WEIGHT: Final = ("threads",)  # settings on which no number is meant to depend
_OF_BASELINES: Final = ("paper", "tuned")
_LEFT_OUT: Final = {"null_attention": False}
"""What runs were that do not tell a setting, where their preset is otherwise by now."""


def changes_of(method: str, trained: Mapping[str, Any]) -> dict[str, str]:
    """What the manifest of a run says was set otherwise than in the method's own preset.

    What the manifest does not tell is as a run without it is read: a setting that came later makes
    no variant of an older run, unless the preset has since come to change it. Of a method that
    castpoi does not know nothing is known.
    """
    presets = _presets(method)
    if not presets or "config" not in trained:
        return {}
    own = METHODS.named(method).default_preset
    assert own is not None
    told = presets[own] | _LEFT_OUT | trained["config"].get("model", {})
    told |= trained["config"].get("training", {}).get("settings", {})
    if told.get("candidate_conditioning") is False:  # no reader, no attention
        told["null_attention"] = presets[own]["null_attention"]
    for name, settings in presets.items():  # another preset as it is has a short name
        if name != own and not _unlike(told, settings):
            return {"preset": name}
    return {name: _shown(value) for name, value in _unlike(told, presets[own]).items()}


def preset_of(method: str, trained: Mapping[str, Any]) -> str | None:
    """The preset that the settings of a run are those of, or that its changes start from.

    None where its manifest does not tell its settings, or where presets are not known.
    """
    if "config" not in trained or not _presets(method):
        return None
    return changes_of(method, trained).get("preset", METHODS.named(method).default_preset)


def _unlike(told: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    compared = told.keys() & expected.keys() - set(_OF_NO_WEIGHT)
    return {name: told[name] for name in told if name in compared and told[name] != expected[name]}


def _presets(method: str) -> dict[str, dict[str, Any]]:
    """The settings of every preset that a method may start from; of a baseline, how it is trained.

    The shape of a baseline is not asked for: its presets differ in their training as well.
    """
    if method not in METHODS.names:
        return {}
    known = METHODS.named(method)
    if known.presets == _OF_BASELINES:
        return {
            name: SequenceTraining.preset(name, method=method).to_dict() for name in _OF_BASELINES
        }
    if not set(known.presets) & set(model.PRESETS):
        return {}
    every = {
        name: preset.to_dict() | training.PRESETS[name].to_dict()
        for name, preset in model.PRESETS.items()
    }
    # what a method is defined by is none of its changes
    return {
        name: {each: value for each, value in preset.items() if each not in known.settings}
        for name, preset in every.items()
    }


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
