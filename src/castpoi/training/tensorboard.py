"""A training log that also draws curves in TensorBoard (extra `tensorboard`)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from castpoi.core.errors import BadInput
from castpoi.methods.run import RunLog


class TensorBoardLog(RunLog):
    """The log of a run; the numbers of every epoch become points of curves in a folder."""

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as missing:
            raise BadInput(
                "TensorBoard is not installed; `pip install 'castpoi[tensorboard]'`, or train "
                "without --tensorboard (log.jsonl holds the same numbers)"
            ) from missing
        super().__init__(path)
        self.writer = SummaryWriter(str(folder))

    def event(self, event: str, **fields: object) -> None:
        """Append an event, and add the numbers of an epoch to the curves."""
        super().event(event, **fields)
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
