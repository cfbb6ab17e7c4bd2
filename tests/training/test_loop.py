from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from castpoi.checkins.city import City
from castpoi.core.errors import TrainingDiverged
from castpoi.core.progress import Task
from castpoi.evaluation.metrics import Metrics
from castpoi.methods.run import RunLog
from castpoi.model.castpoi import CastPoi
from castpoi.training.checkpoint import Checkpoints, EpochRecord
from castpoi.training.config import CastPoiTraining, TrainingConfig
from castpoi.training.distributed import ProcessGroup
from castpoi.training.job import World
from castpoi.training.loop import (
    Selection,
    TrainingContext,
    TrainingLoop,
    Validate,
    WeightAverage,
    _set_weights,
    learning_rate,
)
from castpoi.training.objectives import Objective
from tests.messages import refused
from tests.training.small import events_of, full_objective, tiny_model, tiny_model_config

CONFIG = CastPoiTraining(
    objective="full",
    epochs=4,
    learning_rate=0.01,
    warmup_epochs=1.0,
    place_weight_decay=1e-4,
    weight_averaging=0.0,
)


class RecordedProgress:
    """A progress that keeps its texts."""

    def __init__(self) -> None:
        self.done = 0.0
        self.texts: list[str] = []

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        yield self

    def advance(self, amount: float = 1) -> None:
        self.done += amount

    def describe(self, text: str) -> None:
        self.texts.append(text)


class Diverging:
    """An objective whose loss is not a number after some steps."""

    def __init__(self, objective: Objective[Any], good_steps: int) -> None:
        self.objective = objective
        self.good_steps = good_steps

    def batches(self, epoch: int) -> Sequence[Any]:
        return self.objective.batches(epoch)

    def targets(self, batch: Any) -> int:
        return self.objective.targets(batch)

    def share(self, batch: Any, rank: int, ranks: int) -> Any:
        return self.objective.share(batch, rank, ranks)

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        self.good_steps -= 1
        loss = self.objective.loss(model, batch)
        return loss if self.good_steps >= 0 else loss * torch.nan


def best_in(best: int) -> Validate:
    """A validation whose metric is highest in this epoch."""
    epoch = 0

    def validate(model: CastPoi) -> Metrics:
        nonlocal epoch
        epoch += 1
        return {"MRR": 1 / (1 + abs(epoch - best)), "HR@10": 0.5}

    return validate


def loop_of(
    town: City,
    *,
    context: TrainingContext | None = None,
    validate: Validate | None = None,
    **changes: Any,
) -> TrainingLoop:
    model_config = tiny_model_config(dropout=0.1, candidate_conditioning=False)
    config = replace(CONFIG, **changes)
    return TrainingLoop(
        tiny_model(town, model_config),
        full_objective(town, model_config, batch=128),
        validate or (lambda model: {}),
        config=config,
        seed=3,
        context=context or TrainingContext(),
    )


def run_epochs(loop: TrainingLoop, count: int) -> None:
    """The first epochs of a training that then stops."""
    with loop.context.progress.task("a few epochs") as task:
        for epoch in range(count):
            loop._run_epoch(epoch, task)


def weights(loop: TrainingLoop) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in loop.model.named_parameters()}


def are_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_the_weights_of_the_best_epoch_are_kept(town: City) -> None:
    kept, stopped = (loop_of(town, validate=best_in(2)) for _ in range(2))
    assert kept.run().epoch == 2
    assert len(kept.records) == 4
    run_epochs(stopped, 2)
    assert are_equal(weights(kept), weights(stopped))


def test_training_ends_without_a_better_epoch_within_patience(town: City) -> None:
    loop = loop_of(town, validate=best_in(1), patience=2, epochs=20)
    loop.run()
    assert len(loop.records) == 3


def test_one_seed_gives_one_set_of_weights(town: City) -> None:
    one, same, other = loop_of(town), loop_of(town), loop_of(town)
    other.seed = 4
    for loop in (one, same, other):
        loop.run()
    assert are_equal(weights(one), weights(same))
    assert not are_equal(weights(one), weights(other))


@pytest.mark.parametrize("averaging", [0.0, 0.9])
@pytest.mark.parametrize("epochs_before", [1, 2])
def test_a_resumed_training_ends_with_the_same_weights(
    town: City, tmp_path: Path, averaging: float, epochs_before: int
) -> None:
    whole = loop_of(town, weight_averaging=averaging, validate=best_in(3))
    best = whole.run()
    checkpoints = Checkpoints(folder=tmp_path, identity={})
    context = TrainingContext(checkpoints=checkpoints, threads=1)
    killed = loop_of(town, context=context, weight_averaging=averaging, validate=best_in(3))
    run_epochs(killed, epochs_before)
    rest = best_in(3 - epochs_before)
    resumed = loop_of(town, context=context, weight_averaging=averaging, validate=rest)
    again = resumed.run(checkpoints.load())
    assert are_equal(weights(whole), weights(resumed))
    assert (again.epoch, again.loss, again.metrics) == (best.epoch, best.loss, best.metrics)
    assert [each.loss for each in resumed.records] == [each.loss for each in whole.records]


