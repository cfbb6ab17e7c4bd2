"""The table of pool sizes: HR@10 had the target stood among few places drawn at random."""

from typing import Final

from castpoi.evaluation.pool import PoolCurve, pool_curve
from castpoi.methods.outline import OURS
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import Cell, Group, Table

CUTOFF: Final = 10
METRIC: Final = f"HR@{CUTOFF}"


def pool_of(evidence: Evidence, city: CityEvidence) -> PoolCurve:
    """HR@10 by size of the pool."""
    contenders = [city.contenders[row.name] for row in evidence.rows_of(city)]
    return pool_curve(contenders, CUTOFF)


def pool_table(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Table:
    """One line a row, one column a pool size; the order of which pairs flips stands below."""
    labels = {row.name: row.label for row in evidence.rows_of(city)}
    ours = {row.name for row in evidence.rows_of(city) if row.role == OURS}
    highest = [max(own[at] for own in curve.values.values()) for at in range(len(curve.pools))]
    lines = [
        [
            Cell(text=labels[name], is_ours=name in ours),
            *(
                Cell(
                    text=f"{100 * value:.1f}",
                    value=100 * value,
                    is_best=value == best and len(labels) > 1,
                )
                for value, best in zip(values, highest, strict=True)
            ),
        ]
        for name, values in curve.values.items()
    ]
    return Table(
        name=f"pool-{city.slug}",
        title=f"Pool size on {city.name}",
        caption=(
            f"Expected {METRIC} in percent, in closed form from the ranks among all places; the "
            f"last column is the ranking among all {curve.pools[-1]:,}. {flip_words(curve, labels)}"
        ).strip(),
        columns=["Method", *(f"{pool:,}" for pool in curve.pools[:-1]), "all"],
        groups=[Group(heading="", rows=lines)],
    )


def flip_words(curve: PoolCurve, labels: dict[str, str]) -> str:
    """Which pairs a small pool puts in the wrong order, in a sentence."""
    if len(curve.values) == 1:
        return ""
    if not curve.flips:
        return f"No pair of methods changes its order between {curve.pools[0]:,} places and all."
    beaten: dict[str, list[str]] = {}
    for better, worse in curve.flips:
        beaten.setdefault(labels[better], []).append(labels[worse])
    pairs = "; ".join(f"{better} over {', '.join(worse)}" for better, worse in beaten.items())
    return f"Among all places, but not in a pool of {curve.pools[0]:,}: {pairs}."
