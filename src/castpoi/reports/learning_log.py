"""What the log of a run tells about its training."""

from typing import Any

from castpoi.reports.finding import Finding


def epochs_of(finding: Finding) -> list[dict[str, Any]]:
    """The finished epochs of a run, in order."""
    return [event for event in finding.events if event.get("event") == "epoch finished"]


def kept_epoch(finding: Finding) -> int | None:
    """The epoch whose weights were kept; None where the log does not say."""
    finished = (event for event in finding.events if event.get("event") == "training finished")
    return next((event.get("best_epoch") for event in finished), None)


def parameters_of(finding: Finding) -> int | None:
    """How many numbers were learned; None where the log does not say."""
    started = (event for event in finding.events if event.get("event") == "training started")
    return next((event.get("parameters") for event in started), None)
