"""The service's log: events with fields, one per line; no user id, no coordinate, no key."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOGGER: Final = logging.getLogger("castpoi.serving")

_OURS: Final = Path(__file__).parents[1]
"""The folder of the package; its name alone may match others, such as /opt/castpoi."""


def log_event(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event as `event name=value name=value`."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, " ".join([event, *(f"{name}={value}" for name, value in fields.items())]))


def log_failure(event: str, problem: BaseException, **fields: object) -> None:
    """Log an error by its class and the lines of its traceback.

    Its text is left out: it may quote a request.
    """
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_OURS)] or list(frames)
    lines = ">".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in ours)
    log_event(event, level=logging.ERROR, kind=type(problem).__name__, lines=lines, **fields)


@contextmanager
def logged_to_stderr() -> Iterator[None]:
    """Within the block, write the service's log and the server's warnings to stderr."""
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    loggers = {LOGGER: logging.INFO, logging.getLogger("uvicorn.error"): logging.WARNING}
    former = {logger: (logger.level, logger.propagate) for logger in loggers}
    for logger, level in loggers.items():
        logger.addHandler(shown)
        logger.setLevel(level)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagates) in former.items():
            logger.removeHandler(shown)
            logger.setLevel(level)
            logger.propagate = propagates
