"""Train an official model on one of our cities, and evaluate it with our protocol.

Shapes: B prefixes, T slots of a window (right-padded), N check-ins, P places; row 0 is padding.
"""

import argparse
import json
import math
import random
import resource
import shlex
import sys
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # not installed here

import numpy as np
import torch
from numpy.typing import NDArray
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from recbole_models import LENGTHS, ROWS, Vocabulary, batch_of, official
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from castpoi.checkins.city import City
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.ranking import rank_targets

HISTORY: Final = 50
BATCH, RATE, PATIENCE = 2048, 1e-3, 10
"""RecBole's defaults: prefixes per step, learning rate of Adam, epochs without improvement."""

MICRO_BATCH: Final = 64
"""Prefixes of a micro-batch with --hurry: it fits a cache."""

UNDIVIDED: Final = "BERT4Rec"
"""Its loss is a mean over masks, not over prefixes, so micro-batches would change it."""

IGNORES_PADDING: Final = "SASRec"
"""Its windows may be cut to the longest history of a micro-batch."""


class OracleRanker:
    """An official model that implements castpoi's protocol of a ranking method."""

    def __init__(self, model: Any, vocabulary: Vocabulary, user_rows: dict[Any, int]) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.user_rows = user_rows

    @property
    def places(self) -> int:
        """Number of places, P."""
        return self.vocabulary.places

    def encode(self, histories: Any) -> Interaction:
        """Last visits of each history; an empty history is one visit to padding."""
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
        """Scores of all places, without the padding class. [B, P]"""
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
    """Each train check-in with its last 50 visits before, as RecBole builds its rows."""
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
    """First visit -> row of its user, because a history has no user."""
    starts = np.unique(trajectories.starts)
    begins = zip(
        trajectories.at_us[starts].tolist(), trajectories.place[starts].tolist(), strict=True
    )
    found = dict(zip(begins, (trajectories.user[starts] + 1).tolist(), strict=True))
    if len(found) < len(starts):
        raise SystemExit("two users have the same first check-in: Caser needs to distinguish them")
    return found


class Training:
    """RecBole's training loop without its extras: Adam, shuffled prefixes, RecBole's transform."""

    def __init__(self, name: str, city: City, *, seed: int, most: int | None) -> None:
        self.name = name
        self.seed = seed
        self.micro_batch = BATCH
        self._begin(epoch=0)
        self.vocabulary = Vocabulary(city.places.height, city.users.height, HISTORY)
        self.model, config = official(name, self.vocabulary, {})
        self.transform = construct_transform(config)
        self.prefixes = prefixes_of(city.trajectories, most)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE)

    @property
    def identity(self) -> dict[str, Any]:
        """The values that are equal in two equal trainings."""
        return {
            "model": self.name,
            "seed": self.seed,
            "prefixes": len(self.prefixes),
            "hurry": self.is_hurried,
        }

    @property
    def is_hurried(self) -> bool:
        """Whether steps are taken in micro-batches."""
        return self.micro_batch < BATCH

    def hurry(self) -> None:
        """Take the same steps in a third of the time, on one core.

        Gradients of micro-batches that fit a cache add up to that of the step. Importing RecBole
        (sine.py) makes torch search each gradient for NaN; this is turned off.
        """
        torch.autograd.set_detect_anomaly(False)
        torch.set_flush_denormal(True)
        if self.name != UNDIVIDED:
            self.micro_batch = MICRO_BATCH

    def learn(self, epoch: int, share: float = 1.0) -> list[float]:
        """Train for an epoch or a share of one; returns the loss of each step."""
        self._begin(epoch)
        self.model.train()
        steps = torch.randperm(len(self.prefixes)).split(BATCH)
        return [self._step(chosen) for chosen in steps[: max(1, round(share * len(steps)))]]

    def _begin(self, epoch: int) -> None:
        """Seed the random numbers by epoch, so that a killed training can resume."""
        random.seed(self.seed + 1000 * epoch)  # RecBole's masks of BERT4Rec draw from it
        torch.manual_seed(self.seed + 1000 * epoch)

    def _step(self, chosen: Tensor) -> float:
        self.optimizer.zero_grad()
        if self.is_hurried:  # histories of one length in one micro-batch
            chosen = chosen[self.prefixes[LENGTHS][chosen].argsort()]
        summed = 0.0
        for some in chosen.split(self.micro_batch):
            loss = self.model.calculate_loss(self._batch(some)) * (len(some) / len(chosen))
            loss.backward()
            summed += float(loss.detach())
        self.optimizer.step()
        return summed

    def _batch(self, chosen: Tensor) -> Interaction:
        batch = self.transform(self.vocabulary, self.prefixes[chosen])
        if self.name == IGNORES_PADDING and self.is_hurried:
            batch[ROWS] = batch[ROWS][:, : int(batch[LENGTHS].max())]
        return batch


