"""All positions and all prefixes of histories, for tests of features and training."""

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories


def every_position(histories: Histories) -> NDArray[np.int64]:
    """All visits by their number."""
    return np.arange(len(histories.place))


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
