"""The outcome of one attack: how often it was tried, and what was lost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_SENTENCES: Final = 20
"""The most sentences kept per attack."""


@dataclass(kw_only=True)
class Outcome:
    """One row of the table: an attack, its trials, and the trials that lost something."""

    attack: str
    tried: int = 0
    lost: int = 0
    losses: list[str] = field(default_factory=list)
    """One sentence for each loss; at most twenty."""
    skipped: str | None = None
    """Why the attack could not be tried on this machine."""

    @property
    def withstood(self) -> int:
        """Trials that lost nothing."""
        return self.tried - self.lost

    def trial(self, problems: Sequence[str] = ()) -> None:
        """Count one trial, with its losses."""
        self.trials(1, problems[:1])
        self.losses = [*self.losses, *problems[1:]][:_SENTENCES]

    def trials(self, tried: int, problems: Sequence[str] = ()) -> None:
        """Count many trials at once; each problem is a trial that lost something."""
        self.tried += tried
        self.lost += len(problems)
        self.losses = [*self.losses, *problems][:_SENTENCES]

    def to_dict(self) -> dict[str, Any]:
        """The row in JSON."""
        row: dict[str, Any] = {
            "attack": self.attack,
            "tried": self.tried,
            "withstood": self.withstood,
            "lost": self.lost,
        }
        if self.losses:
            row["losses"] = self.losses
        if self.skipped is not None:
            row["skipped"] = self.skipped
        return row

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "Outcome":
        """Read the row that `to_dict` returned."""
        return cls(
            attack=row["attack"],
            tried=row["tried"],
            lost=row["lost"],
            losses=list(row.get("losses", ())),
            skipped=row.get("skipped"),
        )


def skipped(attack: str, reason: object) -> Outcome:
    """An attack that this machine does not allow."""
    return Outcome(attack=attack, skipped=str(reason))


def lost_anything(outcomes: Iterable[Outcome]) -> bool:
    """Whether any trial lost something."""
    return any(outcome.lost for outcome in outcomes)
