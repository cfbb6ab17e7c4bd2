"""All figures of a city, by kind; those that the evidence does not allow are left out."""

from collections.abc import Sequence

from castpoi.evaluation.pool import PoolCurve
from castpoi.evaluation.strata import Stratum
from castpoi.reports.ablation_bars import ablation_bars
from castpoi.reports.bias_bars import bias_bars
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.learned_biases import row_with_biases
from castpoi.reports.learning_curves import learning_curves
from castpoi.reports.picture import Picture
from castpoi.reports.pool_lines import pool_lines
from castpoi.reports.reliability_lines import reliability_lines
from castpoi.reports.strata_dots import strata_dots


def draw_all(
    evidence: Evidence, city: CityEvidence, strata: Sequence[Stratum], curve: PoolCurve | None
) -> dict[str, Picture]:
    """Draw what can be drawn of a city."""
    ablations = [table for table in evidence.tables if table.is_ablation]
    reader = row_with_biases(evidence, city)
    drawn = {
        **{table.name: ablation_bars(table, city) for table in ablations},
        "pool": None if curve is None else pool_lines(evidence, city, curve),
        "strata": strata_dots(evidence, city, strata),
        "learning": learning_curves(evidence, city),
        "biases": None if reader is None else bias_bars(city, reader),
        "reliability": reliability_lines(evidence, city),
    }
    return {kind: picture for kind, picture in drawn.items() if picture is not None}
