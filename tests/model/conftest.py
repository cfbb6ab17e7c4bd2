"""What the tests of the model share."""

from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
