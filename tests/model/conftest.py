"""Fixtures of the tests of the model."""

from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
from tests.training.conftest import town, town_folder  # noqa: F401
