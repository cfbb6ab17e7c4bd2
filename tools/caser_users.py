"""What a learned vector of every user is worth to Caser: RecBole's has one, ours does without.

    python tools/caser_users.py CITY --seed 42 --out RESULT

A history names no user, and a ranker must serve people it has never met, so castpoi's Caser learns
no such vectors. Here it does, with everything else as in preset `paper`; a user is known again by
their first visit. RESULT is a result like any other, and a killed training goes on where it was.

Shapes: B windows, T slots, D width.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor, nn

from castpoi.baselines.caser import Caser, CaserConfig
from castpoi.baselines.sequence_ranker import SequenceRanker
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.core.files import write_json
from castpoi.core.progress import Silence
from castpoi.evaluation.evaluate import evaluate
from castpoi.training.course import Course, follow
from castpoi.training.sequence_config import SequenceTrainingConfig
from castpoi.training.sequence_objective import Numbers, WindowObjective
from castpoi.training.train_part import train_histories
from castpoi.training.trainer import TrainingOptions

FirstVisit = tuple[int, int]
ROW = {
    "name": "caser-user-vector",
    "label": "Caser, a vector of every user",
    "method": "caser",
    "role": "ablation",
    "preset": "paper",
    "settings": {"user_vector": "true"},
}


class CaserOfUsers(Caser):
    """Caser as RecBole has it: the last layer also sees who it is."""

    def __init__(self, *, config: CaserConfig, places: int, users: int) -> None:
        super().__init__(config=config, places=places)
        self.user = nn.Embedding(users, config.width)
        nn.init.normal_(self.user.weight, 0.0, 1 / config.width)  # as RecBole's
        self.who = torch.zeros(0, dtype=torch.int64)
        """The users of the histories that are read next. [B]"""

    def state(self, rows: Tensor, lengths: Tensor, user: Tensor | None = None) -> Tensor:
        """The state after the last visit of the users in `who`. [B, T], [B] -> [B, D]"""
        return super().state(rows, lengths, self.user(self.who) if user is None else user)

    def _conclusion(self, found: Tensor, user: Tensor | None = None) -> Tensor:
        """The state for what the filters found, [..., D]; with [T, B, ...] each is of one user."""
        if user is None:
            user = self.user(self.who).expand(*found.shape[:-1], -1)  # [T, B, D]
        return super()._conclusion(found, user)

    def penalty(self) -> Tensor | None:
        """The norms of all weight matrices, that of the users among them."""
        others = super().penalty()
        return None if others is None else others + self.penalty_weight * self.user.weight.norm()


class ObjectiveOfUsers(WindowObjective):
    """Every visit of a window foretells the one after it; the model knows whose window it is."""

    def __init__(
        self, city: City, *, window: int, config: SequenceTrainingConfig, seed: int
    ) -> None:
        super().__init__(city, window=window, config=config, seed=seed)
        self.bounds = train_histories(city).bounds

    def loss(self, model: nn.Module, batch: Numbers) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, CaserOfUsers)
        learn = self.windows.chosen(batch).learn
        model.who = torch.from_numpy(np.searchsorted(self.bounds, learn, side="right") - 1)
        return super().loss(model, batch)


class RankerOfUsers(SequenceRanker):
    """Ranks for users that it knows again by their first visit."""

    def __init__(self, model: CaserOfUsers, known: dict[FirstVisit, int], **more: Any) -> None:
        super().__init__(model, method="caser", **more)
        self.known = known

    def encode(self, histories: Histories) -> Tensor:
        """The state after each history. [B, D]"""
        assert isinstance(self.model, CaserOfUsers)
        self.model.who = torch.from_numpy(
            np.array([self.known[each] for each in first_visits(histories)], dtype=np.int64)
        )
        return super().encode(histories)


def first_visits(histories: Histories) -> list[FirstVisit]:
    """When and where each history begins; none is empty. [B]"""
    first: NDArray[np.int64] = histories.bounds[:-1]
    return list(zip(histories.at_us[first].tolist(), histories.place[first].tolist(), strict=True))


def train(city: City, *, seed: int, workshop: Path, console: Console) -> RankerOfUsers:
    """The best epoch of a Caser with vectors of users."""
    shape = replace(CaserConfig.preset("paper"), user_vector=True)
    plan = SequenceTrainingConfig.preset("paper")
    begins = first_visits(train_histories(city))
    known = {begin: number for number, begin in enumerate(begins)}
    if len(known) < len(begins):
        raise SystemExit("two users have the same first check-in; they cannot be told apart")

    def new_model() -> CaserOfUsers:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return CaserOfUsers(config=shape, places=city.places.height, users=len(begins))

    course: Course[CaserOfUsers] = Course(
        method="caser",
        shape=shape.to_dict(),
        plan=plan,
        new_model=new_model,
        objective=lambda: ObjectiveOfUsers(city, window=shape.window, config=plan, seed=seed),
        ranker=lambda model: RankerOfUsers(model, known),
    )
    model, training = follow(
        course,
        city,
        part="test",
        seed=seed,
        log=Told(console),
        progress=Silence(),
        options=TrainingOptions(method="caser", workshop=workshop),
    )
    return RankerOfUsers(model, known, training=training)


class Told:
    """A log on the screen."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def event(self, event: str, **fields: Any) -> None:
        """Tell how far the training is."""
        metrics = fields.get("metrics") or {}
        self.console.print(event, fields.get("epoch", ""), metrics.get("MRR", ""))


def main() -> None:
    """Train, rank the test part, write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("city", type=Path, metavar="CITY")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, required=True, metavar="RESULT")
    options = parser.parse_args()
    city = City.load(options.city)
    workshop = options.out.with_suffix(".training")
    workshop.mkdir(parents=True, exist_ok=True)
    ranker = train(city, seed=options.seed, workshop=workshop, console=Console())
    command = f"python tools/caser_users.py {options.city} --seed {options.seed}"
    origin = {
        "city": str(options.city.resolve()),
        "trained": {"config": ranker.config},
        "command": command,
    }
    evaluate(ranker, city, method="caser", seed=options.seed, origin=origin).save(options.out)
    experiment = {
        "kind": "experiment",
        "city": options.city.name,
        "row": ROW,
        "seed": options.seed,
        "commands": [command],
    }
    write_json(options.out / "experiment.json", experiment)
    shutil.rmtree(workshop)


if __name__ == "__main__":
    main()
