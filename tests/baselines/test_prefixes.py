from typing import Any, TypeVar

import pytest
import torch

from castpoi.baselines.hstu import Hstu, HstuConfig
from castpoi.baselines.sasrec import ESasRec, ESasRecConfig
from castpoi.baselines.sequence import SequenceModel
from tests.baselines.oracle import twin
from tests.baselines.prefixes import check_every_prefix, check_padding_is_not_read

Model = TypeVar("Model", bound=SequenceModel)


def model_of(name: str, **settings: Any) -> SequenceModel:
    ours = {"esasrec": small_esasrec, "hstu": small_hstu}
    return ours[name]() if name in ours else twin(name, **settings)


def small_esasrec() -> ESasRec:
    torch.manual_seed(4)
    config = ESasRecConfig(width=8, window=6, heads=2, feed_forward_width=16)
    return _moved(ESasRec(config=config, places=12))


def small_hstu() -> Hstu:
    torch.manual_seed(4)
    config = HstuConfig(width=8, window=6, heads=2, temperature=0.1)
    return _moved(Hstu(config=config, places=12))


def _moved(model: Model) -> Model:
    """The model with weights that are not small."""
    model.eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sasrec", {}),
        ("esasrec", {}),
        ("hstu", {}),
        ("core", {}),
        ("narm", {}),
        ("stamp", {"reads_padding": True}),
        ("stamp", {"reads_padding": False}),
    ],
)
def test_states_of_a_window_are_those_of_its_prefixes(name: str, settings: dict[str, Any]) -> None:
    model = model_of(name, **settings)
    check_every_prefix(model if name in ("narm", "stamp") else model.double())


@pytest.mark.parametrize("name", ["sasrec", "esasrec", "hstu", "core", "narm", "srgnn"])
def test_padding_is_not_read(name: str) -> None:
    check_padding_is_not_read(model_of(name))


def test_stamp_reads_padding_only_with_its_setting() -> None:
    check_padding_is_not_read(twin("stamp", reads_padding=False))
    with pytest.raises(AssertionError, match="not equal"):
        check_padding_is_not_read(twin("stamp", reads_padding=True))
