"""Figures of results on a city: ablation, pool size, strata, and what was learned.

A figure that the results do not allow is left out.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from textwrap import fill
from typing import Any, Final

from matplotlib import ticker
from matplotlib.axes import Axes

from castpoi.evaluation.beyond import Calibration
from castpoi.evaluation.pool import PoolCurve
from castpoi.evaluation.strata import Stratum
from castpoi.methods.outline import OURS, Row, TableOutline
from castpoi.reports.analyses import AXES, METRIC, LearnedBias, biases_of, stratum_name
from castpoi.reports.costs import costs_of
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.significance import without_name
from castpoi.reports.style import (
    BLUE,
    GREY,
    INK,
    LINE,
    ORANGE,
    SOFT,
    Chart,
    from_top,
    grid_along,
    legend_below,
    line_styles,
    look,
    new_figure,
)

_LABEL_CHARACTERS: Final = 26  # of a line; longer labels would leave no space for the bars
_COLOURED: Final = 3  # baselines with a colour; more would hide our methods
_STRATA_ROWS: Final = 3
_CURVES: Final = 4  # baselines with a training curve
_LONG: Final = 20  # epochs; beyond that the axis is logarithmic
_CALIBRATED: Final = 4
_MIN_TARGETS: Final = 20  # targets of a bin of calibration
_BIAS_TITLES: Final = {"spatial": "distance to candidate", "temporal": "age of the visit"}


def ablation_bars(outline: TableOutline, city: CityEvidence) -> Chart | None:
    """Change of each variant from the full model in percentage points."""
    full = next((row for row in outline.rows if row.role == OURS), None)
    variants = [row for row in outline.rows if row.role != OURS and city.has(row)]
    if full is None or not city.has(full) or not variants:
        return None
    labels = [without_name(row.label, full.label) for row in variants]
    wrapped = [fill(label, _LABEL_CHARACTERS) for label in labels]
    lines = sum(label.count("\n") + 1 for label in wrapped)
    with look():
        figure, panels = new_figure(0.75 + 0.26 * lines, panels=2, share_y=True)
        for axes, metric in zip(panels, (METRIC, "MRR"), strict=True):
            _ablation_panel(axes, city, (full, variants), metric)
        panels[0].set_yticks(from_top(variants), wrapped)
        grid_along("x", panels)
    return Chart(
        name=f"{outline.name}-{city.slug}",
        city=city.name,
        headline=f"Change of {METRIC} and MRR from {full.label}",
        caption="Over equally many seeds, in percentage points; gains are orange. Whiskers: sample "
        "standard deviation of the variant over seeds; grey band: that of the full model.",
        figure=figure,
    )


def _ablation_panel(
    axes: Axes, city: CityEvidence, rows: tuple[Row, list[Row]], metric: str
) -> None:
    full, variants = rows
    changes = [100 * city.change(full.name, row.name, metric) for row in variants]
    deviations = [city.spread(row.name, metric).std for row in variants]
    band = city.spread(full.name, metric).std
    if band is not None:
        axes.axvspan(-100 * band, 100 * band, color=LINE, linewidth=0)
    axes.barh(
        from_top(variants),
        changes,
        height=0.62,
        color=[BLUE if change < 0 else ORANGE for change in changes],
        xerr=[math.nan if each is None else 100 * each for each in deviations],
        error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 1.8},
    )
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_title(f"{metric} ({100 * city.mean(full.name, metric):.1f} full)")
    axes.set_xlabel("change, points")
    axes.margins(x=0.08)
    axes.set_ylim(-0.5, len(variants) - 0.5)  # equally thick bars for any number of variants
    axes.tick_params(axis="y", length=0)


def pool_lines(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Chart | None:
    """HR@10 by the size of the pool that the target is ranked in."""
    if len(curve.pools) < 2:
        return None
    coloured, grey = _ours_and_first(evidence.in_order(city, METRIC), _COLOURED)
    values = {name: [100 * value for value in own] for name, own in curve.values.items()}
    with look():
        figure, (axes,) = new_figure(2.6 + 0.12 * ((len(coloured) + 2) // 3))
        for row, style in zip(coloured, line_styles(len(coloured)), strict=True):
            axes.plot(curve.pools, values[row.name], label=row.label, **style)
        for row in grey:
            axes.plot(curve.pools, values[row.name], color=GREY, linewidth=0.7, zorder=2)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.FixedLocator(curve.pools))
        axes.xaxis.set_major_formatter(ticker.FixedFormatter(_pool_names(curve.pools)))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel("places in the pool")
        axes.set_ylabel(f"{METRIC}, %")
        unnamed = _name_ends(axes, {row.label: values[row.name][-1] for row in grey}, curve)
        legend_below(figure, axes, columns=3)
    pairs = len(curve.values) * (len(curve.values) - 1) // 2
    flips = f"A pool of {curve.pools[0]:,} reverses {len(curve.flips)} of {pairs} pairs of methods"
    return Chart(
        name=f"pool-{city.slug}",
        city=city.name,
        headline=flips if pairs else f"{METRIC} by the size of the pool",
        caption=f"Expected {METRIC} if the target were ranked among places drawn at random; the "
        "last point is the whole vocabulary."
        + (f" Grey lines without a name: {', '.join(unnamed)}." if unnamed else ""),
        figure=figure,
    )


def _ours_and_first(rows: Sequence[Row], number: int) -> tuple[list[Row], list[Row]]:
    """Our methods and the first few others, and the rest."""
    others = [row for row in rows if row.role != OURS]
    ours = [row for row in rows if row.role == OURS]
    return [*ours, *others[:number]], others[number:]


def _name_ends(axes: Axes, ends: Mapping[str, float], curve: PoolCurve) -> list[str]:
    """Label the ends of lines where there is space; the labels without space."""
    low, high = axes.get_ylim()
    taken: list[float] = []
    unnamed = []
    for label, end in ends.items():
        if any(abs(end - other) < 0.04 * (high - low) for other in taken):
            unnamed.append(label)
            continue
        taken.append(end)
        at: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(label, (curve.pools[-1], end), color=SOFT, fontsize=5.5, **at)
    return unnamed


def _pool_names(pools: Sequence[int]) -> list[str]:
    """Short names of pool sizes; one too close to the last has none."""
    names = [f"{pool // 1000}k" if pool % 1000 == 0 else str(pool) for pool in pools[:-1]]
    if pools[-1] < 1.5 * pools[-2]:
        names[-1] = ""
    return [*names, f"all\n{pools[-1]:,}"]


def strata_dots(evidence: Evidence, city: CityEvidence, found: Sequence[Stratum]) -> Chart | None:
    """HR@10 by stratum, of our method and the strongest others."""
    strata = [stratum for stratum in found if stratum.n]
    rows = evidence.in_order(city, METRIC)[:_STRATA_ROWS]
    at, headings = _stratum_positions(strata)
    with look():
        figure, (axes,) = new_figure(0.7 - 0.148 * (min(at) - 1))
        for number, (row, style) in enumerate(zip(rows, line_styles(len(rows)), strict=True)):
            shift = 0.2 * ((len(rows) - 1) / 2 - number)  # so that no dot covers another
            _stratum_dots(axes, (row, style), strata, [each + shift for each in at])
        labels = [f"{stratum_name(stratum)}  ({stratum.n:,})" for stratum in strata]
        axes.set_yticks(at, labels)
        for tick, stratum in zip(axes.get_yticklabels(), strata, strict=True):
            tick.set_color(SOFT if stratum.is_too_small else tick.get_color())
        across = axes.get_yaxis_transform()
        bold: dict[str, Any] = {"ha": "right", "va": "center", "fontweight": "bold"}
        for axis, position in headings.items():
            axes.text(-0.02, position, AXES[axis], transform=across, fontsize=6, **bold)
        axes.tick_params(axis="y", length=0)
        axes.set(xlim=(-3, 103), ylim=(min(at) - 0.7, 0.7), xlabel=f"{METRIC}, %")
        grid_along("x", [axes])
        axes.grid(visible=True, axis="y", linewidth=0.3)
        legend_below(figure, axes, columns=3)
    means = {stratum.name: stratum.metrics[rows[0].name][METRIC].mean for stratum in found}
    revisit, new = (100 * (means[name] or 0.0) for name in ("revisit", "new"))
    return Chart(
        name=f"strata-{city.slug}",
        city=city.name,
        headline=f"{rows[0].label} has {revisit:.0f} % of revisits and {new:.0f} % of new places "
        "in its top ten",
        caption=f"{METRIC} by kind of target, mean over seeds; the number of targets in brackets. "
        "Popularity: check-ins of the place in train. Faint: fewer than 100 targets.",
        figure=figure,
    )


def _stratum_positions(strata: Sequence[Stratum]) -> tuple[list[float], dict[str, float]]:
    """Positions of the strata and of the heading of every axis, from 0 downwards."""
    at: list[float] = []
    headings: dict[str, float] = {}
    for stratum in strata:
        headings.setdefault(stratum.axis, -float(len(at) + len(headings)))
        at.append(-float(len(at) + len(headings)))
    return at, headings


def _stratum_dots(
    axes: Axes, line: tuple[Row, dict[str, Any]], strata: Sequence[Stratum], at: Sequence[float]
) -> None:
    """The dots of a row; those of small strata are faint."""
    row, style = line
    style = {**style, "linestyle": "none", "linewidth": 0}
    for is_small, faint in ((False, {"label": row.label}), (True, {"alpha": 0.35})):
        dots = [
            (100 * (stratum.metrics[row.name][METRIC].mean or 0.0), position)
            for stratum, position in zip(strata, at, strict=True)
            if stratum.is_too_small == is_small
        ]
        axes.plot([x for x, _ in dots], [y for _, y in dots], **{**style, **faint})


def learning_curves(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """Validation HR@10 and loss by epoch, mean over seeds."""
    rows = evidence.in_order(city, METRIC)
    epochs = {row.name: [each.epochs for each in city.of(row.name) if each.epochs] for row in rows}
    drawn, rest = _ours_and_first([row for row in rows if epochs[row.name]], _CURVES)
    if not drawn:
        return None
    longest = max(len(seed) for row in drawn for seed in epochs[row.name])
    with look():
        figure, panels = new_figure(1.9 + 0.12 * ((len(drawn) + 2) // 3), panels=2)
        for row, style in zip(drawn, line_styles(len(drawn)), strict=True):
            every = 1 + max(map(len, epochs[row.name])) // _LONG
            style = {**style, "markersize": 2, "markevery": every, "label": row.label}
            for axes, (value, scale) in zip(panels, ((METRIC, 100), ("loss", 1)), strict=True):
                at, means = mean_by_epoch(epochs[row.name], value)
                axes.plot(at, [scale * mean for mean in means], **style)
        for axes, title in zip(panels, (f"validation {METRIC}, %", "training loss"), strict=True):
            axes.set_title(title)
            _epoch_axis(axes, longest)
        legend_below(figure, panels[0], columns=3)
    left_out = ", ".join(row.label for row in rest)
    return Chart(
        name=f"learning-{city.slug}",
        city=city.name,
        headline=f"Validation {METRIC} and training loss by epoch",
        caption=f"{METRIC} on the validation split and loss after every epoch, mean over seeds up "
        "to the last epoch of the shortest training. Losses of different methods are not "
        "comparable." + (f" Not drawn, because weaker: {left_out}." if left_out else ""),
        figure=figure,
    )


def _epoch_axis(axes: Axes, longest: int) -> None:
    axes.set_xlabel("epoch")
    if longest > _LONG:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 3.0)))
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%d"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))


def mean_by_epoch(
    seeds: Sequence[Sequence[Mapping[str, Any]]], name: str
) -> tuple[list[int], list[float]]:
    """Epochs and means over the seeds, up to the last epoch of the shortest training."""
    values: dict[int, list[float]] = {}
    for epoch in (epoch for seed in seeds for epoch in seed):
        value = {**epoch, **epoch.get("metrics", {})}.get(name)
        if value is not None:
            values.setdefault(int(epoch["epoch"]), []).append(value)
    whole = sorted(epoch for epoch, own in values.items() if len(own) == len(seeds))
    return whole, [fmean(values[epoch]) for epoch in whole]


def bias_bars(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """The reader's biases by distance and age, mean over seeds; of our first method with them."""
    ours = [row for row in evidence.rows_of(city) if row.role == OURS]
    all_seeds = ([biases_of(each) for each in city.of(row.name)] for row in ours)
    seeds = next((seeds for seeds in all_seeds if any(seeds)), [])
    by_kind = {kind: [seed[kind] for seed in seeds if kind in seed] for kind in _BIAS_TITLES}
    drawn = {kind: biases for kind, biases in by_kind.items() if biases}
    if not drawn:
        return None
    with look():
        figure, panels = new_figure(1.75, panels=len(drawn))
        for axes, (kind, biases) in zip(panels, drawn.items(), strict=True):
            _bias_panel(axes, biases)
            axes.set_title(_BIAS_TITLES[kind])
        grid_along("x", panels)
    return Chart(
        name=f"biases-{city.slug}",
        city=city.name,
        headline="Biases of the reader by the distance and age of a visit",
        caption="What the reader adds to the attention logit of a visit, by its distance from the "
        "candidate and by its age; e to that power multiplies its weight. Orange marks: the "
        "values before training. Bars: mean over seeds, with a dot for each of several seeds.",
        figure=figure,
    )


