import torch
from torch import Tensor

from castpoi.baselines.prefix_weights import prefix_weights


def plain_weights(queries: Tensor, keys: Tensor, weigh: Tensor) -> Tensor:
    """The same in one formula, with all T x T x H sums at once."""
    match = (queries.unsqueeze(2) + keys.unsqueeze(1)).sigmoid()  # [B, T, T, H]
    return (match @ weigh[0]).tril()  # [B, T, T]


def drawn(*shape: int) -> Tensor:
    random_numbers = torch.Generator().manual_seed(3)
    return torch.randn(*shape, generator=random_numbers, dtype=torch.float64, requires_grad=True)


def test_a_visit_is_weighed_by_how_it_meets_the_last() -> None:
    # sigmoid(0) = 1/2 and sigmoid(log 3) = 3/4, each times 4
    queries, keys = torch.zeros(1, 2, 1), torch.tensor([[[1.0], [3.0]]]).log()
    weights = prefix_weights(queries, keys, torch.tensor([[4.0]]))
    torch.testing.assert_close(weights, torch.tensor([[[2.0, 0.0], [2.0, 3.0]]]))


def test_weights_and_their_gradients_are_those_of_the_plain_formula() -> None:
    parts = drawn(3, 7, 5), drawn(3, 7, 5).flip(0), drawn(1, 5)
    grad = drawn(3, 7, 7)
    ours, expected = prefix_weights(*parts), plain_weights(*parts)
    torch.testing.assert_close(ours, expected)
    for got, wanted in zip(
        torch.autograd.grad((ours * grad).sum(), parts, retain_graph=True),
        torch.autograd.grad((expected * grad).sum(), parts, retain_graph=True),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


def test_no_visit_after_the_last_has_a_weight() -> None:
    weights = prefix_weights(drawn(2, 6, 4), drawn(2, 6, 4), drawn(1, 4))
    assert not weights.triu(diagonal=1).any()
    assert weights.tril().count_nonzero() == 2 * 21


def test_weights_keep_their_precision_where_layers_work_with_half_numbers() -> None:
    queries, weigh = drawn(2, 6, 4).detach().float(), drawn(1, 4).detach().float()
    keys = queries.flip(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = prefix_weights(queries, keys, weigh)
    torch.testing.assert_close(weights, prefix_weights(queries, keys, weigh), rtol=0, atol=0)
