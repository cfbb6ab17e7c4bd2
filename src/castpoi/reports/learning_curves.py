"""Figure: how training went, epoch by epoch, from the logs of the runs."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

from castpoi.methods.outline import OURS, Row
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.finding import Finding
from castpoi.reports.learning_log import epochs_of, kept_epoch
from castpoi.reports.line_order import first_ours_then_strongest
from castpoi.reports.picture import Picture, legend_below, line_styles, look, new_figure

_METRIC: Final = "HR@10"
_OTHERS: Final = 4
"""Rivals with a line, the best ones; more cannot be told apart at the width of a column."""
_LONG: Final = 20  # epochs; beyond that the axis is logarithmic, since methods differ so much


def learning_curves(evidence: Evidence, city: CityEvidence) -> Picture | None:
    """Validation HR@10 and loss by epoch, mean over seeds; None where no log is there."""
    rows = first_ours_then_strongest(evidence, city, _METRIC)
    epochs = {row.name: [epochs_of(finding) for finding in city.of(row.name)] for row in rows}
    logged = [row for row in rows if any(epochs[row.name])]
    ours = [row for row in logged if row.role == OURS]
    others = [row for row in logged if row.role != OURS]
    drawn = [*ours, *others[:_OTHERS]]
    if not drawn:
        return None
    with look():
        figure, (metric, loss) = new_figure(1.9 + 0.12 * ((len(drawn) + 2) // 3), panels=2)
        for row, style in zip(drawn, line_styles(len(drawn)), strict=True):
            style = {**style, "markersize": 2, "markevery": _sparse(epochs[row.name])}
            validation = mean_by_epoch(epochs[row.name], _validation)
            losses = mean_by_epoch(epochs[row.name], lambda epoch: float(epoch["loss"]))
            metric.plot(list(validation), list(validation.values()), label=row.label, **style)
            loss.plot(list(losses), list(losses.values()), **style)
        longest = max(len(seed) for row in drawn for seed in epochs[row.name])
        for axes, title in ((metric, f"validation {_METRIC}, %"), (loss, "training loss")):
            axes.set_title(title)
            axes.set_xlabel("epoch")
            if longest > _LONG:
                axes.set_xscale("log")
                axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
                axes.xaxis.set_major_formatter(FormatStrFormatter("%d"))
                axes.xaxis.set_minor_locator(NullLocator())
            else:
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_below(figure, metric, columns=3)
    return Picture(
        name=f"learning-{city.slug}",
        finding=_finding(drawn[0].label, city.of(drawn[0].name)),
        caption=f"{_METRIC} on the validation part and loss after every epoch, mean over seeds, as "
        f"far as all of them were trained. {_left_out_words(others[_OTHERS:])}Losses of different "
        "methods are of different kinds and cannot be compared.",
        figure=figure,
    )


def _validation(epoch: Mapping[str, Any]) -> float | None:
    value = epoch.get("metrics", {}).get(_METRIC)
    return None if value is None else 100 * float(value)


def mean_by_epoch(seeds: Sequence[Sequence[Mapping[str, Any]]], of: Any) -> dict[int, float]:
    """By epoch the mean over the seeds, up to the end of the first that stopped."""
    values: dict[int, list[float]] = {}
    told = [seed for seed in seeds if seed]
    for epoch in (epoch for seed in told for epoch in seed):
        value = of(epoch)
        if value is not None:
            values.setdefault(int(epoch["epoch"]), []).append(value)
    return {
        epoch: fmean(values[epoch]) for epoch in sorted(values) if len(values[epoch]) == len(told)
    }


def _sparse(seeds: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """Every how many epochs a mark is drawn: some twenty on a line, so that it stays a line."""
    return 1 + max(map(len, seeds)) // _LONG


def _left_out_words(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    return f"Not drawn, since less good: {', '.join(row.label for row in rows)}. "


def _finding(label: str, findings: Sequence[Finding]) -> str:
    lengths = sorted({len(epochs) for each in findings if (epochs := epochs_of(each))})
    kept = sorted({epoch for each in findings if (epoch := kept_epoch(each)) is not None})
    trained = f"{label} trained for {_range(lengths)} epoch{'' if lengths == [1] else 's'}"
    return f"{trained}; kept was that after epoch {_range(kept)}" if kept else trained


def _range(numbers: Sequence[int]) -> str:
    """`4`, or `3 to 7`, of ascending numbers."""
    return " to ".join(str(each) for each in dict.fromkeys((numbers[0], numbers[-1])))
