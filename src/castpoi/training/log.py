"""The log of a training, and its curves in TensorBoard."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from castpoi.core.errors import BadInput


class Log(Protocol):
    """Receives the events of a training."""

    def event(self, event: str, **fields: object) -> None:
        """Record an event."""


class NoLog:
    """A log that records nothing."""

    def event(self, event: str, **fields: object) -> None:
        """Ignore an event."""


class TensorBoardLog:
    """A log that also draws the numbers of every epoch as curves (extra `tensorboard`)."""

    def __init__(self, log: Log, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as missing:
            raise BadInput(
                "TensorBoard is not installed; `pip install 'castpoi[tensorboard]'`, or train "
                "without --tensorboard (log.jsonl holds the same numbers)"
            ) from missing
        self.log = log
        self.writer = SummaryWriter(str(folder))

    def event(self, event: str, **fields: object) -> None:
        """Record an event; the numbers of an epoch become points of curves."""
        self.log.event(event, **fields)
        epoch = fields.get("epoch")
        if not isinstance(epoch, int):
            return
        for name, value in _numbers(fields):
            self.writer.add_scalar(name, value, epoch)
        self.writer.flush()


def _numbers(fields: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of an event; those of a group are named `group/name`."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{name}/")
        elif isinstance(value, int | float) and name != "epoch":
            yield f"{before}{name}", float(value)
