"""The oracle of the seven baselines: RecBole 1.2.1, run from an environment of its own.

RecBole needs older libraries than castpoi, so it never stands beside it. Make its environment once:

    python3.11 -m venv /tmp/oracle
    /tmp/oracle/bin/pip install torch==2.13.0 numpy==1.26.4 'pandas<3' 'setuptools<81' \\
        recbole==1.2.1 safetensors polars
    /tmp/oracle/bin/python tools/recbole_oracle.py fixtures tests/baselines/oracle
    /tmp/oracle/bin/python tools/recbole_oracle.py train SASRec CITY --out RESULT

`fixtures` writes what the official models score with small random weights; the tests of castpoi
compare with that and need no RecBole. `train` trains an official model on the train part of a
prepared city and ranks its test targets with castpoi's own evaluation, so that
`castpoi compare` can set the RESULT beside ours.

Shapes: B histories or prefixes, T slots of a window (right-padded), P places; row 0 is padding.
"""

import argparse
import json
import math
import os
import random
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # RecBole 1.2.1 is older than the default
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # castpoi, not installed here

import numpy as np
import torch
from numpy.typing import NDArray
from recbole.config import Config  # recbole.quick_start would import ray
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from recbole.utils import get_model
from safetensors.torch import save_file
from torch import Tensor, nn

USERS, ROWS, LENGTHS, TARGETS = "user_id", "item_id_list", "item_length", "item_id"
"""RecBole's names of what a model reads, and of the place to foretell."""

MODELS: Final = ("SASRec", "BERT4Rec", "Caser", "NARM", "SRGNN", "STAMP", "CORE")


@dataclass(frozen=True)
class Vocabulary:
    """All that a RecBole model asks of a dataset: how many rows its tables have."""

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
    """A RecBole model with its default settings but for the given sizes."""
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
    """Histories in RecBole's words."""
    return Interaction({USERS: users, ROWS: rows, LENGTHS: lengths, TARGETS: targets})


# --- fixtures: small weights, inputs and scores

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
"""One letter a place, drawn anew for every history: of one visit, short, full, with repeats."""


def write_fixtures(folder: Path, seed: int) -> None:
    """One safetensors file a model: its weights by RecBole's names, histories and scores."""
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
        if name == "BERT4Rec":
            content["scores_of_all_visits"] = _scores_of_all_visits(model, rows, lengths, users)
        about = {"model": name, "recbole": "1.2.1", "seed": seed, "window": WINDOW, **SMALL[name]}
        save_file(
            {**dict(model.state_dict()), **content},
            folder / f"{name.lower()}.safetensors",
            metadata={"about": json.dumps(about)},
        )


def _randomise(model: nn.Module, random_numbers: torch.Generator) -> None:
    """Weights large enough that no part can be left out unseen; row 0 is one of them."""
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


def _scores_of_all_visits(model: Any, rows: Tensor, lengths: Tensor, users: Tensor) -> Tensor:
    """What BERT4Rec scores when it keeps as many last visits as fit beside the mask.

    The official model drops the first slot of every window, also of a short one. So it gets a
    visit to drop: any place in front of the visits that are to be kept.
    """
    kept = lengths.clamp(max=WINDOW - 1)  # [B]
    shifted = torch.ones_like(rows)
    for history, (length, keep) in enumerate(zip(lengths.tolist(), kept.tolist(), strict=True)):
        shifted[history, 1:] = 0
        shifted[history, 1 : 1 + keep] = rows[history, length - keep : length]
    return _scores(model, shifted, kept + 1, users)


# --- train: the official model on one of our cities, judged by our evaluation

HISTORY: Final = 50
BATCH, RATE, PATIENCE = 2048, 1e-3, 10
"""RecBole's defaults: prefixes a step, Adam's rate, epochs without a better validation value."""


