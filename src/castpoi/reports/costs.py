"""What methods cost, next to how good they are: from COSTS, written by `benchmarks.costs`.

The section is left out where the folder of the results has no such file.
"""

from collections.abc import Mapping
from typing import Final

from castpoi.core.files import read_json
from castpoi.methods.outline import OURS
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import Cell, Table, count, number, percent

COSTS: Final = "costs.json"

Costs = Mapping[str, Mapping[str, float]]


def costs_of(evidence: Evidence, city: CityEvidence) -> Costs:
    """The measured costs of the rows that have a result on a city."""
    path = evidence.folder / COSTS
    measured = read_json(path).get(city.name, {}) if path.is_file() else {}
    return {row.name: measured[row.name] for row in evidence.rows if row.name in measured}


def cost_table(evidence: Evidence, city: CityEvidence) -> Table | None:
    """One line for each row with a measured cost, the fastest training first."""
    costs = costs_of(evidence, city)
    rows = [row for row in evidence.rows if row.name in costs and city.has(row)]
    rows.sort(key=lambda row: costs[row.name].get("training_s", 0.0))
    lines = [
        {
            "Method": Cell(row.label, is_ours=row.role == OURS),
            "MRR": percent(city.mean(row.name, "MRR")),
            "HR@10": percent(city.mean(row.name, "HR@10")),
            "Parameters": count(int(costs[row.name]["parameters"]) or None),
            "Epochs": number(costs[row.name].get("epochs") or None, 1),
            "Epoch, CPU s": number(costs[row.name].get("epoch_s"), 1),
            "Training, CPU s": number(costs[row.name].get("training_s"), 1),
            "Peak memory, GB": number(costs[row.name]["peak_gb"]),
            "Answer, CPU ms": number(costs[row.name]["request_ms"], 1),
        }
        for row in rows
    ]
    if not lines:
        return None
    return Table.of_lines(
        {"": lines}, name=f"costs-{city.slug}", title=f"Costs on {city.name}", caption=notes.COSTS
    )
