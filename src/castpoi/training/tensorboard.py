"""Training curves for TensorBoard, an extra: what `log.jsonl` says of every epoch, as scalars."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from castpoi.core.errors import BadInput
from castpoi.training.trainer import Log


class TensorBoardLog:
    """A log that also draws the curves of a training."""

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
        """Note what has just happened; the numbers of an epoch become points of curves."""
        self.log.event(event, **fields)
        epoch = fields.get("epoch")
        if not isinstance(epoch, int):
            return
        for name, value in _numbers(fields):
            self.writer.add_scalar(name, value, epoch)
        self.writer.flush()


def _numbers(fields: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of an event, those of a group named `group/name`."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{name}/")
        elif isinstance(value, int | float) and name != "epoch":
            yield f"{before}{name}", float(value)
