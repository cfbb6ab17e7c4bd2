"""All prefixes of some trajectories, each as a history of its own."""

import numpy as np

from castpoi.checkins.trajectory import Histories


def prefixes(histories: Histories) -> Histories:
    """Every history that ends with a visit, in the order of these visits."""
    ends = np.arange(len(histories.place)) + 1
    begins = np.repeat(histories.bounds[:-1], histories.lengths)
    visits = np.concatenate([np.arange(*pair) for pair in zip(begins, ends, strict=True)])
    return Histories(
        place=histories.place[visits],
        at_us=histories.at_us[visits],
        offset_minutes=histories.offset_minutes[visits],
        bounds=np.r_[0, np.cumsum(ends - begins)],
    )
