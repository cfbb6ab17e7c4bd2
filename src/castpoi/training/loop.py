"""The training loop: steps, epochs, selection of the best epoch, and a checkpoint after each epoch.

An epoch depends on the one before it only through the weights and the optimizer: torch is seeded
again from (seed, epoch). So a checkpoint needs no state of a random generator, and a resumed
training ends with exactly the weights of an uninterrupted one.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from castpoi.core.errors import TrainingDiverged
from castpoi.core.progress import SILENCE, Progress, Task
from castpoi.core.provenance import now_utc
from castpoi.evaluation.metrics import Metrics
from castpoi.methods.run import RunLog
from castpoi.training.checkpoint import Checkpoint, Checkpoints, EpochRecord
from castpoi.training.config import TrainingConfig
from castpoi.training.device import mixed_precision, release_memory, seed_epoch
from castpoi.training.distributed import ProcessGroup
from castpoi.training.objectives import HasRows, Objective
from castpoi.training.parts import StepParts

Validate = Callable[[Any], Metrics]
"""Metrics of a model on the validation split; empty if there is none."""

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_PLACE_VECTORS = "place.weight"  # decayed by `place_weight_decay`


@dataclass(frozen=True, kw_only=True)
class TrainingContext:
    """What a training uses besides its model, objective and config."""

    log: RunLog = field(default_factory=RunLog)
    progress: Progress = SILENCE
    group: ProcessGroup = field(default_factory=ProcessGroup)
    checkpoints: Checkpoints | None = None
    threads: int = 1
    step_parts: int = 1


class TrainingLoop:
    """Trains one model with one objective and keeps its best epoch."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective[Any],
        validate: Validate,
        *,
        config: TrainingConfig,
        seed: int,
        context: TrainingContext,
    ) -> None:
        self.model = model
        self.objective = objective
        self.validate = validate
        self.config = config
        self.seed = seed
        self.context = context
        self.rows = objective.rows if isinstance(objective, HasRows) else None
        for name, weight in model.named_parameters():
            weight.requires_grad_(self.rows is None or name not in self.rows.decays)
        self.optimizer = _optimizer(model, config)
        decay = config.weight_averaging
        self.average = WeightAverage(model, decay=decay) if decay else None
        self.records: list[EpochRecord] = []
        self.selection = Selection(config)
        self.best: dict[str, Tensor] = {}
        self.steps_done = 0
        self._bind_rows()

    def run(self, checkpoint: Checkpoint | None = None) -> EpochRecord:
        """Train to the end, leave the best weights in the model and return their epoch."""
        if checkpoint is not None:
            self._resume(checkpoint)
        progress = self.context.progress.task("training", total=self.config.epochs)
        context = self.context
        parts = StepParts.of(self.objective, context.step_parts, threads=context.threads)
        with progress as task, parts as self.step_parts:
            task.advance(len(self.records))
            while len(self.records) < self.config.epochs and not self.selection.is_over:
                self._run_epoch(len(self.records), task)
        _set_weights(self.model, self.best)
        self.model.eval()
        assert self.selection.best is not None
        return self.selection.best

    def _run_epoch(self, epoch: int, task: Task) -> None:
        """Train on all batches once, validate, and save a checkpoint."""
        began = perf_counter()
        seed_epoch(self.seed, epoch, self.context.group.world.rank)
        loss, targets, rate = self._train_epoch(epoch, task)
        if self.rows is not None:
            self.rows.catch_up()
        train_seconds = perf_counter() - began
        self.model.eval()
        averaged = nullcontext() if self.average is None else self.average.applied(self.model)
        with torch.no_grad(), averaged:
            metrics = self.validate(self.model)
            weights = _copy_of_weights(self.model)
        record = EpochRecord(
            at_utc=now_utc(),
            epoch=epoch + 1,
            loss=loss,
            learning_rate=rate,
            metrics=metrics,
            seconds=round(perf_counter() - began, 3),
            targets_per_second=round(targets / train_seconds, 1),
        )
        self.records.append(record)
        if self.selection.add(record):
            self.best = weights
        self._save()
        release_memory()
        self.context.log.event("epoch finished", **asdict(record))

    def _train_epoch(self, epoch: int, task: Task) -> tuple[float, int, float]:
        """One step per batch; the mean loss, the number of targets, and the last learning rate."""
        self.model.train()
        loss, targets, rate, began = 0.0, 0, 0.0, perf_counter()
        batches = self.objective.batches(epoch)
        for step, batch in enumerate(batches):
            rate = learning_rate(self.config, epoch=epoch, step=step, steps=len(batches))
            mean, count = self._step(batch, rate, epoch)
            loss, targets = loss + mean * count, targets + count
            task.advance(1 / len(batches))
            speed = targets / max(perf_counter() - began, 1e-9)
            task.describe(self._status(epoch, loss / max(1, targets), speed))
        return loss / max(1, targets), targets, rate

    def _step(self, batch: Any, rate: float, epoch: int) -> tuple[float, int]:
        """One optimizer step; the mean loss of the batch and its number of targets."""
        group = self.context.group
        share = group.share(self.objective, batch)
        targets = self.objective.targets(share)
        self.optimizer.zero_grad(set_to_none=True)
        value = 0.0
        if targets and self.context.step_parts > 1:
            seed = (self.seed, epoch, group.world.rank, self.steps_done)
            value = self.step_parts.backward(self.model, share, seed)
        elif targets:  # in a small batch some processes may have none
            with mixed_precision(group.device):
                loss = self.objective.loss(self.model, share)
            loss.backward()
            value = float(loss.detach())
        elif self.rows is not None:
            self.rows.take(torch.empty(0, dtype=torch.int64))
        own = targets
        value, targets = group.average_gradients(self.model, value, own)
        if self.rows is not None:
            group.average_rows(self.rows, own / targets)
        clip = math.inf if self.config.clip is None else self.config.clip
        rows = [] if self.rows is None else self.rows.leaves.values()
        norm = nn.utils.clip_grad_norm_([*self.model.parameters(), *rows], clip)
        if not math.isfinite(value) or not math.isfinite(float(norm)):
            raise TrainingDiverged(self._diverged(epoch, value))
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.step()
        self.steps_done += 1
        if self.average is not None:
            self.average.add(self.model, self.steps_done)
        if self.rows is not None:
            self.rows.step(
                rate, 1.0 if self.average is None else self.average.kept(self.steps_done)
            )
        return value, targets

    def _diverged(self, epoch: int, loss: float) -> str:
        checkpoints = self.context.checkpoints
        what = f"the loss is {loss}" if not math.isfinite(loss) else "the gradient is not finite"
        kept = "no epoch was finished before"
        if checkpoints is not None and self.records:
            kept = f"the weights after epoch {len(self.records)} are kept in {checkpoints.folder}"
        return (
            f"training diverged in epoch {epoch + 1}: {what}; train again with a lower "
            f"learning_rate (it is {self.config.learning_rate}) or a lower clip; {kept}"
        )

    def _status(self, epoch: int, loss: float, targets_per_second: float) -> str:
        """Loss, best metric and speed, for the progress bar."""
        words = [f"epoch {epoch + 1}", f"loss {loss:.3f}"]
        best = self.selection.best
        value = None if best is None else best.metrics.get(self.config.select_by)
        if value is not None:
            words.append(f"best {self.config.select_by} {100 * value:.2f}")
        return " · ".join([*words, f"{targets_per_second:,.0f} targets/s"])

    def _save(self) -> None:
        context = self.context
        if context.checkpoints is not None and context.group.world.is_first:
            tensors = {name: each.detach().cpu() for name, each in self._tensors()}
            context.checkpoints.save(
                Checkpoint(records=self.records, tensors=tensors, threads=context.threads)
            )

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors from which the next epoch continues."""
        for name, weight in self.model.named_parameters():
            yield f"model.{name}", weight
            yield f"best.{name}", self.best[name]
            if self.average is not None:
                yield f"average.{name}", self.average.mean[name]
            for moment in _MOMENTS:
                if weight in self.optimizer.state:  # a weight without a gradient so far has none
                    yield f"{moment}.{name}", self.optimizer.state[weight][moment]

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Set weights, optimizer and selection to those of a checkpoint."""
        groups: dict[str, dict[str, Tensor]] = {}
        for name, each in checkpoint.tensors.items():
            group, _, rest = name.partition(".")
            groups.setdefault(group, {})[rest] = each.to(self.context.group.device)
        _set_weights(self.model, groups["model"])
        self.best = groups["best"]
        if self.average is not None:
            self.average.mean = groups["average"]
        for name, weight in self.model.named_parameters():
            if name in groups["step"]:
                self.optimizer.state[weight] = {each: groups[each][name] for each in _MOMENTS}
        self.steps_done = max((int(each) for each in groups["step"].values()), default=0)
        self._bind_rows()
        self.records = list(checkpoint.records)
        for record in self.records:
            self.selection.add(record)

    def _bind_rows(self) -> None:
        """Let `rows` work on the weights, moments and means of this loop."""
        if self.rows is None:
            return
        weights = {
            name: each for name, each in self.model.named_parameters() if name in self.rows.decays
        }
        for weight in weights.values():
            if weight not in self.optimizer.state:
                zeros = {name: torch.zeros_like(weight) for name in _MOMENTS[1:]}
                self.optimizer.state[weight] = {_MOMENTS[0]: torch.zeros(()), **zeros}
        states = {name: self.optimizer.state[weight] for name, weight in weights.items()}
        means = {} if self.average is None else self.average.mean
        self.rows.bind(weights, states, means, self.steps_done)


