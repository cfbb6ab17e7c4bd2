"""Figure: how training went, epoch by epoch, from the logs of the runs."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.learning_log import epochs_of
from castpoi.reports.line_order import first_ours_then_strongest
from castpoi.reports.picture import Picture, legend_below, line_styles, look, new_figure

_METRIC: Final = "HR@10"
_LONG: Final = 20  # epochs; beyond that the axis is logarithmic, since methods differ so much


def learning_curves(evidence: Evidence, city: CityEvidence) -> Picture | None:
    """Validation HR@10 and loss by epoch, mean over seeds; None where no log is there."""
    rows = first_ours_then_strongest(evidence, city, _METRIC)
    epochs = {row.name: [epochs_of(finding) for finding in city.of(row.name)] for row in rows}
    drawn = [row for row in rows if any(epochs[row.name])]
    if not drawn:
        return None
    with look():
        figure, (metric, loss) = new_figure(1.9 + 0.12 * ((len(drawn) + 2) // 3), panels=2)
        for row, style in zip(drawn, line_styles(len(drawn)), strict=True):
            style = {**style, "markersize": 2, "markevery": _sparse(epochs[row.name])}
            validation = _mean_by_epoch(epochs[row.name], _validation)
            losses = _mean_by_epoch(epochs[row.name], lambda epoch: float(epoch["loss"]))
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
        finding=_finding(drawn[0].label, epochs[drawn[0].name]),
        caption=f"{_METRIC} on the validation part and loss after every epoch, mean over seeds. "
        "Losses of different methods are of different kinds and cannot be compared.",
        figure=figure,
    )


def _validation(epoch: Mapping[str, Any]) -> float | None:
    value = epoch.get("metrics", {}).get(_METRIC)
    return None if value is None else 100 * float(value)


def _mean_by_epoch(seeds: Sequence[Sequence[Mapping[str, Any]]], of: Any) -> dict[int, float]:
    """By epoch the mean over the seeds that came so far."""
    values: dict[int, list[float]] = {}
    for epoch in (epoch for seed in seeds for epoch in seed):
        value = of(epoch)
        if value is not None:
            values.setdefault(int(epoch["epoch"]), []).append(value)
    return {epoch: fmean(values[epoch]) for epoch in sorted(values)}


def _sparse(seeds: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """Every how many epochs a mark is drawn: some twenty on a line, so that it stays a line."""
    return 1 + max(map(len, seeds)) // _LONG


def _finding(label: str, seeds: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    lengths = sorted({len(seed) for seed in seeds if seed})
    words = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    trained = f"{label} trained for {words} epoch{'' if lengths == [1] else 's'}"
    validation = _mean_by_epoch(seeds, _validation)
    if not validation:
        return trained
    best = max(validation, key=lambda epoch: validation[epoch])
    return f"{trained}; validation is best after epoch {best}"
