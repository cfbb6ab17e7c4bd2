import ctypes
import os
from pathlib import Path

import pytest
import torch

from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig
from castpoi.training.memory import (
    bytes_of_training,
    check_memory,
    free_bytes,
    give_back,
)
from tests.messages import refused

MACHINE = "MemTotal:  8000000 kB\nMemFree:  10 kB\nMemAvailable:    3000000 kB\n"


@pytest.fixture
def system(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "meminfo").write_text(MACHINE)
    return tmp_path / "meminfo", tmp_path


def test_the_machine_says_what_is_free(system: tuple[Path, Path]) -> None:
    assert free_bytes(meminfo=system[0], cgroup=system[1]) == 3_000_000 * 1024


def test_a_container_may_have_less(system: tuple[Path, Path]) -> None:
    (system[1] / "memory.max").write_text("1000000\n")
    (system[1] / "memory.current").write_text("400000\n")
    assert free_bytes(meminfo=system[0], cgroup=system[1]) == 600_000


def test_a_container_without_limit_is_the_machine(system: tuple[Path, Path]) -> None:
    (system[1] / "memory.max").write_text("max\n")
    assert free_bytes(meminfo=system[0], cgroup=system[1]) == 3_000_000 * 1024


@pytest.mark.parametrize("text", ["", "MemAvailable:", "MemAvailable: much kB"])
def test_where_nobody_says_a_modest_guess_is_made(tmp_path: Path, text: str) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert free_bytes(meminfo=tmp_path / "meminfo", cgroup=tmp_path) == 2 * 2**30
    assert free_bytes(meminfo=tmp_path / "absent", cgroup=tmp_path) == 2 * 2**30


@pytest.mark.parametrize("preset", ["next", "fast"])
def test_a_million_visits_fit_a_machine_with_four_gigabytes(preset: str) -> None:
    model = ModelConfig.preset(preset)
    needed = bytes_of_training(model, visits=10**6, places=5_000, targets=100, read=37)
    check_memory(needed, free=4 * 2**30)


def test_a_training_that_does_not_fit_is_refused_in_words() -> None:
    model = ModelConfig.preset("next")
    needed = bytes_of_training(model, visits=10**6, places=10**6, targets=100, read=37)
    with refused(BadInput):
        check_memory(needed, free=4 * 2**30)


def test_where_nobody_reads_reading_takes_no_memory() -> None:
    without = ModelConfig(candidate_conditioning=False)
    needed = bytes_of_training(without, visits=0, places=100, targets=1, read=37)
    assert needed == 100 * 4 * (12 + 7 * without.width)


def test_a_cuda_card_has_a_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def of_card(device: torch.device) -> tuple[int, int]:
        asked.append(device)
        return 123, 456

    monkeypatch.setattr(torch.cuda, "mem_get_info", of_card)
    card = torch.device("cuda", 1)
    assert free_bytes(card) == 123
    assert asked == [card]
    assert free_bytes() > 456


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library gives nothing back"
)
def test_gaps_between_what_is_kept_are_given_back_to_the_system() -> None:
    blocks = [b"x" * 100_000 for _ in range(1000)]  # 100 MB
    kept = blocks[::10]  # no more than nine blocks lie together
    del blocks
    before = _held_bytes()
    give_back()
    assert before - _held_bytes() > 40_000_000
    assert len(kept) == 100


def _held_bytes() -> int:
    """Memory of this process that is really there."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
