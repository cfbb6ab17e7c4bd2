"""The configs that settings lead to, without training anything: for those who must ask before.

Not imported by any training; it says what `castpoi_trainer` and `sequence_trainer` would make.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from castpoi.baselines.sequence_models import MODELS
from castpoi.core.errors import BadInput
from castpoi.methods.registry import METHODS, Method
from castpoi.training.plan import Plan
from castpoi.training.sequence_trainer import configs_of_sequence
from castpoi.training.settings import configs_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def configs_for(
    method: Method, preset: str, settings: Mapping[str, str]
) -> tuple["DataclassInstance", Plan]:
    """The model and the training of a learned method.

    Raises:
        BadInput: a setting is unknown, cannot be read, or makes no sense with the others; or the
            method is of another package, whose settings nobody here knows.
    """
    every = {**settings, **method.settings}
    if method.name in MODELS:
        return configs_of_sequence(method.name, preset, every)
    if method.trainer != METHODS.named("castpoi").trainer:
        raise BadInput(
            f"{method.name} is of another package, and only that knows its settings; castpoi "
            "cannot try them, but 'castpoi reproduce' takes a suite with a row for each value"
        )
    return configs_of(preset, every)
