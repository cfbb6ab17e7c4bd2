"""Small trained runs: session fixtures, made once for the recommend and the serving tests.

Imports are within the fixtures, so that tests without a run do not load torch.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from castpoi.recommend.recommender import Recommender


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CaST-POI run of the small city, with the city next to it; not to be changed."""
    from tests.serving.small_run import small_run

    return small_run(tmp_path_factory.mktemp("paper-run", numbered=False))


@pytest.fixture(scope="session")
def recommender(run_folder: Path) -> "Recommender":
    """The recommender of that run."""
    from castpoi.recommend.recommender import load

    return load(run_folder)


@pytest.fixture(scope="session")
def near_sighted(tmp_path_factory: pytest.TempPathFactory) -> "Recommender":
    """The same with a distance gate and visit-pattern features."""
    from castpoi.recommend.recommender import load
    from tests.serving.small_run import OUR_PARTS, small_run

    return load(small_run(tmp_path_factory.mktemp("next-run", numbered=False), **OUR_PARTS))


@pytest.fixture(scope="session")
def unread(tmp_path_factory: pytest.TempPathFactory) -> "Recommender":
    """The same without a reader, as castpoi-next is."""
    from castpoi.recommend.recommender import load
    from tests.serving.small_run import OUR_PARTS, small_run

    parts = OUR_PARTS | {"candidate_conditioning": False}
    return load(small_run(tmp_path_factory.mktemp("unread-run", numbered=False), **parts))
