"""What the tests of training share: one thread, and a town to learn from."""

from pathlib import Path

import pytest

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them


@pytest.fixture(scope="session")
def town_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic town of 24 people and some 50 places, prepared."""
    folder = tmp_path_factory.mktemp("town")
    config = SynthesisConfig(users=24, places=60, days=25)
    checkins = synthesize(config, seed=5)
    source = write_checkins(checkins, folder / "checkins.csv", config=config, seed=5)
    prepare([source], folder / "city", Preparation(accept_rhythm=True))
    return folder / "city"


@pytest.fixture(scope="session")
def town(town_folder: Path) -> City:
    return City.load(town_folder)
