import threading

import pytest
import torch

from castpoi.model.scoring import ExactScorer
from castpoi.model.workers import cores_for, workers
from tests.model.small import batch_of, small_config, trained_model, walk

CPU = torch.device("cpu")


def test_every_piece_of_work_is_done_once_by_workers_that_keep_to_one_core() -> None:
    torch.set_num_threads(2)
    done: list[tuple[int, int]] = []
    with workers(CPU) as for_each:
        for_each(lambda number: done.append((number, torch.get_num_threads())), 20)
    assert sorted(done) == [(number, 1) for number in range(20)]


def test_the_threads_of_others_are_as_many_as_before() -> None:
    torch.set_num_threads(2)
    with workers(CPU) as for_each:
        for_each(lambda number: None, 4)
    seen: list[int] = []
    newcomer = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    newcomer.start()
    newcomer.join()
    assert seen == [2]
    assert torch.get_num_threads() == 2


def test_a_lonely_history_has_one_core_and_many_have_all() -> None:
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


def test_a_failing_piece_of_work_is_heard_of() -> None:
    def fail(number: int) -> None:
        raise ArithmeticError(f"number {number}")

    torch.set_num_threads(2)
    with workers(CPU) as for_each, pytest.raises(ArithmeticError, match="number 0"):
        for_each(fail, 3)


def test_the_number_of_workers_changes_no_score() -> None:
    model = trained_model(small_config())
    with torch.inference_mode():
        encoded = model.encode(batch_of(model.config, *[walk(9, seed=i) for i in range(6)]))
    own = torch.tensor([[1, 7], [2, 2], [6, 3], [4, 1], [5, 5], [3, 2]])
    alone = [ExactScorer(model, chunk=3).score(encoded, each) for each in (None, own)]
    torch.set_num_threads(2)
    together = [ExactScorer(model, chunk=3).score(encoded, each) for each in (None, own)]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
