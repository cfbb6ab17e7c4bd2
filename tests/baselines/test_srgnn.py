import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from castpoi.baselines.srgnn import Neighbours, SrGnn, SrGnnConfig, VisitGraph
from tests.baselines.oracle import TOLERANCE, twin


def windows_of(histories: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Right-padded windows, and their lengths."""
    most = max(1, *map(len, histories))
    rows = torch.tensor([each + [0] * (most - len(each)) for each in histories])
    return rows, torch.tensor([len(each) for each in histories])


def neighbours_of(side: Neighbours, node: int) -> list[int]:
    ends = [*side.starts.tolist(), len(side.node)]
    return side.node[ends[node] : ends[node + 1]].tolist()


def test_a_place_receives_the_mean_of_its_neighbours_or_zero() -> None:
    graph = VisitGraph.of(*windows_of([[3, 7, 5, 7]]))  # nodes 3, 5, 7
    vectors = torch.tensor([[1.0], [2.0], [4.0]])
    assert graph.before.mean(vectors).tolist() == [[0.0], [4.0], [1.5]]
    assert graph.after.mean(vectors).tolist() == [[4.0], [4.0], [2.0]]


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(1, 5), max_size=7), min_size=1, max_size=4))
def test_graphs_are_those_of_a_slow_loop_over_visits(histories: list[list[int]]) -> None:
    if not any(histories):
        return
    graph = VisitGraph.of(*windows_of(histories))
    nodes = [(owner, row) for owner, each in enumerate(histories) for row in sorted(set(each))]
    assert list(zip(graph.owner.tolist(), graph.row.tolist(), strict=True)) == nodes
    assert graph.visits.tolist() == [histories[owner].count(row) for owner, row in nodes]
    for owner, each in enumerate(histories):
        if each:
            assert nodes[int(graph.last[owner])] == (owner, each[-1])
    for number, (owner, row) in enumerate(nodes):
        moves = list(zip(histories[owner], histories[owner][1:], strict=False))
        before = sorted({nodes.index((owner, begin)) for begin, end in moves if end == row})
        after = sorted({nodes.index((owner, end)) for begin, end in moves if begin == row})
        assert neighbours_of(graph.before, number) == before
        assert neighbours_of(graph.after, number) == after


@pytest.mark.parametrize("histories", [[[], []], [[], [4, 2], []]])
def test_an_empty_history_has_a_zero_state_and_disturbs_no_other(
    histories: list[list[int]],
) -> None:
    model = twin("srgnn")
    states = model.state(*windows_of(histories))
    assert torch.isfinite(states).all()
    for state, each in zip(states, histories, strict=True):
        alone = model.state(*windows_of([each]))[0] if each else torch.zeros(8)
        torch.testing.assert_close(state, alone, rtol=0, atol=TOLERANCE)


def test_with_two_steps_a_message_travels_two_moves() -> None:
    rows, lengths = windows_of([[3, 7, 9]])
    for steps, is_received in ((1, False), (2, True)):
        model = twin("srgnn", steps=steps)
        assert isinstance(model, SrGnn)
        with torch.no_grad():
            model.weight.weight.zero_()  # so that the last visit alone is seen
        grad = torch.autograd.grad(model.state(rows, lengths).sum(), model.place.weight)[0]
        assert bool(grad[3].any()) is is_received
        assert grad[7].any()


def test_srgnn_begins_within_the_bound_of_its_width() -> None:
    torch.manual_seed(1)
    model = SrGnn(config=SrGnnConfig.preset("paper"), places=500)
    for weight in model.parameters():
        assert 0.09 < float(weight.detach().abs().max()) <= 1 / 8
    assert model.place.weight[0].abs().max() == 0
