"""In which order rows are drawn: ours, the strongest other, the rest from best to worst."""

from castpoi.methods.outline import Row
from castpoi.reports.evidence import CityEvidence, Evidence, mean_of


def first_ours_then_strongest(evidence: Evidence, city: CityEvidence, metric: str) -> list[Row]:
    """The rows of a city in the order of line styles; without ours the best comes first."""
    ours = evidence.ours(city)
    others = [row for row in evidence.rows_of(city) if row != ours]
    others.sort(key=lambda row: -mean_of(city.contenders[row.name], metric))
    return others if ours is None else [ours, *others]
