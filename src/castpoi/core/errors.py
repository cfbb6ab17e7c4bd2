"""Every error castpoi raises on purpose.

    CastPoiError
    ├── BadInput          a file, a row or an option is not what it should be
    │   ├── BadRows       rows of a source break a rule (file, row number, way out)
    │   ├── UnknownLayout the source is none of the layouts we read
    │   ├── WrongClock    the local hours are not those of human life
    │   ├── UnknownUser   nobody of this name has visits here
    │   └── NoCandidateLeft the filters of a request leave no place to recommend
    ├── BrokenFolder      a city, run or result folder is missing, damaged or of another split
    ├── DownloadFailed    a public data set could not be fetched
    ├── TooFewCheckins    nothing is left to split or to rank
    ├── UnknownMethod     no ranking method has this name
    ├── BadScores         a ranker gave scores that cannot be ranked
    ├── TrainingDiverged  a loss or gradient became infinite or no number
    ├── BrokenStore       the visit store does not answer as it should
    ├── RepeatedKey       a client's key names two different visits
    ├── ModelNotReady     the service is still loading its run
    └── Overloaded        more requests wait than the service may keep

Each message is one sentence or two: the thing, the value received, the rule, the way out.
The command line prints it and ends with exit code 1.
"""

import difflib
from collections.abc import Iterable


class CastPoiError(Exception):
    """A problem a person can do something about; its text says what."""


class BadInput(CastPoiError):
    """A file, a row or an option is not what it should be."""


class BadRows(BadInput):
    """Rows of a source break a rule."""


class UnknownLayout(BadInput):
    """The source is none of the layouts we read."""


class WrongClock(BadInput):
    """The local hours of the check-ins are not those of human life."""


class UnknownUser(BadInput):
    """Nobody of this name has visits here."""


class NoCandidateLeft(BadInput):
    """The filters of a request leave no place to recommend."""


class BrokenFolder(CastPoiError):
    """A city, run or result folder is missing, damaged or belongs to another split."""


class DownloadFailed(CastPoiError):
    """A public data set could not be fetched."""


class TooFewCheckins(CastPoiError):
    """Nothing is left to split or to rank."""


class UnknownMethod(CastPoiError):
    """No ranking method has this name."""


class BadScores(CastPoiError):
    """A ranker gave scores that cannot be ranked."""


class TrainingDiverged(CastPoiError):
    """A loss or gradient became infinite or no number."""


class BrokenStore(CastPoiError):
    """The visit store does not answer as it should."""


class RepeatedKey(CastPoiError):
    """A client's key names two different visits."""


class ModelNotReady(CastPoiError):
    """The service is still loading its run."""


class Overloaded(CastPoiError):
    """More requests wait than the service may keep."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'train'? ` for a misspelt word; empty if no known word is close."""
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f"did you mean '{close[0]}'? " if close else ""
