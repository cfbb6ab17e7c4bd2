"""Figure: can the softmax be taken at its word? Learned methods only."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Final

from castpoi.evaluation.beyond import Calibration
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.line_order import first_ours_then_strongest
from castpoi.reports.picture import SOFT, Picture, legend_below, line_styles, look, new_figure

_SHOWN: Final = 4
_SURELY: Final = 2.0
"""Standard errors beyond which a difference is hardly chance."""
_FEWEST: Final = 20
"""Targets of a bin that is drawn; the share of fewer is chance."""


def reliability_lines(evidence: Evidence, city: CityEvidence) -> Picture | None:
    """Share of right first places against the softmax; None where no learned result tells."""
    learned = [row for row in first_ours_then_strongest(evidence, city, "HR@1") if row.is_learned]
    measured = {
        row.name: [one.beyond.calibration for one in city.contenders[row.name].results]
        for row in learned
    }
    curves = {name: pooled(seeds) for name, seeds in measured.items()}
    drawn = [row for row in learned if curves[row.name]][:_SHOWN]
    if not drawn:
        return None
    with look():
        figure, (axes,) = new_figure(2.7)
        for row, style in zip(drawn, line_styles(len(drawn)), strict=True):
            axes.plot(
                [100 * sure for sure, _ in curves[row.name]],
                [100 * right for _, right in curves[row.name]],
                label=row.label,
                **style,
            )
        axes.plot([0, 100], [0, 100], color=SOFT, linewidth=0.8, linestyle=":", label="calibrated")
        axes.set_xlim(0, 102)
        axes.set_ylim(0, 102)
        axes.set_xlabel("softmax of the first place, %")
        axes.set_ylabel("right first places, %")
        legend_below(figure, axes, columns=2)
    return Picture(
        name=f"reliability-{city.slug}",
        finding=how_sure(drawn[0].label, measured[drawn[0].name]),
        caption="Ten bins of equal width by the softmax of the first place, all seeds together, "
        f"those of fewer than {_FEWEST} targets left out; on the dotted line a method is right as "
        "often as it says, above it more often.",
        figure=figure,
    )


def pooled(seeds: Sequence[Calibration]) -> list[tuple[float, float]]:
    """Mean softmax and share of right first places of each bin that is not too small."""
    lows = sorted({each.low for seed in seeds for each in seed.bins})
    curve = []
    for low in lows:
        bins = [each for seed in seeds for each in seed.bins if each.low == low]
        total = sum(each.n for each in bins)
        if total < _FEWEST:
            continue
        sure = sum(each.n * each.confidence for each in bins) / total
        right = sum(each.n * each.accuracy for each in bins) / total
        curve.append((sure, right))
    return curve


def how_sure(label: str, seeds: Sequence[Calibration]) -> str:
    """The calibration error, and its direction where that is more than chance."""
    sure, right = fmean(one.confidence for one in seeds), fmean(one.accuracy for one in seeds)
    error = f"{100 * fmean(one.expected_error for one in seeds):.1f} points"
    # seeds rank the same targets, so that more of them are not more targets
    chance = math.sqrt(right * (1 - right) / max(1, min(one.n for one in seeds)))
    if abs(sure - right) < _SURELY * chance:
        return f"On average {label} is right as often as it says; calibration error {error}"
    how = "too sure of itself" if sure > right else "more often right than it says"
    return f"{label} is {how}: calibration error {error}"
