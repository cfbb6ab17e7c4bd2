import pytest
import torch

from castpoi.errors import BadInput
from castpoi.training.device import device_named, mixed_precision, orderly, seed_epoch

CPU = torch.device("cpu")


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
