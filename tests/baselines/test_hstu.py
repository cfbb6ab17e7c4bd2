import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from castpoi.baselines.hstu import Hstu, HstuBlock
from castpoi.baselines.sequence import SequenceRanker
from castpoi.checkins.trajectory import Histories
from tests.baselines.prefixes import LENGTHS, windows_for
from tests.baselines.test_prefixes import small_hstu

HOUR = 3600


def test_states_are_those_of_one_sum_per_visit_and_head() -> None:
    model = small_hstu().double()
    states = model.states(windows_for(model), LENGTHS)
    for window, length, found in zip(windows_for(model), LENGTHS.tolist(), states, strict=True):
        expected = _states_by_loops(model, window[:length])
        torch.testing.assert_close(found[:length], expected)


def _states_by_loops(model: Hstu, window: Tensor) -> Tensor:
    place, seconds = window[:, 0], window[:, 1].tolist()
    visits = [
        math.sqrt(8) * model.place.weight[row] + model.slot.weight[slot]
        for slot, row in enumerate(place.tolist())
    ]
    for block in model.blocks:
        assert isinstance(block, HstuBlock)
        parts = [functional.silu(block.widen.weight @ _normal(visit)) for visit in visits]
        new = []
        for t, visit in enumerate(visits):
            heads = [torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)]
            for j in range(t + 1):
                bucket = int(math.log(max(1, seconds[t] - seconds[j])) / 0.301)
                bias = block.position[t - j] + block.time[bucket]
                for head in (0, 1):
                    some = slice(4 * head, 4 * head + 4)
                    value, query, key = parts[j][8:16], parts[t][16:24], parts[j][24:32]
                    weight = functional.silu(query[some] @ key[some] + bias) / 6
                    heads[head] = heads[head] + weight * value[some]
            gated = parts[t][:8] * _normal(torch.cat(heads))
            new.append(visit + block.out.weight @ gated + block.out.bias)
        visits = new
    return torch.stack([visit / visit.norm() for visit in visits])


def _normal(vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt()


def test_a_score_is_the_cosine_of_state_and_place_divided_by_the_temperature() -> None:
    model = small_hstu().double()
    scores = model.scores(model.state(windows_for(model), LENGTHS))
    assert float(scores.detach().abs().max()) <= 10 + 1e-9
    state, place = model.state(windows_for(model), LENGTHS)[1], model.place.weight[7]
    cosine = functional.cosine_similarity(state, place, dim=0)
    torch.testing.assert_close(scores[1, 7], 10 * cosine)


def test_gaps_between_visits_matter_and_the_date_does_not() -> None:
    ranker = SequenceRanker(small_hstu(), method="hstu")

    def scores(*hours: int) -> np.ndarray:
        at_us = 10**6 * HOUR * np.array(hours)
        place, offset = np.array([2, 6, 2]), np.zeros(3, dtype=np.int64)
        history = Histories.of_one(place=place, at_us=at_us, offset_minutes=offset)
        return ranker.score(ranker.encode(history))

    np.testing.assert_array_equal(scores(0, 5, 30), scores(1000, 1005, 1030))
    assert np.abs(scores(0, 5, 30) - scores(0, 25, 30)).max() > 1e-3


def test_the_time_of_the_next_visit_is_never_read() -> None:
    ranker = SequenceRanker(small_hstu(), method="hstu")
    place, at_us = np.array([2, 6]), np.array([0, 10**6 * HOUR])
    bounds, offset = np.array([0, 2]), np.zeros(2, dtype=np.int64)
    states = [
        ranker.encode(
            Histories(
                place=place, at_us=at_us, offset_minutes=offset, bounds=bounds, next_at_us=later
            )
        )
        for later in (None, np.array([10**6 * 2 * HOUR]))
    ]
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)
