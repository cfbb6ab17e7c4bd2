import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from castpoi.baselines.srgnn import Neighbours, SrGnn, SrGnnConfig, VisitGraph
from tests.baselines.oracle import TOLERANCE, check_loss, check_scores, load_oracle
from tests.baselines.prefixes import check_padding_is_not_read

NAMED = {
    "place.weight": "item_embedding.weight",
    "from_before.weight": "gnn.linear_edge_in.weight",
    "from_before.bias": "gnn.linear_edge_in.bias",
    "from_after.weight": "gnn.linear_edge_out.weight",
    "from_after.bias": "gnn.linear_edge_out.bias",
    "bias_before": "gnn.b_iah",
    "bias_after": "gnn.b_ioh",
    "update.weight_ih": "gnn.w_ih",
    "update.weight_hh": "gnn.w_hh",
    "update.bias_ih": "gnn.b_ih",
    "update.bias_hh": "gnn.b_hh",
    "query.weight": "linear_one.weight",
    "query.bias": "linear_one.bias",
    "key.weight": "linear_two.weight",
    "key.bias": "linear_two.bias",
    "weight.weight": "linear_three.weight",
    "out.weight": "linear_transform.weight",
    "out.bias": "linear_transform.bias",
}


def oracles_twin(*, steps: int = 1) -> SrGnn:
    oracle = load_oracle("srgnn")
    config = SrGnnConfig(width=8, window=6, steps=steps, padding_class=True)
    model = SrGnn(config=config, places=oracle.places)
    oracle.load_into(model, NAMED)
    with torch.no_grad():
        # RecBole's middle gate says how much is new, torch's how much stays
        for weight in model.update.parameters():
            weight[8:16].neg_()
    return model


def windows_of(histories: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Right-padded windows, and their lengths."""
    most = max(1, *map(len, histories))
    rows = torch.tensor([each + [0] * (most - len(each)) for each in histories])
    return rows, torch.tensor([len(each) for each in histories])


def neighbours_of(side: Neighbours, node: int) -> list[int]:
    ends = [*side.starts.tolist(), len(side.node)]
    return side.node[ends[node] : ends[node + 1]].tolist()


def test_srgnn_scores_as_the_oracle_does() -> None:
    check_scores(oracles_twin(), load_oracle("srgnn"))


def test_srgnn_learns_from_the_loss_of_the_oracle() -> None:
    check_loss(oracles_twin(), load_oracle("srgnn"))


def test_srgnn_never_reads_padding() -> None:
    check_padding_is_not_read(oracles_twin())


def test_the_graphs_of_a_batch_worked_by_hand() -> None:
    graph = VisitGraph.of(*windows_of([[9, 9], [], [3, 7, 3, 9]]))
    assert graph.row.tolist() == [9, 3, 7, 9]
    assert graph.owner.tolist() == [0, 2, 2, 2]
    assert graph.visits.tolist() == [2, 2, 1, 1]
    assert graph.last.tolist()[::2] == [0, 3]
    assert [neighbours_of(graph.before, node) for node in range(4)] == [[0], [2], [1], [1]]
    assert [neighbours_of(graph.after, node) for node in range(4)] == [[0], [2, 3], [1], []]


def test_a_place_hears_the_mean_of_its_neighbours_and_nothing_where_it_has_none() -> None:
    graph = VisitGraph.of(*windows_of([[3, 7, 5, 7]]))  # nodes 3, 5, 7
    vectors = torch.tensor([[1.0], [2.0], [4.0]])
    assert graph.before.mean(vectors).tolist() == [[0.0], [4.0], [1.5]]
    assert graph.after.mean(vectors).tolist() == [[4.0], [4.0], [2.0]]


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
    model = oracles_twin()
    states = model.state(*windows_of(histories))
    assert torch.isfinite(states).all()
    for state, each in zip(states, histories, strict=True):
        alone = model.state(*windows_of([each]))[0] if each else torch.zeros(8)
        torch.testing.assert_close(state, alone, rtol=0, atol=TOLERANCE)


def test_with_two_steps_news_travels_two_moves() -> None:
    rows, lengths = windows_of([[3, 7, 9]])
    for steps, is_heard in ((1, False), (2, True)):
        model = oracles_twin(steps=steps)
        with torch.no_grad():
            model.weight.weight.zero_()  # so that the last visit alone is seen
        slope = torch.autograd.grad(model.state(rows, lengths).sum(), model.place.weight)[0]
        assert bool(slope[3].any()) is is_heard
        assert slope[7].any()


def test_srgnn_begins_within_the_bound_of_its_width() -> None:
    torch.manual_seed(1)
    model = SrGnn(config=SrGnnConfig.preset("paper"), places=500)
    for weight in model.parameters():
        assert 0.09 < float(weight.detach().abs().max()) <= 1 / 8
    assert model.place.weight[0].abs().max() == 0