def _bias_panel(axes: Axes, biases: Sequence[LearnedBias]) -> None:
    means = [fmean(values) for values in zip(*(bias.values for bias in biases), strict=True)]
    at = from_top(means)
    axes.barh(at, means, height=0.62, color=BLUE)
    for bias in biases if len(biases) > 1 else ():
        axes.plot(bias.values, at, "o", color=INK, markersize=1.6)
    axes.plot(biases[0].start, at, "|", color=ORANGE, markersize=7, markeredgewidth=1.4)
    axes.set_yticks(at, biases[0].buckets)
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_xlabel("added to the logit")


def reliability_lines(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """Share of right first places by the softmax, of learned methods."""
    learned = [row for row in evidence.in_order(city, "HR@1") if row.has_seeds]
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
    error = fmean(one.expected_error for one in measured[drawn[0].name])
    return Chart(
        name=f"reliability-{city.slug}",
        city=city.name,
        headline=f"The calibration error of {drawn[0].label} is {100 * error:.1f} points",
        caption="Ten bins of equal width by the softmax of the first place, all seeds together; "
        f"bins of fewer than {_MIN_TARGETS} targets are left out. Below the dotted line a method "
        "is overconfident.",
        figure=figure,
    )


def cost_dots(evidence: Evidence, city: CityEvidence) -> Chart | None:
    """MRR against the CPU time of training; rows that no faster row beats have a name."""
    costs = costs_of(evidence, city)
    rows = [row for row in evidence.rows_of(city) if "training_s" in costs.get(row.name, {})]
    if len(rows) < 2:
        return None
    rows.sort(key=lambda row: costs[row.name]["training_s"])
    best = -math.inf
    with look():
        figure, (axes,) = new_figure(2.6)
        for row in rows:
            seconds, mrr = costs[row.name]["training_s"], 100 * city.mean(row.name, "MRR")
            is_ours, is_best, best = row.role == OURS, mrr > best, max(best, mrr)
            axes.plot(seconds, mrr, "o", color=BLUE if is_ours else GREY, markersize=4)
            if is_ours or is_best:
                above = (9 if is_ours else 4) if is_best else -11  # apart from the best so far
                axes.annotate(
                    row.label, (seconds, mrr), xytext=(0, above), textcoords="offset points",
                    ha="left" if row == rows[0] else "right", fontsize="small",
                )  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda seconds, _: f"{seconds:g}"))
        axes.margins(x=0.1, y=0.12)
        axes.set_xlabel("training, CPU seconds on one core")
        axes.set_ylabel("MRR, %")
    return Chart(
        name=f"costs-{city.slug}",
        city=city.name,
        headline="Accuracy against the time of training",
        caption="One point for each method, ours in blue. A point with a name is ours, or no "
        "method that trains faster has a higher MRR.",
        figure=figure,
    )


def pooled(seeds: Sequence[Calibration]) -> list[tuple[float, float]]:
    """Mean softmax and share of right first places of each bin with enough targets."""
    curve = []
    for low in sorted({each.low for seed in seeds for each in seed.bins}):
        bins = [each for seed in seeds for each in seed.bins if each.low == low]
        total = sum(each.n for each in bins)
        if total >= _MIN_TARGETS:
            sure = sum(each.n * each.confidence for each in bins) / total
            curve.append((sure, sum(each.n * each.accuracy for each in bins) / total))
    return curve
