"""Fixtures of the recommend tests: one thread."""

from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
