"""Write the scores of the official models with small random weights, as files for our tests.

Shapes: B histories, T slots of a window (right-padded), P places; row 0 is padding.
"""

import json
from pathlib import Path
from typing import Any, Final

import torch
from recbole.data.interaction import Interaction
from recbole_models import MODELS, Vocabulary, batch_of, official
from safetensors.torch import save_file
from torch import Tensor, nn

PLACES, PEOPLE, WINDOW = 12, 3, 6
_TRANSFORMER: Final = {"n_layers": 2, "n_heads": 2, "inner_size": 16}
SMALL: Final[dict[str, dict[str, Any]]] = {
    "SASRec": {"hidden_size": 8, **_TRANSFORMER},
    "BERT4Rec": {"hidden_size": 8, **_TRANSFORMER},
    "Caser": {"embedding_size": 8, "nv": 2, "nh": 3},
    "NARM": {"embedding_size": 8, "hidden_size": 12},
    "SRGNN": {"embedding_size": 8},
    "STAMP": {"embedding_size": 8},
    "CORE": {"embedding_size": 8, **_TRANSFORMER},
}
HISTORIES: Final = ["a", "b", "ab", "aa", "aba", "abab", "abcde", "abcdef", "abcabc", "aaaaaa"]
"""One letter per place, with new places for each history: one visit, short, full, repeats."""


def write_fixtures(folder: Path, seed: int) -> None:
    """Write a safetensors file per model: weights by RecBole's names, histories and scores."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(MODELS):
        random_numbers = torch.Generator().manual_seed(seed + number)
        model, _ = official(name, Vocabulary(PLACES, PEOPLE, WINDOW), SMALL[name])
        _randomise(model.eval(), random_numbers)
        rows, lengths = _histories(random_numbers)
        users = torch.arange(len(rows)) % PEOPLE + 1
        content = {"rows": rows, "lengths": lengths, "scores": _scores(model, rows, lengths, users)}
        if name == "Caser":
            content["users"] = users
        if name == "BERT4Rec":  # its loss is over masked visits
            content["scores_of_all_visits"] = _scores_of_all_visits(model, rows, lengths, users)
            content["is_masked"] = _masks(lengths)
            content["loss"] = _cloze_loss(model, rows, content["is_masked"])
        else:
            content["targets"] = 1 + torch.arange(len(rows)) % PLACES
            content["loss"] = _loss(model, rows, lengths, users, content["targets"])
        about = {"model": name, "recbole": "1.2.1", "seed": seed, "window": WINDOW, **SMALL[name]}
        save_file(
            {**dict(model.state_dict()), **content},
            folder / f"{name.lower()}.safetensors",
            metadata={"about": json.dumps(about)},
        )


def _randomise(model: nn.Module, random_numbers: torch.Generator) -> None:
    """Draw weights so large that no part of a model can be missing unnoticed; row 0 included."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            centre = 1.0 if "layernorm.weight" in name.lower() or "ln.weight" in name else 0.0
            weight.copy_(centre + 0.4 * torch.randn(weight.shape, generator=random_numbers))


def _histories(random_numbers: torch.Generator) -> tuple[Tensor, Tensor]:
    rows = torch.zeros(len(HISTORIES), WINDOW, dtype=torch.long)
    for history, letters in enumerate(HISTORIES):
        drawn = 1 + torch.randperm(PLACES, generator=random_numbers)
        rows[history, : len(letters)] = drawn[["abcdef".index(letter) for letter in letters]]
    return rows, torch.tensor([len(letters) for letters in HISTORIES])


@torch.no_grad()
def _scores(model: Any, rows: Tensor, lengths: Tensor, users: Tensor) -> Tensor:
    """Scores of the padding class and of every place. [B, P + 1]"""
    scores: Tensor = model.full_sort_predict(batch_of(rows, lengths, users, users))
    return scores.contiguous()


@torch.no_grad()
def _loss(model: Any, rows: Tensor, lengths: Tensor, users: Tensor, targets: Tensor) -> Tensor:
    """The training loss of these histories, without dropout."""
    loss: Tensor = model.calculate_loss(batch_of(rows, lengths, users, targets))
    return loss.reshape(1)


def _masks(lengths: Tensor) -> Tensor:
    """Mask the last visit, and in longer histories one before it; never the first. [B] -> [B, T]"""
    slots, last = torch.arange(WINDOW), (lengths - 1).unsqueeze(1)
    return (slots > 0) & ((slots == last) | ((slots == last - 2) & (last > 2)))


@torch.no_grad()
def _cloze_loss(model: Any, rows: Tensor, is_masked: Tensor) -> Tensor:
    """The loss of BERT4Rec for these masks, without dropout; RecBole draws its masks."""
    most = int(is_masked.sum(dim=1).max())
    index = torch.zeros(len(rows), most, dtype=torch.long)  # 0: no mask
    places = torch.zeros_like(index)
    for history, own in enumerate(is_masked):
        slots = own.nonzero().flatten()
        index[history, : len(slots)] = slots
        places[history, : len(slots)] = rows[history, slots]
    masked = rows.masked_fill(is_masked, model.mask_token)
    fields = (model.MASK_ITEM_SEQ, model.POS_ITEMS, model.NEG_ITEMS, model.MASK_INDEX)
    given = dict(zip(fields, (masked, places, places, index), strict=True))
    loss: Tensor = model.calculate_loss(Interaction(given))
    return loss.reshape(1)


def _scores_of_all_visits(model: Any, rows: Tensor, lengths: Tensor, users: Tensor) -> Tensor:
    """Scores of BERT4Rec with as many last visits as fit next to the mask.

    The official model drops the first slot of each window, also of a short one. So each window
    begins with an extra visit for it to drop.
    """
    kept = lengths.clamp(max=WINDOW - 1)  # [B]
    shifted = torch.ones_like(rows)
    for history, (length, keep) in enumerate(zip(lengths.tolist(), kept.tolist(), strict=True)):
        shifted[history, 1:] = 0
        shifted[history, 1 : 1 + keep] = rows[history, length - keep : length]
    return _scores(model, shifted, kept + 1, users)
