"""Tensors of a few numbers gain nothing from threads, and lose much where others compute too."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """One thread for torch, for the tests below a conftest that imports this."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