def test_a_training_resumed_after_its_last_epoch_trains_no_more(town: City, tmp_path: Path) -> None:
    checkpoints = Checkpoints(folder=tmp_path, identity={})
    whole = loop_of(town, context=TrainingContext(checkpoints=checkpoints), validate=best_in(2))
    whole.run()
    again = loop_of(town, validate=best_in(-9))
    assert again.run(checkpoints.load()).epoch == 2
    assert are_equal(weights(whole), weights(again))


def test_the_running_mean_is_validated_and_kept(town: City) -> None:
    seen: list[dict[str, Tensor]] = []

    def validate(model: CastPoi) -> Metrics:
        assert not model.training
        seen.append({name: each.detach().clone() for name, each in model.named_parameters()})
        return {"MRR": float(len(seen))}

    loop = loop_of(town, validate=validate, weight_averaging=0.95)
    loop.run()
    assert loop.average is not None
    assert are_equal(seen[-1], loop.average.mean)
    assert are_equal(weights(loop), loop.average.mean)


def test_each_epoch_is_logged_and_the_progress_has_loss_metric_and_speed(town: City) -> None:
    log, progress = RunLog(), RecordedProgress()
    context = TrainingContext(log=log, progress=progress)
    loop_of(town, context=context, validate=best_in(1), epochs=2).run()
    events = events_of("".join(log.lines))
    assert [event["event"] for event in events] == ["epoch finished"] * 2
    last = events[-1]
    assert last["epoch"] == 2
    assert last["metrics"] == {"MRR": 0.5, "HR@10": 0.5}
    assert {"loss", "learning_rate", "seconds", "targets_per_second"} <= last.keys()
    assert last["targets_per_second"] > 0
    assert progress.done == pytest.approx(2)
    assert progress.texts[0].startswith("epoch 1 · loss ")
    assert " · best MRR 100.00 · " in progress.texts[-1]
    assert progress.texts[-1].endswith(" targets/s")


