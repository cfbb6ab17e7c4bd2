import json
import sys
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.training.train import TensorBoardLog
from tests.messages import refused


def test_the_numbers_of_an_epoch_become_points_of_curves(tmp_path: Path) -> None:
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="castpoi[tensorboard] is not installed",
    )
    log = TensorBoardLog(tmp_path)
    log.event("training started", parameters=7)
    log.event("epoch finished", epoch=1, at_utc="today", loss=3.5, metrics={"MRR": 0.25})
    log.event("epoch finished", epoch=2, at_utc="today", loss=2.5, metrics={"MRR": 0.5})
    curves = reading.EventAccumulator(str(tmp_path))
    curves.Reload()
    assert sorted(curves.Tags()["scalars"]) == ["loss", "metrics/MRR"]
    assert [(point.step, point.value) for point in curves.Scalars("loss")] == [(1, 3.5), (2, 2.5)]
    assert [point.value for point in curves.Scalars("metrics/MRR")] == [0.25, 0.5]
    events = [json.loads(line)["event"] for line in log.lines]
    assert events == ["training started", "epoch finished", "epoch finished"]


def test_without_tensorboard_the_error_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with refused(BadInput):
        TensorBoardLog(tmp_path)
