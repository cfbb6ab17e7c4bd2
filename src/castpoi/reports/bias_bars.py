"""Figure: what the reader has learned about the distance and the age of a visit."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from castpoi.methods.outline import Row
from castpoi.reports.evidence import CityEvidence
from castpoi.reports.learned_biases import LearnedBias, biases_of
from castpoi.reports.picture import INK, OURS, RIVAL, SOFT, Picture, look, new_figure, only

_TITLES: Final = {"spatial": "distance to candidate", "temporal": "age of the visit"}


def bias_bars(city: CityEvidence, row: Row) -> Picture | None:
    """Learned biases by bucket, mean over seeds with a dot a seed; None where none is at hand."""
    seeds = [biases_of(finding) for finding in city.of(row.name)]
    by_kind = {kind: [seed[kind] for seed in seeds if kind in seed] for kind in _TITLES}
    drawn = {kind: biases for kind, biases in by_kind.items() if biases}
    if not drawn:
        return None
    with look():
        figure, panels = new_figure(1.75, panels=len(drawn))
        for axes, (kind, biases) in zip(panels, drawn.items(), strict=True):
            means = _means(biases)
            at = list(range(len(means)))[::-1]
            axes.barh(at, means, height=0.62, color=OURS)
            if len(biases) > 1:
                for bias in biases:
                    axes.plot(bias.values, at, "o", color=INK, markersize=1.6)
            axes.plot(biases[0].start, at, "|", color=RIVAL, markersize=7, markeredgewidth=1.4)
            axes.set_yticks(at, biases[0].buckets)
            axes.tick_params(axis="y", length=0)
            axes.axvline(0, color=SOFT, linewidth=0.8)
            axes.set_title(_TITLES[kind])
            axes.set_xlabel("added to the logit")
        only("x", panels)
    return Picture(
        name=f"biases-{city.slug}",
        finding=_finding(drawn),
        caption=(
            "What the reader adds to the attention logit of a visit: left by its distance from the "
            "candidate, right by its age. A visit weighs e to that power times as much. Orange "
            "strokes: where training began, so only what is away from its stroke was learned. "
            f"{_seed_words(max(map(len, drawn.values())))}"
        ),
        figure=figure,
    )


def _means(biases: Sequence[LearnedBias]) -> list[float]:
    return [fmean(values) for values in zip(*(bias.values for bias in biases), strict=True)]


def _finding(drawn: dict[str, list[LearnedBias]]) -> str:
    """Where training moved the bias of distance most, if the seeds agree."""
    if "spatial" not in drawn:
        return "What the reader makes of the age of a visit"
    biases = drawn["spatial"]
    moved = [
        [value - start for value, start in zip(bias.values, bias.start, strict=True)]
        for bias in biases
    ]
    most = {max(range(len(one)), key=lambda at: abs(one[at])) for one in moved}
    if len(most) > 1:
        return "The seeds do not agree at which distance training moved the bias most"
    at = most.pop()
    mean = fmean(one[at] for one in moved)
    words = f"Training moved the bias of distance most at {biases[0].buckets[at]}"
    return f"{words}: {'up' if mean > 0 else 'down'} by {abs(mean):.2f}"


def _seed_words(seeds: int) -> str:
    return "One seed." if seeds == 1 else f"Mean over {seeds} seeds, a dot a seed."
