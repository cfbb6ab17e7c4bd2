"""Figure: HR@10 against the size of the pool the target is ranked in."""

from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from castpoi.evaluation.pool import PoolCurve
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.line_order import first_ours_then_strongest
from castpoi.reports.picture import Picture, legend_below, line_styles, look, new_figure
from castpoi.reports.pool_table import METRIC


def pool_lines(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Picture | None:
    """One line a row on a logarithmic axis of pool sizes; None where there is one pool only."""
    if len(curve.pools) < 2:
        return None
    rows = first_ours_then_strongest(evidence, city, METRIC)
    with look():
        figure, (axes,) = new_figure(2.3 + 0.12 * ((len(rows) + 2) // 3))
        for row, style in zip(rows, line_styles(len(rows)), strict=True):
            values = [100 * value for value in curve.values[row.name]]
            axes.plot(curve.pools, values, label=row.label, **style)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(curve.pools))
        axes.xaxis.set_major_formatter(FixedFormatter(_tick_words(curve.pools)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("places in the pool")
        axes.set_ylabel(f"{METRIC}, %")
        legend_below(figure, axes, columns=3)
    return Picture(
        name=f"pool-{city.slug}",
        finding=_finding(curve),
        caption=f"Expected {METRIC} when the target stands among places drawn at random; "
        "the last point is the whole vocabulary.",
        figure=figure,
    )


def _finding(curve: PoolCurve) -> str:
    pool, methods = f"{curve.pools[0]:,}", len(curve.values)
    if methods == 1:
        (values,) = curve.values.values()
        small, whole = (f"{100 * values[at]:.0f} %" for at in (0, -1))
        return f"{METRIC} would be {small} in a pool of {pool}, and is {whole}"
    flips, pairs = len(curve.flips), methods * (methods - 1) // 2
    if not flips:
        return f"A pool of {pool} keeps the order of all methods"
    return f"A pool of {pool} puts {flips} of {pairs} pairs of methods in the wrong order"


def _tick_words(pools: list[int]) -> list[str]:
    """Sizes in few letters; one too near to the last is not written."""
    words = [f"{pool // 1000}k" if pool % 1000 == 0 else str(pool) for pool in pools[:-1]]
    if len(pools) > 1 and pools[-1] < 1.5 * pools[-2]:
        words[-1] = ""
    return [*words, f"all\n{pools[-1]:,}"]
