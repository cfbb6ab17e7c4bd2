"""Figures of what was learned: training curves, the reader's biases, and calibration."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

from castpoi.evaluation.beyond import Calibration
from castpoi.methods.outline import OURS
from castpoi.reports.analyses import METRIC
from castpoi.reports.biases import LearnedBias, biases_of, row_with_biases
from castpoi.reports.evidence import CityEvidence, Evidence, RowResult
from castpoi.reports.style import (
    BLUE,
    INK,
    ORANGE,
    SOFT,
    Chart,
    grid_along,
    legend_below,
    line_styles,
    look,
    new_figure,
)

_CURVES: Final = 4  # baselines with a training curve
_LONG: Final = 20  # epochs; beyond that the axis is logarithmic
_CALIBRATED: Final = 4
_FEWEST: Final = 20  # targets of a bin of calibration
_BIAS_TITLES: Final = {"spatial": "distance to candidate", "temporal": "age of the visit"}


def learning_curves(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """Validation HR@10 and loss by epoch, mean over seeds."""
    rows = evidence.in_order(city, METRIC)
    epochs = {row.name: [each.epochs for each in city.of(row.name)] for row in rows}
    logged = [row for row in rows if any(epochs[row.name])]
    ours = [row for row in logged if row.role == OURS]
    others = [row for row in logged if row.role != OURS]
    drawn, rest = [*ours, *others[:_CURVES]], others[_CURVES:]
    if not drawn:
        return None
    longest = max(len(seed) for row in drawn for seed in epochs[row.name])
    with look():
        figure, panels = new_figure(1.9 + 0.12 * ((len(drawn) + 2) // 3), panels=2)
        for row, style in zip(drawn, line_styles(len(drawn)), strict=True):
            every = 1 + max(map(len, epochs[row.name])) // _LONG
            style = {**style, "markersize": 2, "markevery": every, "label": row.label}
            for axes, value in zip(panels, (_validation, _loss), strict=True):
                means = mean_by_epoch(epochs[row.name], value)
                axes.plot(list(means), list(means.values()), **style)
        for axes, title in zip(panels, (f"validation {METRIC}, %", "training loss"), strict=True):
            axes.set_title(title)
            _epoch_axis(axes, longest)
        legend_below(figure, panels[0], columns=3)
    left_out = ", ".join(row.label for row in rest)
    return Chart(
        name=f"learning-{city.slug}",
        city=city.name,
        headline=_training_headline(drawn[0].label, city.of(drawn[0].name)),
        caption=f"{METRIC} on the validation split and loss after every epoch, mean over seeds up "
        "to the last epoch of the shortest training. Losses of different methods are not "
        "comparable." + (f" Not drawn, because weaker: {left_out}." if left_out else ""),
        figure=figure,
    )


def _epoch_axis(axes: Axes, longest: int) -> None:
    axes.set_xlabel("epoch")
    if longest > _LONG:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%d"))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _validation(epoch: Mapping[str, Any]) -> float | None:
    value = epoch.get("metrics", {}).get(METRIC)
    return None if value is None else 100 * float(value)


def _loss(epoch: Mapping[str, Any]) -> float | None:
    return float(epoch["loss"])


def mean_by_epoch(
    seeds: Sequence[Sequence[Mapping[str, Any]]],
    of: Callable[[Mapping[str, Any]], float | None],
) -> dict[int, float]:
    """Mean over the seeds by epoch, up to the last epoch of the shortest training."""
    values: dict[int, list[float]] = {}
    logged = [seed for seed in seeds if seed]
    for epoch in (epoch for seed in logged for epoch in seed):
        value = of(epoch)
        if value is not None:
            values.setdefault(int(epoch["epoch"]), []).append(value)
    whole = {epoch: own for epoch, own in sorted(values.items()) if len(own) == len(logged)}
    return {epoch: fmean(own) for epoch, own in whole.items()}


def _training_headline(label: str, results: Sequence[RowResult]) -> str:
    lengths = sorted({len(each.epochs) for each in results if each.epochs})
    kept = sorted({each.best_epoch for each in results if each.best_epoch is not None})
    trained = f"{label} trained for {_range(lengths)} epoch{'' if lengths == [1] else 's'}"
    return f"{trained}; the best was epoch {_range(kept)}" if kept else trained


def _range(numbers: Sequence[int]) -> str:
    """`4`, or `3 to 7`, of ascending numbers."""
    return " to ".join(str(each) for each in dict.fromkeys((numbers[0], numbers[-1])))


def bias_bars(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """The reader's biases by distance and age, mean over seeds."""
    row = row_with_biases(evidence, city)
    if row is None:
        return None
    seeds = [biases_of(each) for each in city.of(row.name)]
    by_kind = {kind: [seed[kind] for seed in seeds if kind in seed] for kind in _BIAS_TITLES}
    drawn = {kind: biases for kind, biases in by_kind.items() if biases}
    with look():
        figure, panels = new_figure(1.75, panels=len(drawn))
        for axes, (kind, biases) in zip(panels, drawn.items(), strict=True):
            _bias_panel(axes, biases)
            axes.set_title(_BIAS_TITLES[kind])
        grid_along("x", panels)
    most = max(map(len, drawn.values()))
    return Chart(
        name=f"biases-{city.slug}",
        city=city.name,
        headline=_bias_headline(drawn),
        caption="What the reader adds to the attention logit of a visit, by its distance from the "
        "candidate and by its age; e to that power multiplies its weight. Orange marks: the "
        "values before training."
        + (f" Mean over {most} seeds, a dot for each." if most > 1 else " One seed."),
        figure=figure,
    )


