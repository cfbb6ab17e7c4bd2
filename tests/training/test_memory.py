import ctypes
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from castpoi.model.config import ModelConfig
from castpoi.training.memory import (
    MOST_CANDIDATES,
    MOST_TARGETS,
    bytes_of_reading,
    bytes_of_target,
    candidates_at_once,
    free_bytes,
    free_bytes_of,
    give_back,
    targets_at_once,
)

MACHINE = "MemTotal:  8000000 kB\nMemFree:  10 kB\nMemAvailable:    3000000 kB\n"


@pytest.fixture
def system(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "meminfo").write_text(MACHINE)
    return tmp_path / "meminfo", tmp_path


def test_the_machine_says_what_is_free(system: tuple[Path, Path]) -> None:
    assert free_bytes(*system) == 3_000_000 * 1024


def test_a_container_may_have_less(system: tuple[Path, Path]) -> None:
    (system[1] / "memory.max").write_text("1000000\n")
    (system[1] / "memory.current").write_text("400000\n")
    assert free_bytes(*system) == 600_000


def test_a_container_without_limit_is_the_machine(system: tuple[Path, Path]) -> None:
    (system[1] / "memory.max").write_text("max\n")
    assert free_bytes(*system) == 3_000_000 * 1024


@pytest.mark.parametrize("text", ["", "MemAvailable:", "MemAvailable: much kB"])
def test_where_nobody_says_a_modest_guess_is_made(tmp_path: Path, text: str) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert free_bytes(tmp_path / "meminfo", tmp_path) == 2 * 2**30
    assert free_bytes(tmp_path / "absent", tmp_path) == 2 * 2**30


def test_an_ordinary_machine_reads_the_most_candidates() -> None:
    paper = ModelConfig.preset("paper")
    assert candidates_at_once(paper, histories=128, free=4 * 2**30) == MOST_CANDIDATES


@given(st.integers(1, 2**40), st.integers(1, 4096))
def test_what_is_read_at_once_fits_or_is_one(free: int, histories: int) -> None:
    config = ModelConfig()
    count = candidates_at_once(config, histories=histories, free=free)
    assert count.bit_count() == 1
    assert count == 1 or count * histories * bytes_of_reading(config) <= free / 4


def test_an_ordinary_machine_scores_all_targets_of_a_step_of_an_ordinary_city() -> None:
    """A step of two windows has a hundred of them at most."""
    for name, free_gb, least in (("fast", 8, 1024), ("fast", 4, 512), ("next", 4, 1024)):
        count = targets_at_once(
            ModelConfig.preset(name), places=10_000, candidates=37, free=free_gb * 2**30
        )
        assert count >= least


@given(st.integers(1, 2**40), st.integers(1, 10**8), st.integers(1, 100))
def test_what_is_scored_at_once_fits_or_is_one(free: int, places: int, candidates: int) -> None:
    config = ModelConfig()
    count = targets_at_once(config, places=places, candidates=candidates, free=free)
    assert count.bit_count() == 1
    assert count <= MOST_TARGETS
    reading = candidates * bytes_of_reading(config)
    assert count == 1 or count * (places * 4 * 12 + reading) <= free / 4


def test_where_nobody_reads_reading_takes_no_memory() -> None:
    without = ModelConfig(candidate_conditioning=False)
    assert bytes_of_target(without, places=100, candidates=37) == 100 * 4 * 12


def test_a_cuda_card_has_a_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def of_card(device: torch.device) -> tuple[int, int]:
        asked.append(device)
        return 123, 456

    monkeypatch.setattr(torch.cuda, "mem_get_info", of_card)
    card = torch.device("cuda", 1)
    assert free_bytes_of(card) == 123
    assert asked == [card]
    assert free_bytes_of(torch.device("cpu")) > 456


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
