"""All errors that castpoi raises on purpose.

    CastPoiError
    ├── BadInput: BadRows, UnknownLayout, WrongClock, UnknownUser, UnknownPlace, NoCandidateLeft
    ├── BrokenFolder, DownloadFailed, TooFewCheckins
    ├── UnknownMethod, BadScores, TrainingDiverged
    └── BrokenStore, RepeatedKey, ModelNotReady, Overloaded, ServiceFailed

A message has one or two sentences: the thing, the value, the rule, how to fix it. The command line
prints it and ends with exit code 1.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class CastPoiError(Exception):
    """An error that the user can fix; its message says how."""


class BadInput(CastPoiError):
    """A file, a row or an option is not valid."""


class BadRows(BadInput):
    """Rows of a source break a rule."""


class UnknownLayout(BadInput):
    """The source has none of the known layouts."""


class WrongClock(BadInput):
    """The local hours of the check-ins are implausible."""


class UnknownUser(BadInput):
    """No user with this id has visits."""


class UnknownPlace(BadInput):
    """No place of the run has this id."""


class NoCandidateLeft(BadInput):
    """The filters of a request exclude every place."""


class BrokenFolder(CastPoiError):
    """A city, run or result folder is missing, damaged or belongs to another split."""


class DownloadFailed(CastPoiError):
    """A public data set could not be downloaded."""


class TooFewCheckins(CastPoiError):
    """No check-ins are left to split or to rank."""


class UnknownMethod(CastPoiError):
    """No ranking method has this name."""


class BadScores(CastPoiError):
    """A ranker returned scores that cannot be ranked."""


class TrainingDiverged(CastPoiError):
    """A loss or gradient is infinite or not a number."""


class BrokenStore(CastPoiError):
    """The visit store failed."""


class RepeatedKey(CastPoiError):
    """One idempotency key was used for two different visits."""


class ModelNotReady(CastPoiError):
    """The service is still loading its run."""


class Overloaded(CastPoiError):
    """Too many requests are waiting."""


class ServiceFailed(CastPoiError):
    """A service refused a request of `castpoi.Client`, or did not answer."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'train'? ` for a misspelt word; empty if no known word is close."""
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f"did you mean '{close[0]}'? " if close else ""


@contextmanager
def extra_for(feature: str, extra: str) -> Iterator[None]:
    """Imports of a feature in this block; a missing package raises `BadInput` with its extra."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise BadInput(
            f"{feature} needs {problem.name}, which is not installed; "
            f"pip install 'castpoi[{extra}]'"
        ) from problem