@pytest.mark.parametrize("clip", [0.01, 1e6])
def test_a_step_has_the_scheduled_rate_and_a_clipped_gradient(
    town: City, clip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = loop_of(town, clip=clip, epochs=2)
    rates, lengths, step = [], [], loop.optimizer.step

    def noted_step() -> None:
        rates.append({group["lr"] for group in loop.optimizer.param_groups})
        grads = [weight.grad for weight in loop.model.parameters() if weight.grad is not None]
        lengths.append(float(torch.cat([grad.flatten() for grad in grads]).norm()))
        step()

    monkeypatch.setattr(loop.optimizer, "step", noted_step)
    loop.run()
    steps = len(loop.objective.batches(0))
    assert rates == [
        {learning_rate(loop.config, epoch=epoch, step=number, steps=steps)}
        for epoch in range(2)
        for number in range(steps)
    ]
    if clip == 0.01:
        assert lengths == pytest.approx([0.01] * 2 * steps, rel=1e-3)
    else:
        assert min(lengths) > 0.01  # all were too long for the other clip


def test_a_diverged_loss_stops_with_the_last_good_checkpoint(town: City, tmp_path: Path) -> None:
    checkpoints = Checkpoints(folder=tmp_path, identity={})
    loop = loop_of(town, context=TrainingContext(checkpoints=checkpoints))
    steps = len(loop.objective.batches(0))
    loop.objective = Diverging(loop.objective, good_steps=2 * steps + 1)
    words = (
        "training diverged in epoch 3: the loss is nan; train again with a lower learning_rate "
        rf"\(it is 0.01\) or a lower clip; the weights after epoch 2 are kept in {tmp_path}"
    )
    with pytest.raises(TrainingDiverged, match=words):
        loop.run()
    kept = checkpoints.load()
    assert kept is not None
    assert len(kept.records) == 2
    assert all(tensor.isfinite().all() for tensor in kept.tensors.values())


def test_a_loss_that_diverges_in_the_first_epoch_has_no_checkpoint(town: City) -> None:
    loop = loop_of(town)
    loop.objective = Diverging(loop.objective, good_steps=0)
    with refused(TrainingDiverged):
        loop.run()


def test_each_process_has_its_share_of_a_batch_and_a_single_one_has_all(town: City) -> None:
    objective = full_objective(town, tiny_model_config(), batch=7)
    batch = objective.batches(0)[0]
    shares = [
        ProcessGroup(world=World(rank=rank, ranks=2)).share(objective, batch).tolist()
        for rank in range(2)
    ]
    assert shares == [batch[::2].tolist(), batch[1::2].tolist()]
    assert ProcessGroup().share(objective, batch) is batch


def epoch(number: int, metrics: Metrics) -> EpochRecord:
    return EpochRecord(
        at_utc="2012-04-03T18:00:09+00:00",
        epoch=number,
        loss=1.0,
        learning_rate=1e-3,
        metrics=metrics,
        seconds=1.0,
        targets_per_second=1.0,
    )


def after(values: list[float], **changes: float) -> Selection:
    selection = Selection(TrainingConfig(select_by="MRR", **changes))  # type: ignore[arg-type]
    for number, value in enumerate(values, 1):
        selection.add(epoch(number, {"MRR": value}))
    return selection


def test_the_best_epoch_is_kept_and_the_sooner_of_two_equals() -> None:
    selection = after([0.1, 0.3, 0.2, 0.3])
    assert selection.best is not None
    assert selection.best.epoch == 2


def test_patience_is_counted_after_the_warm_up() -> None:
    falling = [0.9, 0.5, 0.4, 0.3, 0.2]
    assert not after(falling[:4], patience=2, warmup_epochs=3).is_over
    assert after(falling, patience=2, warmup_epochs=3).is_over


def test_without_validation_the_last_epoch_is_kept() -> None:
    selection = Selection(TrainingConfig(patience=1, warmup_epochs=0))
    assert all(selection.add(epoch(number, {})) for number in (1, 2, 3))
    assert not selection.is_over


def rates_of(*, epochs: int, warmup: float, count: int) -> list[float]:
    """The rates of the first epochs, from 0.9 down to 0.1."""
    config = TrainingConfig(
        epochs=epochs, warmup_epochs=warmup, learning_rate=0.9, final_rate=1 / 9, schedule="epoch"
    )
    return [learning_rate(config, epoch=epoch, step=0, steps=4) for epoch in range(count)]


def test_three_warm_up_epochs_rise_by_thirds_and_the_cosine_falls_by_hand() -> None:
    falling = [0.9, 0.1 + 0.4 * (1 + 0.5**0.5), 0.5, 0.1 + 0.4 * (1 - 0.5**0.5), 0.1]
    assert rates_of(epochs=7, warmup=3, count=8) == pytest.approx([0.3, 0.6, 0.9, *falling])


def test_the_paper_changes_the_rate_with_every_epoch_only() -> None:
    paper = CastPoiTraining.preset("paper")
    first = [learning_rate(paper, epoch=0, step=step, steps=770) for step in (0, 1, 769)]
    assert first == pytest.approx([1e-3 / 3] * 3)
    assert learning_rate(paper, epoch=2, step=0, steps=770) == pytest.approx(1e-3)
    assert learning_rate(paper, epoch=3, step=0, steps=770) == pytest.approx(1e-3)
    # epoch 49 is 46/47 of the way down
    assert learning_rate(paper, epoch=49, step=9, steps=770) == pytest.approx(2.12e-6, rel=0.01)


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(0, 60))
def test_the_rate_stays_between_its_bounds_and_falls_after_the_warm_up(
    epochs: int, warmup: int
) -> None:
    rates = rates_of(epochs=epochs, warmup=warmup, count=epochs)
    assert all(0 < rate <= 0.9 * (1 + 1e-12) for rate in rates)
    assert all(later <= sooner for sooner, later in pairwise(rates[warmup:]))


def one_weight(value: float) -> nn.Linear:
    model = nn.Linear(1, 1, bias=False)
    _set_weights(model, {"weight": torch.tensor([[value]])})
    return model


def test_the_mean_soon_forgets_the_start() -> None:
    model = one_weight(0.0)
    average = WeightAverage(model, decay=0.999)
    _set_weights(model, {"weight": torch.tensor([[11.0]])})
    average.add(model, 1)  # keeps 2 / 11 of itself
    assert average.mean["weight"].item() == pytest.approx(9.0)
    average.add(model, 2)  # keeps 3 / 12 of itself
    assert average.mean["weight"].item() == pytest.approx(0.25 * 9 + 0.75 * 11)


def test_the_model_has_the_mean_only_while_the_block_runs() -> None:
    model = one_weight(3.0)
    average = WeightAverage(model, decay=0.9)
    average.mean["weight"].fill_(7.0)
    with average.applied(model):
        assert model.weight.item() == 7.0
    assert model.weight.item() == 3.0
