"""Every cheap term: its gradient, and its values for some candidates."""

import pytest
import torch

from castpoi.model.terms import CHEAP_TERMS
from castpoi.model.terms.base import Term
from tests.model.small import ALL_PLACES, batch_of, small_config, trained_model, walk

CONFIG = small_config("next")
HISTORIES = [walk(14, seed=1), [], walk(3, seed=2)]


@pytest.mark.parametrize("name", CHEAP_TERMS)
def test_the_gradient_of_a_term_is_that_of_autograd(name: str) -> None:
    model = trained_model(CONFIG)
    term, encoded = model.cheap_terms[name], model.encode(batch_of(CONFIG, *HISTORIES))
    assert isinstance(term, Term)
    compact, index = term.compact(encoded).detach().requires_grad_(), term.index(encoded)
    scores = torch.zeros(len(HISTORIES), len(ALL_PLACES))
    term.add_to_(scores, compact, index)
    grad = torch.randn(scores.shape, generator=torch.Generator().manual_seed(0))
    (expected,) = torch.autograd.grad(scores, compact, grad)
    torch.testing.assert_close(term.reduce(grad, compact.detach(), index), expected)


@pytest.mark.parametrize("name", CHEAP_TERMS)
def test_a_term_of_candidates_is_that_of_all_places(name: str) -> None:
    model = trained_model(CONFIG)
    term, encoded = model.cheap_terms[name], model.encode(batch_of(CONFIG, *HISTORIES))
    assert isinstance(term, Term)
    scores = torch.zeros(len(HISTORIES), len(ALL_PLACES))
    term.add_to_(scores, term.compact(encoded), term.index(encoded))
    assert scores.abs().max() > 0.01
    shared, own = torch.tensor([6, 0]), torch.tensor([[0, 6], [1, 1], [5, 2]])
    torch.testing.assert_close(term.at(encoded, shared), scores[:, shared])
    torch.testing.assert_close(term.at(encoded, own), scores.gather(1, own))
