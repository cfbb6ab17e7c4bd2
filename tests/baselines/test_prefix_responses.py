import pytest
import torch
from torch import Tensor
from torch.nn import functional

from castpoi.baselines.prefix_responses import prefix_responses


def drawn_taps(*, tallest: int, width: int = 4, filters: int = 2) -> Tensor:
    """Taps of filters of all heights, zero where a filter has none. -> [L, D, L H]"""
    tap, height = torch.arange(tallest)[:, None], torch.arange(1, tallest + 1)
    exists = (tap < height).repeat_interleave(filters, dim=1).unsqueeze(1)  # [L, 1, L H]
    drawn = torch.randn(tallest, width, tallest * filters, dtype=torch.float64)
    return (drawn * exists).requires_grad_()


def slow_responses(visits: Tensor, taps: Tensor) -> Tensor:
    """Every prefix in a window of its own, every filter from every slot. -> [T, B, L H]"""
    tallest, filters = len(taps), taps.shape[2] // len(taps)
    prefixes = []
    for end in range(1, len(visits) + 1):
        window = functional.pad(visits[:end], (0, 0, 0, 0, 0, tallest - end))  # [L, B, D]
        strongest = []
        for column in range(taps.shape[2]):
            height = column // filters + 1
            filter_ = taps[:height, :, column].unsqueeze(1)  # [h, 1, D]
            responses = [
                (filter_ * window[slot : slot + height]).sum(dim=(0, 2))
                for slot in range(tallest - height + 1)
            ]
            strongest.append(torch.stack(responses).amax(dim=0))  # [B]
        prefixes.append(torch.stack(strongest, dim=1))
    return torch.stack(prefixes)


@pytest.mark.parametrize(("tallest", "slots"), [(7, 7), (7, 6), (7, 3), (8, 8), (5, 1), (1, 1)])
def test_responses_and_their_gradients_are_those_of_a_slow_loop(tallest: int, slots: int) -> None:
    torch.manual_seed(5)
    taps = drawn_taps(tallest=tallest)
    visits = torch.randn(slots, 3, 4, dtype=torch.float64, requires_grad=True)
    ours, expected = prefix_responses(visits, taps), slow_responses(visits, taps)
    torch.testing.assert_close(ours, expected)
    grad = torch.randn_like(ours)
    grads, expected_grads = (
        torch.autograd.grad((each * grad).sum(), [visits, taps]) for each in (ours, expected)
    )
    has_tap = taps != 0
    torch.testing.assert_close(grads[0], expected_grads[0])
    torch.testing.assert_close(grads[1] * has_tap, expected_grads[1] * has_tap)


def test_a_response_grows_tap_by_tap_and_stays_when_it_is_complete() -> None:
    # one filter of height 1 that sees the visit, one of height 2 that sees it and the next tenfold
    taps = torch.tensor([[[1.0, 1.0, 0.0]], [[0.0, 10.0, 0.0]], [[0.0, 0.0, 0.0]]])
    visits = torch.tensor([2.0, 3.0, -4.0]).reshape(3, 1, 1)
    responses = prefix_responses(visits, taps)[:, 0]
    # height 2: from slot 0 with one tap, or nothing; 2 + 30; still 32, more than 3 - 40
    torch.testing.assert_close(responses[:, 0], torch.tensor([2.0, 3.0, 3.0]))
    torch.testing.assert_close(responses[:, 1], torch.tensor([2.0, 32.0, 32.0]))


def test_a_negative_response_counts_as_zero_while_a_filter_may_begin_after_the_prefix() -> None:
    taps = torch.tensor([[[1.0, 1.0]], [[0.0, 1.0]]])  # of heights 1 and 2
    visits = torch.full((2, 1, 1), -1.0, requires_grad=True)
    responses = prefix_responses(visits, taps)[:, 0]
    torch.testing.assert_close(responses, torch.tensor([[0.0, -1.0], [-1.0, -2.0]]))
    (grad,) = torch.autograd.grad(responses[0, 0], visits)
    assert not grad.any()


def test_responses_keep_their_precision_where_layers_work_with_half_numbers() -> None:
    torch.manual_seed(5)
    taps, visits = drawn_taps(tallest=4).detach().float(), torch.randn(4, 2, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        responses = prefix_responses(visits, taps)
    torch.testing.assert_close(responses, prefix_responses(visits, taps), rtol=0, atol=0)