class OracleRanker:
    """An official model behind castpoi's protocol of every ranking method."""

    def __init__(self, model: Any, vocabulary: Vocabulary, user_rows: dict[Any, int]) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.user_rows = user_rows

    @property
    def places(self) -> int:
        """Number of places, P."""
        return self.vocabulary.places

    def encode(self, histories: Any) -> Interaction:
        """Last visits of each history; an empty one is a visit to padding."""
        window = self.vocabulary.window
        lengths = np.minimum(histories.lengths, window)
        rows = windows_of(histories.place, histories.bounds[1:], lengths, window)
        first = histories.bounds[:-1][histories.lengths > 0]
        users = np.zeros(len(histories), dtype=np.int64)
        begins = zip(histories.at_us[first].tolist(), histories.place[first].tolist(), strict=True)
        users[histories.lengths > 0] = [self.user_rows[begin] for begin in begins]
        user = torch.from_numpy(users)
        return batch_of(torch.from_numpy(rows), torch.from_numpy(lengths).clamp(min=1), user, user)

    @torch.no_grad()
    def score(
        self, encoded: Interaction, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Scores of all places; the padding class is left out. [B, P]"""
        if candidates is not None:
            raise NotImplementedError("the oracle scores all places")
        scores: NDArray[np.float32] = self.model.eval().full_sort_predict(encoded).numpy()
        return scores[:, 1:]


def windows_of(
    place: NDArray[np.int64], end: NDArray[np.int64], lengths: NDArray[np.int64], window: int
) -> NDArray[np.int64]:
    """Rows of the `lengths` visits before each `end`, right-padded. [N], [B], [B] -> [B, T]"""
    slots = np.arange(window)
    is_real = slots < lengths[:, None]  # [B, T]
    visits = np.where(is_real, (end - lengths)[:, None] + slots, 0)
    return np.where(is_real, place[visits] + 1, 0)


def prefixes_of(trajectories: Any, most: int | None) -> Interaction:
    """Every train check-in with a history, as RecBole makes its rows: the last 50 visits before."""
    before = np.arange(len(trajectories)) - trajectories.starts
    rows = np.flatnonzero((trajectories.part == 0) & (before > 0))[:most]
    lengths = np.minimum(before[rows], HISTORY)
    return batch_of(
        torch.from_numpy(windows_of(trajectories.place, rows, lengths, HISTORY)),
        torch.from_numpy(lengths),
        torch.from_numpy(trajectories.user[rows] + 1),
        torch.from_numpy(trajectories.place[rows] + 1),
    )


def first_visits(trajectories: Any) -> dict[Any, int]:
    """Row of the user whose trajectory begins with this visit: a history names no user."""
    starts = np.unique(trajectories.starts)
    begins = zip(
        trajectories.at_us[starts].tolist(), trajectories.place[starts].tolist(), strict=True
    )
    found = dict(zip(begins, (trajectories.user[starts] + 1).tolist(), strict=True))
    if len(found) < len(starts):
        raise SystemExit("two users have the same first check-in: Caser cannot tell them apart")
    return found


class Training:
    """RecBole's training loop in its bare form: Adam, shuffled prefixes, its own transform."""

    def __init__(self, name: str, city: Any, *, seed: int, most: int | None) -> None:
        random.seed(seed)  # RecBole's masks of BERT4Rec draw from it
        torch.manual_seed(seed)
        self.vocabulary = Vocabulary(city.places.height, city.users.height, HISTORY)
        self.model, config = official(name, self.vocabulary, {})
        self.transform = construct_transform(config)
        self.prefixes = prefixes_of(city.trajectories, most)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE)

    def learn(self, share: float = 1.0) -> list[float]:
        """One epoch, or a part of one; the loss of every step."""
        self.model.train()
        steps = torch.randperm(len(self.prefixes)).split(BATCH)
        return [self._step(chosen) for chosen in steps[: max(1, round(share * len(steps)))]]

    def _step(self, chosen: Tensor) -> float:
        batch = self.transform(self.vocabulary, self.prefixes[chosen])
        self.optimizer.zero_grad()
        loss = self.model.calculate_loss(batch)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def time_epoch(name: str, city: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds an epoch, measured on a whole one or on a part of it, and peak memory."""
    training = Training(name, city, seed=options.seed, most=options.prefixes)
    training.learn(share=0.0)  # one step, to warm up
    began = time.perf_counter()
    steps = len(training.learn(share=options.time_epochs))
    seconds = time.perf_counter() - began
    return {
        "model": name,
        "targets": len(training.prefixes),
        "seconds_an_epoch": seconds * math.ceil(len(training.prefixes) / BATCH) / steps,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def train(name: str, city: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Train until ten epochs were no better on validation; rank the test targets with the best."""
    from castpoi.evaluation.evaluate import evaluate
    from castpoi.evaluation.ranking import rank_targets

    training = Training(name, city, seed=options.seed, most=options.prefixes)
    ranker = OracleRanker(training.model, training.vocabulary, first_visits(city.trajectories))
    best, best_epoch, weights = -1.0, 0, {}
    for epoch in range(1, options.epochs + 1):
        loss = float(np.mean(training.learn()))
        validation = city.targets("validation")
        ranks = rank_targets(ranker, city.trajectories, validation, method=name)
        value = float(np.where(ranks <= 10, 1 / ranks, 0.0).mean())  # MRR@10, RecBole's choice
        _say({"epoch": epoch, "loss": round(loss, 4), "validation MRR@10": round(value, 5)})
        if value > best:
            best, best_epoch = value, epoch
            weights = {key: each.clone() for key, each in training.model.state_dict().items()}
        if epoch - best_epoch >= PATIENCE:
            break
    training.model.load_state_dict(weights)
    origin = {"oracle": "recbole 1.2.1", "best_epoch": best_epoch, "validation MRR@10": best}
    result = evaluate(
        ranker, city, method=f"recbole-{name.lower()}", seed=options.seed, origin=origin
    )
    result.save(options.out)
    return {**origin, **result.summary()}


def _say(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line and do one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    fixtures = verbs.add_parser("fixtures", help="write weights, histories and scores for tests")
    fixtures.add_argument("folder", type=Path, metavar="OUT")
    fixtures.add_argument("--seed", type=int, default=7)
    training = verbs.add_parser("train", help="train an official model on a prepared city")
    training.add_argument("model", choices=MODELS)
    training.add_argument("city", type=Path, metavar="CITY")
    training.add_argument("--out", type=Path, metavar="RESULT", help="folder of the result")
    training.add_argument("--seed", type=int, default=42)
    training.add_argument("--epochs", type=int, default=300)
    training.add_argument("--prefixes", type=int, help="learn from the first so many, for a try")
    training.add_argument(
        "--time-epochs", type=float, metavar="SHARE", help="only time this part of an epoch; 1: all"
    )
    options = parser.parse_args()
    sys.argv = sys.argv[:1]  # RecBole's Config reads it
    if options.verb == "fixtures":
        write_fixtures(options.folder, options.seed)
        return
    from castpoi.checkins.city import City

    city = City.load(options.city)
    if options.time_epochs is not None:
        _say(time_epoch(options.model, city, options))
    elif options.out is None:
        parser.error("train needs --out RESULT, or --time-epochs SHARE")
    else:
        _say(train(options.model, city, options))


if __name__ == "__main__":
    main()
