"""The official RecBole 1.2.1 models, created without RecBole's data sets.

Shapes: B histories, T slots of a window (right-padded), P places; row 0 is padding.
"""

import os
from dataclasses import dataclass
from typing import Any, Final

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # RecBole 1.2.1 is older than the default

from recbole.config import Config  # recbole.quick_start would import ray
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from recbole.utils import get_model
from torch import Tensor

USERS, ROWS, LENGTHS, TARGETS = "user_id", "item_id_list", "item_length", "item_id"
"""RecBole's names of the inputs of a model, and of the target place."""

MODELS: Final = ("SASRec", "BERT4Rec", "Caser", "NARM", "SRGNN", "STAMP", "CORE")


@dataclass(frozen=True)
class Vocabulary:
    """The only attributes of a dataset that a RecBole model reads: the sizes of its tables."""

    places: int
    users: int
    window: int

    @property
    def user_num(self) -> int:
        """Users and the padding user."""
        return self.users + 1

    @property
    def field2seqlen(self) -> dict[str, int]:
        """Slots of a window."""
        return {ROWS: self.window}

    def num(self, field: str) -> int:
        """Rows of a table, padding included."""
        return self.user_num if field == USERS else self.places + 1


def official(name: str, vocabulary: Vocabulary, sizes: dict[str, Any]) -> tuple[Any, Config]:
    """A RecBole model with default settings, except for the given sizes."""
    settings = {
        "use_gpu": False,
        "train_neg_sample_args": None,
        "MAX_ITEM_LIST_LENGTH": vocabulary.window,
        **sizes,
    }
    config = Config(model=name, dataset="none", config_dict=settings)
    construct_transform(config)  # gives BERT4Rec the names of its masked fields
    return get_model(name)(config, vocabulary), config


def batch_of(rows: Tensor, lengths: Tensor, users: Tensor, targets: Tensor) -> Interaction:
    """Histories under RecBole's field names."""
    return Interaction({USERS: users, ROWS: rows, LENGTHS: lengths, TARGETS: targets})
