import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from castpoi.baselines.sequence import MODELS, model_class, new_model
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.training import castpoi
from castpoi.training.config import CastPoiTraining, ObjectiveName, SequenceTraining
from castpoi.training.device import (
    deterministic,
    device_named,
    free_bytes,
    mixed_precision,
    release_memory,
    seed_epoch,
)
from castpoi.training.objectives import Objective
from castpoi.training.sequence import objective_of
from tests.training.small import tiny_model, tiny_model_config

CPU = torch.device("cpu")


def step(model: nn.Module, objective: Objective[Any], *, bfloat16: bool) -> tuple[Tensor, Tensor]:
    """Loss and gradient of a batch, in bfloat16 as on CUDA or in float32."""
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        loss = objective.loss(model, objective.batches(0)[0])
    loss.backward()
    grads = [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
    return loss.detach(), torch.cat(grads)


def check_bfloat16(model: nn.Module, objective: Objective[Any]) -> None:
    """Check that bfloat16 changes loss and gradient only a little."""
    loss, grad = step(model, objective, bfloat16=True)
    expected, whole = step(model, objective, bfloat16=False)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=1e-2, atol=0)
    assert float((grad - whole).norm() / whole.norm()) < 0.1


PARTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "no reader": {"candidate_conditioning": False},
    "no gate": {"revisit_gate": False},
    "next": {
        **{"candidate_conditioning": False, "distance_gate": True},
        **{"revisit_features": "habits", "deep_revisits": True},
    },
}


@pytest.mark.parametrize("objective", ["fast", "full"])
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS.keys())
def test_castpoi_learns_nearly_the_same_in_bfloat16(
    town: City, parts: dict[str, Any], objective: ObjectiveName
) -> None:
    config = tiny_model_config(**parts)
    model = tiny_model(town, config, noise=0.3)
    plan = CastPoiTraining(objective=objective, batch=16)
    check_bfloat16(model, castpoi.objective_of(town, config, plan, seed=1))


@pytest.mark.parametrize("name", MODELS)
def test_a_baseline_learns_nearly_the_same_in_bfloat16(town: City, name: str) -> None:
    kind = model_class(name)
    shape = kind.config_class.from_dict({"width": 8, "window": 8})
    plan = SequenceTraining(batch=64)
    objective = objective_of(kind, town, shape, plan, seed=1)
    model = new_model(name, config=shape, places=town.places.height, seed=1).eval()
    check_bfloat16(model, objective)


def test_a_device_that_this_machine_lacks_is_refused() -> None:
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


def test_threads_order_and_random_numbers_are_restored_after_training() -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    threads = torch.get_num_threads()
    with deterministic(CPU, threads=2):
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
    """By default they add in the order of arrival, which differs every time."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(300_000, generator=generator)
    row = torch.randint(7, (300_000,), generator=generator)
    with deterministic(CPU, threads=2):
        sums = {
            tuple(torch.zeros(7).index_put_((row,), values, accumulate=True).tolist())
            for _ in range(5)
        }
    assert len(sums) == 1


def test_every_epoch_and_process_has_reproducible_random_numbers_of_its_own() -> None:
    def drawn(*key: int) -> float:
        with deterministic(CPU, threads=1):
            seed_epoch(*key)
            return float(torch.rand(1))

    keys = [(0, 0), (0, 1), (1, 0), (0, 0, 1)]
    assert len({drawn(*key) for key in keys}) == len(keys)
    assert [drawn(*key) for key in keys] == [drawn(*key) for key in keys]


@pytest.fixture
def system(tmp_path: Path) -> tuple[Path, Path]:
    """Files of a Linux system with 3 GB of free memory."""
    machine = "MemTotal:  8000000 kB\nMemFree:  10 kB\nMemAvailable:    3000000 kB\n"
    (tmp_path / "meminfo").write_text(machine)
    return tmp_path / "meminfo", tmp_path


def test_the_free_memory_of_the_machine_is_read(system: tuple[Path, Path]) -> None:
    assert free_bytes(meminfo=system[0], cgroup=system[1]) == 3_000_000 * 1024


@pytest.mark.parametrize(("limit", "free"), [("1000000", 600_000), ("max", 3_000_000 * 1024)])
def test_a_container_may_have_less_memory(system: tuple[Path, Path], limit: str, free: int) -> None:
    (system[1] / "memory.max").write_text(f"{limit}\n")
    (system[1] / "memory.current").write_text("400000\n")
    assert free_bytes(meminfo=system[0], cgroup=system[1]) == free


@pytest.mark.parametrize("text", ["", "MemAvailable:", "MemAvailable: much kB"])
def test_a_system_that_does_not_report_its_memory_has_a_low_guess(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert free_bytes(meminfo=tmp_path / "meminfo", cgroup=tmp_path) == 2 * 2**30
    assert free_bytes(meminfo=tmp_path / "absent", cgroup=tmp_path) == 2 * 2**30


def test_a_cuda_card_has_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100 + device.index, 456))
    assert free_bytes(torch.device("cuda", 1)) == 101
    assert free_bytes() > 456


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library releases no memory"
)
def test_gaps_between_used_memory_are_released() -> None:
    blocks = [b"x" * 100_000 for _ in range(1000)]  # 100 MB
    kept = blocks[::10]  # no more than nine neighbouring blocks are free
    del blocks
    before = _resident_bytes()
    release_memory()
    assert before - _resident_bytes() > 40_000_000
    assert len(kept) == 100


def _resident_bytes() -> int:
    """Physical memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
