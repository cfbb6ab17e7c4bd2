"""A suite in a folder that tests run as often as they like, with a stand-in for the worker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from castpoi.core.files import read_json
from castpoi.core.progress import SILENCE, Progress
from castpoi.experiments.estimate import PastRun
from castpoi.experiments.experiment import CityFolder, experiments_of
from castpoi.experiments.folder import SuiteFolder, SuiteStatus
from castpoi.experiments.runner import Failure, Pace, run_plan
from castpoi.experiments.suite import Suite
from castpoi.methods.outline import Row, TableOutline

GOOD = Row(name="good", label="Good", method="castpoi", role="ours", preset="fast")
COUNTED = Row(name="counted", label="Counted", method="revisit", role="heuristic")


def row(name: str, **settings: str) -> Row:
    return replace(GOOD, name=name, label=name, settings=settings)


class Bench:
    """A suite in a folder, run as often as a test likes."""

    def __init__(
        self, village: CityFolder, rows: Sequence[Row], root: Path, *, name: str = "own"
    ) -> None:
        self.suite = Suite(
            name=name,
            tables=(TableOutline(name=name, title=name.title(), rows=tuple(rows)),),
            seeds=(1, 2),
        )
        self.village = village
        self.folder = SuiteFolder(root)
        self.reported: list[str] = []
        self.report: Callable[[str], None] = self.reported.append
        self.progress: Progress = SILENCE

    def why(self, *, any_code: bool = False, only: Sequence[str] = ()) -> dict[str, str]:
        experiments = experiments_of(self.suite, [self.village], self.suite.seeds, only)
        plan = self.folder.plan(experiments, any_code=any_code)
        return {each.experiment.name: each.why for each in plan}

    def run(self, **pace: Any) -> list[Failure]:
        experiments = experiments_of(self.suite, [self.village], self.suite.seeds)
        plan = self.folder.plan(experiments, any_code=pace.get("any_code", False))
        return run_plan(
            plan,
            self.folder,
            status=lambda: SuiteStatus(self.folder, self.suite, plan),
            past_runs=[PastRun.of(record) for _, record in self.folder.found()],
            pace=Pace(threads=pace.pop("threads", 2), **pace),
            progress=self.progress,
            report=self.report,
            name="suite",
        )

    def states(self) -> dict[str, str]:
        experiments = read_json(self.folder.root / "suite.json")["experiments"]
        return {name: each["state"] for name, each in experiments.items()}

    def log(self, name: str) -> str:
        return (self.folder.root / "logs" / f"{name}.log").read_text()