def _bias_panel(axes: Axes, biases: Sequence[LearnedBias]) -> None:
    means = [fmean(values) for values in zip(*(bias.values for bias in biases), strict=True)]
    at = list(range(len(means)))[::-1]
    axes.barh(at, means, height=0.62, color=BLUE)
    for bias in biases if len(biases) > 1 else ():
        axes.plot(bias.values, at, "o", color=INK, markersize=1.6)
    axes.plot(biases[0].start, at, "|", color=ORANGE, markersize=7, markeredgewidth=1.4)
    axes.set_yticks(at, biases[0].buckets)
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_xlabel("added to the logit")


def _bias_headline(drawn: Mapping[str, Sequence[LearnedBias]]) -> str:
    """The distance at which training changed the bias most, if the seeds agree."""
    if "spatial" not in drawn:
        return "The reader's bias by the age of a visit"
    biases = drawn["spatial"]
    changes = [
        [value - start for value, start in zip(bias.values, bias.start, strict=True)]
        for bias in biases
    ]
    most = {max(range(len(one)), key=lambda at: abs(one[at])) for one in changes}
    if len(most) > 1:
        return "The seeds differ in the distance at which training changed the bias most"
    (at,) = most
    mean = fmean(one[at] for one in changes)
    how = f"{'up' if mean > 0 else 'down'} by {abs(mean):.2f}"
    return f"Training changed the bias by distance most at {biases[0].buckets[at]}: {how}"


def reliability_lines(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """Share of right first places by the softmax, of learned methods."""
    learned = [row for row in evidence.in_order(city, "HR@1") if row.is_learned]
    measured = {
        row.name: [one.beyond.calibration for one in city.contenders[row.name].results]
        for row in learned
    }
    curves = {name: pooled(seeds) for name, seeds in measured.items()}
    drawn = [row for row in learned if curves[row.name]][:_CALIBRATED]
    if not drawn:
        return None
    with look():
        figure, (axes,) = new_figure(2.7)
        for row, style in zip(drawn, line_styles(len(drawn)), strict=True):
            sure, right = zip(*curves[row.name], strict=True)
            axes.plot([100 * x for x in sure], [100 * y for y in right], label=row.label, **style)
        axes.plot([0, 100], [0, 100], color=SOFT, linewidth=0.8, linestyle=":", label="calibrated")
        axes.set(xlim=(0, 102), ylim=(0, 102))
        axes.set_xlabel("softmax of the first place, %")
        axes.set_ylabel("right first places, %")
        legend_below(figure, axes, columns=2)
    return Chart(
        name=f"reliability-{city.slug}",
        city=city.name,
        headline=calibration_headline(drawn[0].label, measured[drawn[0].name]),
        caption="Ten bins of equal width by the softmax of the first place, all seeds together; "
        f"bins of fewer than {_FEWEST} targets are left out. Below the dotted line a method is "
        "overconfident.",
        figure=figure,
    )


def pooled(seeds: Sequence[Calibration]) -> list[tuple[float, float]]:
    """Mean softmax and share of right first places of each bin with enough targets."""
    curve = []
    for low in sorted({each.low for seed in seeds for each in seed.bins}):
        bins = [each for seed in seeds for each in seed.bins if each.low == low]
        total = sum(each.n for each in bins)
        if total >= _FEWEST:
            sure = sum(each.n * each.confidence for each in bins) / total
            curve.append((sure, sum(each.n * each.accuracy for each in bins) / total))
    return curve


def calibration_headline(label: str, seeds: Sequence[Calibration]) -> str:
    """The calibration error, and its direction where it is beyond two standard errors."""
    sure, right = fmean(one.confidence for one in seeds), fmean(one.accuracy for one in seeds)
    error = f"calibration error {100 * fmean(one.expected_error for one in seeds):.1f} points"
    # seeds rank the same targets: more seeds are not more targets
    chance = math.sqrt(right * (1 - right) / max(1, min(one.n for one in seeds)))
    if abs(sure - right) < 2 * chance:
        return f"{label} is calibrated on average; {error}"
    return f"{label} is {'overconfident' if sure > right else 'underconfident'}; {error}"
