"""What a learned method is asked for, and what it may tell while it learns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from castpoi.checkins.city import City
from castpoi.core.progress import Progress
from castpoi.methods.ranker import SavableRanker


class Log(Protocol):
    """Someone who notes the events of a training."""

    def event(self, event: str, **fields: object) -> None:
        """Note what has just happened."""


class NoLog:
    """A log that nobody keeps."""

    def event(self, event: str, **fields: object) -> None:
        """Forget what has just happened."""


def say_nothing(sentence: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a learned method shall be trained; each method reads what concerns it."""

    method: str = "castpoi"
    """Name of the method to train; `fit` fills it in."""
    preset: str | None = None
    """One of the method's presets; None: its default, which `fit` fills in."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Changes to the preset, by name, as a person writes them."""
    device: str = "cpu"
    """cpu, cuda or mps."""
    workshop: Path | None = None
    """Folder for checkpoints; None: none are kept."""
    resume: bool = True
    """Continue from a checkpoint of the very same training, if there is one."""
    say: Callable[[str], None] = say_nothing
    """Tells a person what they should know at once."""

    @property
    def asked_for(self) -> list[str]:
        """The options that somebody has set, in words of the command line."""
        named = [("--preset", self.preset is not None), ("--device", self.device != "cpu")]
        return [name for name, is_set in named if is_set] + list(self.settings)


class Trainer(Protocol):
    """How a learned method is trained; named in `methods.Method.trainer`."""

    def __call__(
        self,
        city: City,
        *,
        part: str,
        seed: int,
        log: Log,
        progress: Progress,
        options: TrainingOptions,
    ) -> SavableRanker[Any]:
        """Learn from the train part so as to foretell `part`; one seed gives one ranker."""