def _optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW, with a separate decay for place vectors."""
    weights = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    places = [weight for name, weight in weights if name == _PLACE_VECTORS]
    others = [weight for name, weight in weights if name != _PLACE_VECTORS]
    return torch.optim.AdamW(
        [
            {"params": places, "weight_decay": config.place_weight_decay},
            {"params": others, "weight_decay": config.weight_decay},
        ],
        lr=config.learning_rate,
        fused=True,
    )


class Selection:
    """The best epoch so far, and the number of epochs since."""

    def __init__(self, config: TrainingConfig) -> None:
        self.config = config
        self.best: EpochRecord | None = None
        self.epochs_since = 0

    def add(self, record: EpochRecord) -> bool:
        """Add an epoch; whether it is the best so far."""
        metric = self.config.select_by
        value = record.metrics.get(metric)
        best = None if self.best is None else self.best.metrics.get(metric)
        if value is None or best is None or value > best:  # without validation, the last epoch
            self.best, self.epochs_since = record, 0
            return True
        if record.epoch > self.config.warmup_epochs:
            self.epochs_since += 1
        return False

    @property
    def is_over(self) -> bool:
        """Whether no epoch was better for as long as patience allows."""
        return self.epochs_since >= self.config.patience


class WeightAverage:
    """A running mean of the weights, steadier than the weights after any single step.

    After step n the mean keeps a share min(decay, (n + 1) / (n + 10)) of itself, so that the random
    initial weights are soon forgotten.
    """

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.mean = _copy_of_weights(model)

    @torch.no_grad()
    def add(self, model: nn.Module, step: int) -> None:
        """Add the weights after a step, those aside that are averaged row by row."""
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                self.mean[name].lerp_(weight, 1 - self.kept(step))

    def kept(self, step: int) -> float:
        """Share of the mean that is kept in a step; the first is 1."""
        return min(self.decay, (step + 1) / (step + 10))

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """While the block runs, the model has the mean as its weights."""
        own = _copy_of_weights(model)
        _set_weights(model, self.mean)
        try:
            yield
        finally:
            _set_weights(model, own)


def _copy_of_weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@torch.no_grad()
def _set_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, weight in model.named_parameters():
        weight.copy_(weights[name])


def learning_rate(config: TrainingConfig, *, epoch: int, step: int, steps: int) -> float:
    """The learning rate of a step: a linear warm-up, then half a cosine down.

    It changes with every epoch (the paper) or with every step, for short trainings. The last unit
    of the warm-up and the first after it have the highest rate. The cosine would reach the final
    rate one unit after the last.
    """
    per_epoch = steps if config.schedule == "step" else 1
    unit = epoch * per_epoch + (step if config.schedule == "step" else 0)
    warmup = round(config.warmup_epochs * per_epoch)
    highest, final = config.learning_rate, config.final_rate * config.learning_rate
    if unit < warmup:
        return highest * (unit + 1) / warmup
    way = (unit - warmup) / max(1, config.epochs * per_epoch - warmup)
    return final + (highest - final) * (1 + math.cos(math.pi * way)) / 2