def time_epoch(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds per epoch, measured on a whole one or a share of it, and peak memory."""
    city = City.load(options.city)
    training = Training(options.model, city, seed=options.seed, most=options.prefixes)
    if options.hurry:
        training.hurry()
    training.learn(0, share=0.0)  # one step, to warm up
    began = time.perf_counter()
    steps = len(training.learn(1, share=options.time_epochs))
    seconds = time.perf_counter() - began
    return {
        "model": options.model,
        "targets": len(training.prefixes),
        "seconds_per_epoch": seconds * math.ceil(len(training.prefixes) / BATCH) / steps,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


class Progress:
    """The checkpoint of a training, in a file next to the result, to resume after a kill."""

    def __init__(self, file: Path, training: Training) -> None:
        self.file, self.training = file, training
        self.epoch, self.best_epoch, self.best = 0, 0, -1.0
        self.weights: dict[str, Tensor] = {}

    def add_epoch(self, value: float) -> None:
        """Count an epoch with this validation value, and write the checkpoint."""
        self.epoch += 1
        if value > self.best:
            self.best, self.best_epoch = value, self.epoch
            self.weights = {k: each.clone() for k, each in self.training.model.state_dict().items()}
        state = {f"best.{key}": each for key, each in self.weights.items()}
        state |= {f"now.{key}": each for key, each in self.training.model.state_dict().items()}
        for row, moments in self.training.optimizer.state_dict()["state"].items():
            state |= {f"adam.{row}.{key}": each for key, each in moments.items()}
        about = {"epoch": self.epoch, "best_epoch": self.best_epoch, "best": self.best}
        about |= self.training.identity
        half = self.file.with_suffix(".half")
        save_file(state, half, metadata={"about": json.dumps(about)})
        half.replace(self.file)

    def resume(self) -> None:
        """Load the checkpoint, if there is one."""
        if not self.file.exists():
            return
        with safe_open(self.file, framework="pt") as opened:
            about = json.loads(opened.metadata()["about"])
        others = {key: about.get(key) for key in self.training.identity}
        if others != self.training.identity:
            raise SystemExit(
                f"{self.file} is of another training ({others}, not {self.training.identity}); "
                "remove it, or choose another --out"
            )
        self.epoch, self.best_epoch = about["epoch"], about["best_epoch"]
        self.best = about["best"]
        moments: dict[int, dict[str, Tensor]] = {}
        now = {}
        for name, each in load_file(self.file).items():
            group, key = name.split(".", 1)
            if group == "best":
                self.weights[key] = each
            elif group == "now":
                now[key] = each
            else:
                row, key = key.split(".", 1)
                moments.setdefault(int(row), {})[key] = each
        self.training.model.load_state_dict(now)
        adam = self.training.optimizer.state_dict()
        self.training.optimizer.load_state_dict({**adam, "state": moments})


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Train until ten epochs bring no improvement; rank the test targets with the best."""
    name, city = options.model, City.load(options.city)
    training = Training(name, city, seed=options.seed, most=options.prefixes)
    if options.hurry:
        training.hurry()
    progress = Progress(options.out.with_suffix(".progress"), training)
    progress.resume()
    ranker = OracleRanker(training.model, training.vocabulary, first_visits(city.trajectories))
    while progress.epoch < min(options.epochs, progress.best_epoch + PATIENCE):
        loss = float(np.mean(training.learn(progress.epoch + 1)))
        progress.add_epoch(validation_value(ranker, city, name))
        print_json(
            {"epoch": progress.epoch, "loss": round(loss, 4), "best": round(progress.best, 5)}
        )
    training.model.load_state_dict(progress.weights)
    origin = {
        "oracle": "recbole 1.2.1",
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "validation MRR@10": progress.best,
        "hurry": training.is_hurried,
        "city": str(options.city.resolve()),
        "command": shlex.join(["python", "tools/recbole_oracle.py", *options.words]),
    }
    result = evaluate(
        ranker, city, method=f"recbole-{name.lower()}", seed=options.seed, origin=origin
    )
    result.save(options.out)
    progress.file.unlink()
    return {**origin, **result.summary()}


def validation_value(ranker: OracleRanker, city: City, name: str) -> float:
    """MRR@10 on the validation split, by which RecBole chooses an epoch."""
    ranks = rank_targets(ranker, city.trajectories, city.targets("validation"), method=name)
    return float(np.where(ranks <= 10, 1 / ranks, 0.0).mean())


def print_json(content: dict[str, Any]) -> None:
    """Print one line of JSON and flush it."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()
