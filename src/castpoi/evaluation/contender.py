"""A contender: one method, or one variant of it, with the results of all its seeds.

Analyses compare contenders on the same targets: whatever order the results came in, their ranks
are joined by check-in id, and a target that one of them lacks is an error.

Shapes: S seeds, N targets.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from castpoi.core.errors import BadInput
from castpoi.evaluation.compare import join_ranks, rank_column
from castpoi.evaluation.result import Result


@dataclass(frozen=True)
class Contender:
    """A name and one result a seed."""

    name: str
    results: tuple[Result, ...]
    is_counted: bool = False
    """Whether it only counts: it has no seeds, and its one result is its mean over any number."""

    def __post_init__(self) -> None:
        if not self.results:
            raise BadInput(f"{self.name} has no result; name at least one result folder for it")
        seeds = [result.seed for result in self.results]
        twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
        if twice is not None:
            raise BadInput(
                f"{self.name} has two results with seed {twice}, and a copy is no second seed; "
                "leave one out"
            )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of its trainings, ascending; none where it only counts."""
        return () if self.is_counted else tuple(sorted(result.seed for result in self.results))

    def with_seeds(self, seeds: Collection[int]) -> "Contender":
        """The same with the results of these seeds only."""
        return replace(self, results=tuple(each for each in self.results if each.seed in seeds))


def with_equal_seeds(one: Contender, other: Contender) -> tuple[Contender, Contender]:
    """Both with the same number of seeds: those they share first, then the lowest.

    A mean over more seeds is less extreme, which a signed-rank test takes for better
    (docs/statistics.md). A contender that only counts has no seeds to be equalled.
    """
    if one.is_counted or other.is_counted:
        return one, other
    number = min(len(one.seeds), len(other.seeds))
    shared = set(one.seeds) & set(other.seeds)
    ours, theirs = (
        each.with_seeds(sorted(each.seeds, key=lambda seed: (seed not in shared, seed))[:number])
        for each in (one, other)
    )
    return ours, theirs


def ranks_side_by_side(contenders: Sequence[Contender]) -> dict[str, NDArray[np.float64]]:
    """The ranks of each contender by name, targets in ascending order of check-in. [S, N]"""
    if not contenders:
        raise BadInput("there is no contender; name at least one result folder")
    names = [contender.name for contender in contenders]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"two contenders are named {twice}; give every contender its own name")
    joined = join_ranks([result for contender in contenders for result in contender.results])
    columns = iter(range(joined.width))
    return {
        contender.name: np.stack(
            [joined[rank_column(next(columns))].to_numpy() for _ in contender.results]
        )  # [S, N]
        for contender in contenders
    }
