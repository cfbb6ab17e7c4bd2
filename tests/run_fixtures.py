"""Small trained runs, as session fixtures of the recommend and serving tests."""

from pathlib import Path

import pytest

from castpoi.recommend.recommender import Recommender, load
from tests.serving.small_run import OUR_PARTS, small_run


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CaST-POI run of the small city, the city beside it; not to be changed."""
    return small_run(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def near_sighted(tmp_path_factory: pytest.TempPathFactory) -> Recommender:
    """The same of a model with parts of our own, among them a distance gate."""
    return load(small_run(tmp_path_factory.mktemp("next"), **OUR_PARTS))


@pytest.fixture(scope="session")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Recommender:
    """The same without a reader, as castpoi-next is."""
    parts = OUR_PARTS | {"candidate_conditioning": False}
    return load(small_run(tmp_path_factory.mktemp("unread"), **parts))


@pytest.fixture(scope="session")
def recommender(run_folder: Path) -> Recommender:
    return load(run_folder)
