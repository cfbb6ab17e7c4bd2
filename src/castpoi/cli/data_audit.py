"""`castpoi data audit`: check a city for leakage, wrong clocks and oddities."""

from dataclasses import asdict
from pathlib import Path

import click

from castpoi.checkins.audit import audit as audit_city
from castpoi.checkins.city import City
from castpoi.cli.console import Console, speaks


@click.command(epilog="Exit code 0 if nothing failed, 1 if a check failed.")
@click.argument("city", type=click.Path(path_type=Path))
@speaks
def audit(console: Console, city: Path) -> None:
    """Check a CITY for leakage, wrong clocks and oddities.

    Checks: fingerprint, time order, target in its own past, unseen users or places, split overlap,
    share of revisits, rhythm, local clock, teleports, popularity skew.
    """
    with console.progress() as progress, progress.task("auditing"):
        outcomes = audit_city(City.load(city, verify=False))
    marks = {"passed": "passed", "warned": "WARNED", "failed": "FAILED"}
    rows = [(each.check, marks[each.status], each.finding) for each in outcomes]
    console.table(("check", "outcome", "finding"), rows, left=3)
    counts = {
        status: sum(each.status == status for each in outcomes)
        for status in ("passed", "warned", "failed")
    }
    console.say(", ".join(f"{count} {status}" for status, count in counts.items()))
    console.result({"checks": [asdict(each) for each in outcomes], **counts})
    if counts["failed"]:
        raise click.exceptions.Exit(1)
