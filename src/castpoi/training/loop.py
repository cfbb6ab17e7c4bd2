"""The training loop: steps, epochs, the best epoch, and a checkpoint after each.

An epoch draws nothing from the one before it but the weights and the optimizer: torch is seeded
anew from (seed, epoch). So a checkpoint needs no state of any random generator, and a resumed
training is the uninterrupted one to the last bit.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from castpoi.core.errors import TrainingDiverged
from castpoi.core.progress import SILENCE, Progress, Task, describe
from castpoi.core.provenance import now_utc
from castpoi.evaluation.metrics import Metrics
from castpoi.training.averaging import WeightAverage, set_weights
from castpoi.training.checkpoint import Checkpoint, Workshop
from castpoi.training.device import mixed_precision, seed_epoch
from castpoi.training.distributed import Team
from castpoi.training.memory import give_back
from castpoi.training.objective import Objective
from castpoi.training.plan import Plan
from castpoi.training.schedule import learning_rate
from castpoi.training.selection import EpochRecord, Selection
from castpoi.training.trainer import Log, NoLog

Validate = Callable[[Any], Metrics]
"""Metrics of a model on the validation part; empty where there is none."""

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_PLACE_VECTORS = ("place.weight", "shared.vectors")  # which have a decay of their own


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """All around a training that its result does not depend on."""

    log: Log = field(default_factory=NoLog)
    progress: Progress = SILENCE
    team: Team = field(default_factory=Team)
    workshop: Workshop | None = None
    frame: dict[str, int] = field(default_factory=dict)
    """Kept in every checkpoint; see `Checkpoint.frame`."""


@dataclass(frozen=True, kw_only=True)
class _Progress:
    """What an epoch has summed up so far."""

    loss: float = 0.0
    targets: int = 0

    def plus(self, loss: float, targets: int) -> "_Progress":
        return _Progress(loss=self.loss + loss * targets, targets=self.targets + targets)

    @property
    def mean_loss(self) -> float:
        return self.loss / max(1, self.targets)


class TrainingLoop:
    """Trains one model with one objective and keeps its best epoch."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective[Any],
        validate: Validate,
        *,
        config: Plan,
        seed: int,
        around: Surroundings,
    ) -> None:
        self.model = model
        self.objective = objective
        self.validate = validate
        self.config = config
        self.seed = seed
        self.around = around
        self.optimizer = _optimizer(model, config)
        decay = config.weight_averaging
        self.average = WeightAverage(model, decay=decay) if decay else None
        self.records: list[EpochRecord] = []
        self.selection = Selection(config)
        self.best: dict[str, Tensor] = {}
        self.steps_done = 0

    def run(self, checkpoint: Checkpoint | None = None) -> EpochRecord:
        """Train to the end, leave the best weights in the model and return their epoch."""
        if checkpoint is not None:
            self._continue_from(checkpoint)
        with self.around.progress.task("training", total=self.config.epochs) as task:
            task.advance(len(self.records))
            while len(self.records) < self.config.epochs and not self.selection.is_over:
                self._run_epoch(len(self.records), task)
        set_weights(self.model, self.best)
        self.model.eval()
        assert self.selection.best is not None
        return self.selection.best

    def _run_epoch(self, epoch: int, task: Task) -> None:
        """Learn once from all batches, validate, and keep what came of it."""
        began = perf_counter()
        seed_epoch(self.seed, epoch, self.around.team.world.rank)
        learned, rate = self._learn(epoch, task)
        seconds_learning = perf_counter() - began
        self.model.eval()
        with torch.no_grad(), self._weights_to_keep():
            metrics = self.validate(self.model)
            kept = {name: each.detach().clone() for name, each in self.model.named_parameters()}
        record = EpochRecord(
            at_utc=now_utc(),
            epoch=epoch + 1,
            loss=learned.mean_loss,
            learning_rate=rate,
            metrics=metrics,
            seconds=round(perf_counter() - began, 3),
            targets_per_second=round(learned.targets / seconds_learning, 1),
        )
        self.records.append(record)
        if self.selection.note(record):
            self.best = kept
        self._save()
        give_back()
        self.around.log.event("epoch finished", **record.to_dict())

    def _learn(self, epoch: int, task: Task) -> tuple[_Progress, float]:
        """One step a batch; what was learned, and the last learning rate."""
        self.model.train()
        learned, rate, began = _Progress(), 0.0, perf_counter()
        batches = self.objective.batches(epoch)
        for step, batch in enumerate(batches):
            rate = learning_rate(self.config, epoch=epoch, step=step, steps=len(batches))
            loss, targets = self._step(batch, rate, epoch)
            learned = learned.plus(loss, targets)
            task.advance(1 / len(batches))
            describe(task, self._sentence(epoch, learned, perf_counter() - began))
        return learned, rate

    def _step(self, batch: Any, rate: float, epoch: int) -> tuple[float, int]:
        """Learn from one batch; its mean loss and number of targets."""
        team = self.around.team
        share = team.share(self.objective, batch)
        targets = self.objective.targets(share)
        self.optimizer.zero_grad(set_to_none=True)
        value = 0.0
        if targets:  # a small batch may leave nothing for some of the team
            with mixed_precision(team.device):
                loss = self.objective.loss(self.model, share)
            loss.backward()
            value = float(loss.detach())
        value, targets = team.average_gradients(self.model, value, targets)
        longest = math.inf if self.config.clip is None else self.config.clip
        length = nn.utils.clip_grad_norm_(self.model.parameters(), longest)
        if not math.isfinite(value) or not math.isfinite(float(length)):
            raise TrainingDiverged(self._diverged(epoch, value))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.steps_done += 1
        if self.average is not None:
            self.average.add(self.model, self.steps_done)
        return value, targets

    def _diverged(self, epoch: int, loss: float) -> str:
        workshop = self.around.workshop
        what = f"the loss is {loss}" if not math.isfinite(loss) else "the gradient is not finite"
        if workshop is None or not self.records:
            kept = "no epoch was finished before"
        else:
            kept = f"the weights after epoch {len(self.records)} are kept in {workshop.folder}"
        return (
            f"training diverged in epoch {epoch + 1}: {what}; train again with a lower "
            f"learning_rate (it is {self.config.learning_rate}) or a lower clip; {kept}"
        )

    def _sentence(self, epoch: int, learned: _Progress, seconds: float) -> str:
        """Loss, best metric and rate, for the bar."""
        words = [f"epoch {epoch + 1}", f"loss {learned.mean_loss:.3f}"]
        best = self.selection.best
        value = None if best is None else best.metrics.get(self.config.select_by)
        if value is not None:
            words.append(f"best {self.config.select_by} {100 * value:.2f}")
        words.append(f"{learned.targets / max(seconds, 1e-9):,.0f} targets/s")
        return " · ".join(words)

    def _weights_to_keep(self) -> AbstractContextManager[None]:
        """The running mean in place of the weights, if there is one, while a block runs."""
        return nullcontext() if self.average is None else self.average.applied(self.model)

    def _save(self) -> None:
        around = self.around
        if around.workshop is not None and around.team.world.is_first:
            tensors = {name: each.detach().cpu() for name, each in self._tensors()}
            around.workshop.save(
                Checkpoint(records=self.records, tensors=tensors, frame=around.frame)
            )

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All that the next epoch continues from, by name."""
        for name, weight in self.model.named_parameters():
            yield f"model.{name}", weight
            yield f"best.{name}", self.best[name]
            if self.average is not None:
                yield f"average.{name}", self.average.mean[name]
            for moment in _MOMENTS:
                if weight in self.optimizer.state:  # a weight that was never used has none
                    yield f"{moment}.{name}", self.optimizer.state[weight][moment]

    def _continue_from(self, checkpoint: Checkpoint) -> None:
        """Take up weights, optimizer and selection where they were left."""
        device = self.around.team.device
        parts: dict[str, dict[str, Tensor]] = {}
        for name, each in checkpoint.tensors.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = each.to(device)
        set_weights(self.model, parts["model"])
        self.best = parts["best"]
        if self.average is not None:
            self.average.restore(parts["average"])
        for name, weight in self.model.named_parameters():
            if name in parts["step"]:
                self.optimizer.state[weight] = {each: parts[each][name] for each in _MOMENTS}
        self.steps_done = max((int(each) for each in parts["step"].values()), default=0)
        self.records = list(checkpoint.records)
        self.selection.replay(self.records)


def _optimizer(model: nn.Module, config: Plan) -> torch.optim.AdamW:
    """AdamW, with a decay of its own for the vectors of places."""
    places = [weight for name, weight in model.named_parameters() if name in _PLACE_VECTORS]
    others = [weight for name, weight in model.named_parameters() if name not in _PLACE_VECTORS]
    return torch.optim.AdamW(
        [
            {"params": places, "weight_decay": config.place_weight_decay},
            {"params": others, "weight_decay": config.weight_decay},
        ],
        lr=config.learning_rate,
        fused=True,
    )
