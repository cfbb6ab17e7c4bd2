import numpy as np
import torch

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.evaluation.metrics import Metrics
from castpoi.model.ranker import CastPoiRanker
from castpoi.training.config import TrainingConfig
from castpoi.training.selection import EpochRecord, Selection, ShortlistRanker
from tests.messages import refused
from tests.training.small import full_objective, tiny_model, tiny_model_config


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
    selection.replay(epoch(number, {"MRR": value}) for number, value in enumerate(values, 1))
    return selection


def test_the_best_epoch_is_kept_and_the_sooner_of_two_equals() -> None:
    selection = after([0.1, 0.3, 0.2, 0.3])
    assert selection.best is not None
    assert selection.best.epoch == 2


def test_training_ends_after_so_many_epochs_without_a_better_one() -> None:
    falling = [0.5, 0.4, 0.3, 0.2]
    assert not after(falling[:3], patience=3, warmup_epochs=0).is_over
    assert after(falling, patience=3, warmup_epochs=0).is_over


def test_patience_is_counted_after_the_warm_up() -> None:
    falling = [0.9, 0.5, 0.4, 0.3, 0.2]
    assert not after(falling[:4], patience=2, warmup_epochs=3).is_over
    assert after(falling, patience=2, warmup_epochs=3).is_over


def test_a_better_epoch_renews_patience() -> None:
    assert after([0.5, 0.4, 0.6, 0.3], patience=2, warmup_epochs=0).waited == 1


def test_only_the_chosen_metric_decides() -> None:
    selection = Selection(TrainingConfig(select_by="HR@10"))
    assert selection.note(epoch(1, {"HR@10": 0.5, "MRR": 0.1}))
    assert not selection.note(epoch(2, {"HR@10": 0.4, "MRR": 0.9}))


def test_without_validation_the_last_epoch_is_kept() -> None:
    selection = Selection(TrainingConfig(patience=1, warmup_epochs=0))
    assert all(selection.note(epoch(number, {})) for number in (1, 2, 3))
    assert not selection.is_over


def test_a_shortlist_of_all_places_is_the_exact_ranker(town: City) -> None:
    config = tiny_model_config()
    model, builder = tiny_model(town, config, noise=0.3), full_objective(town, config).builder
    cheap, exact = ShortlistRanker(model, builder, size=10_000), CastPoiRanker(model, builder)
    histories = town.trajectories.histories_before(town.targets("validation"))
    np.testing.assert_allclose(
        cheap.score(cheap.encode(histories)), exact.score(exact.encode(histories)), atol=1e-5
    )


def test_places_off_the_shortlist_stand_below_it_in_their_own_order(town: City) -> None:
    """Whatever constant the reader adds to all that it reads, the ranks must not change."""
    config = tiny_model_config()
    model, builder = tiny_model(town, config, noise=0.3), full_objective(town, config).builder
    assert model.refinement is not None
    with torch.no_grad():
        model.refinement.head.last.bias.sub_(100.0)
    ranker = ShortlistRanker(model, builder, size=3)
    encoded = ranker.encode(town.trajectories.histories_before(town.targets("validation")))
    found = ranker.score(encoded)
    foretold, exact = ranker.scorer.foretold(encoded).numpy(), ranker.scorer.score(encoded).numpy()
    order = np.argsort(-foretold, axis=1)
    best, others = order[:, :3], order[:, 3:]
    np.testing.assert_allclose(
        np.take_along_axis(found, best, axis=1), np.take_along_axis(exact, best, axis=1), atol=1e-5
    )
    below = np.take_along_axis(found, others, axis=1)  # in the order of the scores foretold
    assert (np.diff(below, axis=1) <= 0).all()
    assert (below[:, 0] < np.take_along_axis(found, best, axis=1).min(axis=1)).all()


def test_a_shortlist_takes_no_candidates(town: City) -> None:
    config = tiny_model_config()
    ranker = ShortlistRanker(tiny_model(town, config), full_objective(town, config).builder)
    encoded = ranker.encode(town.trajectories.histories_before(town.targets("validation")))
    with refused(BadInput):
        ranker.score(encoded, np.array([0]))
