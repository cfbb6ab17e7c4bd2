"""Training of CaST-POI: its configs, plan, objective and need of memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from castpoi.checkins.city import City
from castpoi.core.config import changed
from castpoi.core.errors import BadInput
from castpoi.methods.run import Run
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import BatchBuilder
from castpoi.training.config import CastPoiTraining
from castpoi.training.continued import check_places, take_over
from castpoi.training.device import device_named, free_bytes
from castpoi.training.job import TrainingJob, TrainingOptions
from castpoi.training.objectives import Objective
from castpoi.training.objectives.fast import FastObjective
from castpoi.training.objectives.full import CANDIDATES_AT_ONCE, FullObjective
from castpoi.training.objectives.fused_loss import ROWS_AT_ONCE
from castpoi.training.objectives.sampled import DRAWS, SampledObjective
from castpoi.training.trainer import TrainingPlan, run_plan

SAMPLED_FROM: Final = 50_000
"""With more places, a model without a reader is trained with the sampled objective."""
SHORTLIST: Final = 256
"""Places whose reader score is computed to select an epoch."""

_FLOAT_BYTES: Final = 4
_MATRICES: Final = 12  # of targets x places that a step holds, about
_COPIES: Final = 7  # of the place table: weights, gradient, optimizer, averages
_VISIT_BYTES: Final = 600  # of the city, and of the features of each visit
_FREE_SHARE: Final = 0.75  # of the free memory; the rest is for features kept between epochs
_GIB: Final = 2**30


def train_castpoi(city: City, job: TrainingJob) -> CastPoiRanker:
    """Train CaST-POI and keep the epoch that is best on validation."""
    options = job.options
    if options.start is not None:
        check_places(options.start, city)
    model, training = configs(job.method, options.preset or "fast", options.settings)
    places, visits = city.places.height, len(city.trajectories)
    may_sample = _why_not_sampled(model, options) is None
    if places > SAMPLED_FROM and "objective" not in options.settings and may_sample:
        training = replace(training, objective="sampled")
    elif training.objective == "sampled" and (problem := _why_not_sampled(model, options)):
        raise BadInput(f"objective=sampled cannot train {problem}; choose objective=fast")
    needed = bytes_of_training(model, training, places=places, visits=visits)
    check_memory(needed, free_bytes(device_named(options.device)))
    plan = plan_of(city, model, training, seed=job.seed, start=options.start)
    trained, summary = run_plan(plan, city, job)
    return CastPoiRanker(trained, _builder(city, model), training=summary)


def configs(
    method: str, preset: str, settings: Mapping[str, object]
) -> tuple[ModelConfig, CastPoiTraining]:
    """The configs of model and training: a preset with some settings changed.

    Raises:
        BadInput: a setting is unknown, cannot be read, or contradicts another.
    """
    model, training = changed(ModelConfig.preset(preset), CastPoiTraining.preset(preset), settings)
    if training.objective != "full" and model.positions != "relative" and model.backbone:
        raise BadInput(
            f"objective={training.objective} cannot train positions={model.positions}, because "
            "the states of every prefix differ then; choose positions=relative or objective=full"
        )
    return model, training


def _why_not_sampled(model: ModelConfig, options: TrainingOptions) -> str | None:
    """What the sampled objective cannot train; None: it can train this model."""
    if model.candidate_conditioning:
        return "a model with a reader (candidate_conditioning=true)"
    if options.device != "cpu":
        return "on other devices than the CPU"
    return None


def plan_of(
    city: City,
    model: ModelConfig,
    training: CastPoiTraining,
    *,
    seed: int,
    start: Run | None = None,
) -> TrainingPlan[CastPoi]:
    """The training plan of a CaST-POI model; `start` is the run from which it continues.

    Validation ranks all places exactly, or with the reader of the fast objective only a shortlist.
    """
    has_shortlist = training.objective == "fast" and model.candidate_conditioning
    shortlist = SHORTLIST if has_shortlist else None
    builder = _builder(city, model)

    def first_model() -> CastPoi:
        new = new_model(config=model, lat=city.lat, lon=city.lon, seed=seed)
        if start is not None:
            take_over(new, start, city)
        return new

    return TrainingPlan(
        model_config=model.to_dict(),
        config=training,
        # gradients of rows are no gradients of weights, which the parts would add up
        step_parts=1 if training.objective == "sampled" else training.step_parts,
        new_model=first_model,
        objective=lambda: objective_of(city, model, training, seed=seed, start=start),
        ranker=lambda trained: CastPoiRanker(trained, builder, shortlist=shortlist),
    )


def objective_of(
    city: City,
    model: ModelConfig,
    training: CastPoiTraining,
    *,
    seed: int,
    start: Run | None = None,
) -> Objective[Any]:
    """The objective of a training; `start` is the run from which it continues."""
    kinds: dict[str, type[FullObjective | FastObjective]] = {
        "full": FullObjective,
        "fast": FastObjective,
        "sampled": SampledObjective,
    }
    found = kinds[training.objective](city, model=model, config=training, seed=seed)
    if training.learn_from == "new":
        if start is None or start.learned_until_us is None:
            raise BadInput(
                "learn_from=new needs a run with the time of its last check-in; give a run that "
                "this castpoi has trained with --from RUN, or learn_from=all"
            )
        found.learn_since(start.learned_until_us)
    return found


def bytes_of_training(
    model: ModelConfig, training: CastPoiTraining, *, places: int, visits: int
) -> int:
    """Estimate of the memory that a training holds."""
    is_full = training.objective == "full"
    targets = training.batch if is_full else training.windows_per_step * training.window_targets
    per_target, floats = _MATRICES * places, _COPIES * places * model.width
    if training.objective == "sampled":
        per_target = 4 * DRAWS * model.width  # a draw copies a vector
    elif not is_full and not model.candidate_conditioning:  # the loss is computed in blocks
        floats += training.step_parts * ROWS_AT_ONCE * per_target
        per_target = places  # the cells of distances, and of what they are made
    if model.candidate_conditioning:
        candidates = 1 + training.hard_candidates + training.drawn_candidates
        keys_and_values = 4 * model.window * model.width  # as gathered, and with their age added
        attention = 6 * model.heads * model.window  # logits, bias, mask, softmax and their copies
        vectors = 10 * model.width + 4 * model.feed_forward_width
        per_candidate = model.reader_layers * (attention + vectors) + 8 * model.width
        per_target += model.reader_layers * keys_and_values
        per_target += (CANDIDATES_AT_ONCE if is_full else candidates) * per_candidate
    return _FLOAT_BYTES * (floats + targets * per_target) + _VISIT_BYTES * visits


def check_memory(needed: int, free: int) -> None:
    """Refuse a training that would not fit, before it begins.

    Raises:
        BadInput: it needs more than its share of the free memory.
    """
    if needed > _FREE_SHARE * free:
        raise BadInput(
            f"training would take about {needed / _GIB:.1f} GiB of memory, but may take at most "
            f"{_FREE_SHARE:.0%} of the {free / _GIB:.1f} GiB that are free; lower width, "
            "windows_per_step or batch, prepare the city with fewer places "
            "(--min-place-checkins), or use a larger machine"
        )


def _builder(city: City, model: ModelConfig) -> BatchBuilder:
    return BatchBuilder(config=model, lat=city.lat, lon=city.lon)
