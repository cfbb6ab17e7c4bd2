"""Fixtures of the recommend tests: one thread, small runs."""

from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
from tests.run_fixtures import near_sighted, recommender, run_folder, unread  # noqa: F401
