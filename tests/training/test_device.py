from typing import Any

import pytest
import torch
from torch import Tensor, nn

from castpoi.baselines.sequence import MODELS, model_class, new_model
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.training import castpoi
from castpoi.training.config import CastPoiTraining, ObjectiveName, SequenceTraining
from castpoi.training.device import device_named, mixed_precision, orderly, seed_epoch
from castpoi.training.objectives import Objective
from castpoi.training.sequence import objective_of
from tests.training.small import tiny_model, tiny_model_config

CPU = torch.device("cpu")


def step(model: nn.Module, objective: Objective[Any], *, halves: bool) -> tuple[Tensor, Tensor]:
    """Loss and gradient of a batch, with products of half numbers as on CUDA, or of whole ones."""
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=halves):
        loss = objective.loss(model, objective.batches(0)[0])
    loss.backward()
    slopes = [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
    return loss.detach(), torch.cat(slopes)


def check_halves(model: nn.Module, objective: Objective[Any]) -> None:
    """Half numbers, where they may be used, change loss and gradient but little."""
    loss, slope = step(model, objective, halves=True)
    expected, whole = step(model, objective, halves=False)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=1e-2, atol=0)
    assert float((slope - whole).norm() / whole.norm()) < 0.1


PARTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "no reader": {"candidate_conditioning": False},
    "no gate": {"revisit_gate": False},
    "next": {
        **{"candidate_conditioning": False, "distance_gate": True},
        **{"revisit_features": "habits", "deep_revisits": True},
    },
    "shared vectors": {"shared_vectors": True},
}


@pytest.mark.parametrize("objective", ["fast", "full"])
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS.keys())
def test_castpoi_learns_nearly_the_same_from_half_numbers(
    town: City, parts: dict[str, Any], objective: ObjectiveName
) -> None:
    config = tiny_model_config(**parts)
    model = tiny_model(town, config, noise=0.3)
    plan = CastPoiTraining(objective=objective, batch=16)
    check_halves(model, castpoi.objective_of(town, config, plan, seed=1))


@pytest.mark.parametrize("name", MODELS)
def test_a_baseline_learns_nearly_the_same_from_half_numbers(town: City, name: str) -> None:
    kind = model_class(name)
    shape = kind.config_class.from_dict({"width": 8, "window": 8})
    plan = SequenceTraining(batch=64)
    objective = objective_of(kind, town, shape, plan, seed=1)
    model = new_model(name, config=shape, places=town.places.height, seed=1).eval()
    check_halves(model, objective)


def test_a_device_that_is_not_here_is_refused() -> None:
    assert device_named("cpu") == CPU
    for name, is_here in (
        ("cuda", torch.cuda.is_available()),
        ("mps", torch.backends.mps.is_available()),
    ):
        if is_here:
            assert device_named(name).type == name
        else:
            with pytest.raises(BadInput, match=f"device '{name}' is not on this machine; choose"):
                device_named(name)


def test_the_cpu_computes_in_float32() -> None:
    with mixed_precision(CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_threads_order_and_random_numbers_are_as_before_when_training_ends() -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    threads = torch.get_num_threads()
    with orderly(CPU, threads=2):
        assert torch.get_num_threads() == 2
        assert torch.are_deterministic_algorithms_enabled()
        assert float(torch.full((1,), 1e-30) * 1e-10) == 0.0  # no denormal number
        seed_epoch(3, 1)
        torch.rand(5)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert float(torch.full((1,), 1e-30) * 1e-10) > 0.0
    assert torch.equal(torch.rand(1), expected)


def test_two_threads_add_in_one_order() -> None:
    """Left to themselves they add in the order of arrival, which is another every time."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(300_000, generator=generator)
    row = torch.randint(7, (300_000,), generator=generator)
    with orderly(CPU, threads=2):
        sums = {
            tuple(torch.zeros(7).index_put_((row,), values, accumulate=True).tolist())
            for _ in range(5)
        }
    assert len(sums) == 1


def test_each_epoch_of_each_process_draws_its_own_numbers_and_always_the_same() -> None:
    def drawn(*key: int) -> float:
        with orderly(CPU, threads=1):
            seed_epoch(*key)
            return float(torch.rand(1))

    keys = [(0, 0), (0, 1), (1, 0), (0, 0, 1)]
    assert len({drawn(*key) for key in keys}) == len(keys)
    assert [drawn(*key) for key in keys] == [drawn(*key) for key in keys]
