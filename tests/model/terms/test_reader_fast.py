import threading

import pytest
import torch

from castpoi.model.ranker import ExactScorer
from castpoi.model.terms.reader_fast import cores_for, workers
from tests.model.small import batch_of, small_config, trained_model, walk

CPU = torch.device("cpu")


def test_workers_call_each_number_once_on_one_core_each() -> None:
    torch.set_num_threads(2)
    done: list[tuple[int, int]] = []
    with workers(CPU) as for_each:
        for_each(lambda number: done.append((number, torch.get_num_threads())), 20)
    assert sorted(done) == [(number, 1) for number in range(20)]


def test_the_limits_of_other_threads_stay_as_before() -> None:
    torch.set_num_threads(2)
    with workers(CPU) as for_each:
        for_each(lambda number: None, 4)
    seen: list[int] = []
    newcomer = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    newcomer.start()
    newcomer.join()
    assert seen == [2]
    assert torch.get_num_threads() == 2


def test_a_single_history_has_one_core_and_many_have_all() -> None:
    torch.set_num_threads(2)
    with cores_for(1):
        assert torch.get_num_threads() == 1
        with cores_for(1):  # within one another
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with cores_for(3):
        assert torch.get_num_threads() == 2
    with pytest.raises(ArithmeticError), cores_for(1):
        raise ArithmeticError
    assert torch.get_num_threads() == 2


def test_an_error_in_a_worker_is_raised() -> None:
    def fail(number: int) -> None:
        raise ArithmeticError(f"number {number}")

    torch.set_num_threads(2)
    with workers(CPU) as for_each, pytest.raises(ArithmeticError, match="number 0"):
        for_each(fail, 3)


def test_the_number_of_workers_changes_no_score() -> None:
    model = trained_model(small_config())
    with torch.inference_mode():
        encoded = model.encode(batch_of(model.config, *[walk(9, seed=i) for i in range(6)]))
    own = torch.tensor([[0, 6], [1, 1], [5, 2], [3, 0], [4, 4], [2, 1]])
    alone = [ExactScorer(model, chunk=3).score(encoded, each) for each in (None, own)]
    torch.set_num_threads(2)
    together = [ExactScorer(model, chunk=3).score(encoded, each) for each in (None, own)]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
