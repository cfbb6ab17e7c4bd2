"""The audit: eleven checks of a city.

A check *fails* if metrics measured on the city would be wrong (leakage, a broken split, a wrong
clock), and *warns* if they would be correct but misleading.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from polars.exceptions import PolarsError

from castpoi.checkins import record
from castpoi.checkins.city import City, fault_of
from castpoi.checkins.describe import checkins_per_place, moves_of, top_share
from castpoi.checkins.rhythm import rhythm_of
from castpoi.checkins.trajectory import Trajectories
from castpoi.geo.zones import numbered_zones, offsets_minutes

Status = Literal["passed", "warned", "failed"]
Test = Callable[[City], tuple[Status, str]]

TELEPORT_KM_PER_HOUR: Final = 1000.0
"""Faster than an airliner; one of the two check-ins has a wrong place or time."""
TELEPORT_LEAST_KM: Final = 1.0
"""At shorter distances, rounded coordinates and times explain any speed."""
MUCH_TELEPORTED: Final = 0.01
UNUSUAL_REVISIT_SHARE: Final = (0.05, 0.95)
MUCH_AT_ONE_PLACE: Final = 0.2

_CANONICAL_ORDER: Final = (record.USER, record.AT_UTC, record.PLACE)
_TRAIN, _VALIDATION, _TEST, _ = range(len(record.PARTS))


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check."""

    check: str
    status: Status
    finding: str


def audit(city: City) -> list[Outcome]:
    """Run every check on a city."""
    return [_checked(city, check, test) for check, test in CHECKS.items()]


def _checked(city: City, check: str, test: Test) -> Outcome:
    """The outcome of a check; it fails if the tables do not fit together."""
    try:
        return Outcome(check, *test(city))
    except (IndexError, TypeError, ValueError, PolarsError):
        return Outcome(check, "failed", "cannot be checked, because the tables do not fit together")


def _fingerprint(city: City) -> tuple[Status, str]:
    fault = fault_of(city)
    if fault is not None:
        return "failed", f"{fault}; prepare the city again"
    return "passed", f"no file has changed; the content has fingerprint {city.fingerprint[:12]}"


def _time_order(city: City) -> tuple[Status, str]:
    keys = [city.checkins[name].to_physical().to_numpy() for name in _CANONICAL_ORDER]
    wrong = np.zeros(max(city.checkins.height - 1, 0), dtype=np.bool_)
    tied = ~wrong
    for key in keys:
        step = np.diff(key.astype(np.int64))
        wrong |= tied & (step < 0)
        tied &= step == 0
    if wrong.any():
        return "failed", f"{wrong.sum():,} check-ins come before an earlier one of their user"
    return "passed", "every trajectory is in time order"


def _own_past(city: City) -> tuple[Status, str]:
    """A target is leaked if its history has the same place at the same instant."""
    visits = city.trajectories
    rows = city.targets(record.TEST)
    rows = rows[rows > 0]
    # check-ins at one instant are sorted by place, so only the one before can be equal
    columns = (visits.user, visits.at_us, visits.place)
    leaked = np.logical_and.reduce([each[rows - 1] == each[rows] for each in columns])
    if leaked.any():
        return "failed", (
            f"{leaked.sum():,} test targets repeat a check-in of their history at the same "
            "instant; prepare without --keep-duplicates"
        )
    return "passed", "no test target is in its own history"


def _unseen(city: City) -> tuple[Status, str]:
    visits = city.trajectories
    is_train = visits.part == _TRAIN
    targets = np.flatnonzero((visits.part == _VALIDATION) | (visits.part == _TEST))
    new_places = ~np.isin(visits.place[targets], visits.place[is_train])
    new_users = ~np.isin(visits.user[targets], visits.user[is_train])
    if new_places.any() or new_users.any():
        return "failed", (
            f"{new_users.sum():,} targets have a user and {new_places.sum():,} a place that is not "
            "in train"
        )
    return "passed", "the user and the place of every target are in train"


def _overlap(city: City) -> tuple[Status, str]:
    ids = city.split[record.CHECKIN]
    if ids.n_unique() != len(ids) or not ids.sort().equals(city.checkins[record.CHECKIN].sort()):
        return "failed", "the split does not contain every check-in exactly once"
    visits = city.trajectories
    if city.manifest.get("split") == "chronological":
        return _parts_follow_in_time(visits)
    backwards = (np.diff(visits.user) == 0) & (np.diff(visits.part.astype(int)) < 0)
    if backwards.any():
        return "failed", f"{backwards.sum():,} users have a later part before an earlier one"
    for part in () if city.manifest.get("split") == "given" else (_VALIDATION, _TEST):
        users = visits.user[visits.part == part]
        if len(np.unique(users)) != len(users):
            return "failed", f"a user has two {record.PARTS[part]} targets"
    return "passed", (
        "every check-in is in one part; within a user validation follows train, test follows both"
    )


def _parts_follow_in_time(visits: Trajectories) -> tuple[Status, str]:
    spans = [visits.at_us[visits.part == part] for part in (_TRAIN, _VALIDATION, _TEST)]
    follow = pairwise(span for span in spans if len(span))
    if any(earlier.max() >= later.min() for earlier, later in follow):
        return "failed", "a part begins before the previous one has ended"
    return "passed", "every check-in is in one part, and the parts do not overlap in time"


def _later_training(city: City) -> tuple[Status, str]:
    """Train check-ins of other users that are later than the targets."""
    visits = city.trajectories
    learned = np.sort(visits.at_us[visits.part == _TRAIN])
    targets = visits.at_us[visits.part == _TEST]
    if not len(learned) or not len(targets):
        return "failed", "there is no test target, or no train check-in"
    later = 1 - np.searchsorted(learned, targets, side="right") / len(learned)
    if not later.any():
        return "passed", "no train check-in is later than a test target"
    return "warned", (
        f"on average {later.mean():.1%} of the train check-ins are later than a test target: "
        "models learn what other people did after it. Such results are fit to compare methods; for "
        "results as in a forecast, prepare with --split chronological"
    )


def _revisits(city: City) -> tuple[Status, str]:
    share, targets = city.revisit_share, len(city.targets(record.TEST))
    if share is None:
        return "failed", "there is no test target"
    low, high = UNUSUAL_REVISIT_SHARE
    status: Status = "passed" if low <= share <= high else "warned"
    return status, f"{share:.1%} of {targets:,} test targets are revisits"


def _rhythm(city: City) -> tuple[Status, str]:
    rhythm = rhythm_of(city.local_us)
    if not rhythm.is_judged:
        return "warned", rhythm.sentence
    if rhythm.is_human:
        return "passed", rhythm.sentence
    accepted = city.manifest.get("options", {}).get("accept_rhythm")
    return ("warned" if accepted else "failed"), rhythm.sentence


def _local_clock(city: City) -> tuple[Status, str]:
    """Whether offsets are those of the zones of the places."""
    number, zones = numbered_zones(city.places[record.ZONE])
    expected = offsets_minutes(city.at_us, number[city.checkins[record.PLACE].to_numpy()], zones)
    wrong = expected != city.checkins[record.OFFSET].to_numpy()
    if wrong.any():
        return "failed", f"{wrong.sum():,} local offsets differ from the zone of their place"
    return "passed", f"local time agrees with {len(zones)} time zone{'s' * (len(zones) > 1)}"


def _teleports(city: City) -> tuple[Status, str]:
    visits = city.trajectories
    km, hours = moves_of(city, visits.user, visits.place, visits.at_us)
    if not len(km):
        return "passed", "no user has two check-ins"
    too_fast = (km > TELEPORT_LEAST_KM) & (km > TELEPORT_KM_PER_HOUR * hours)
    share = float(too_fast.mean())
    status: Status = "warned" if share > MUCH_TELEPORTED else "passed"
    return status, (
        f"{too_fast.sum():,} of {len(km):,} moves ({share:.2%}) are faster than "
        f"{TELEPORT_KM_PER_HOUR:,.0f} km/h"
    )


def _popularity(city: City) -> tuple[Status, str]:
    counts = checkins_per_place(city)
    one = counts.max() / counts.sum()
    top = top_share(counts, 0.01)
    status: Status = "warned" if one > MUCH_AT_ONE_PLACE else "passed"
    return status, f"the busiest place has {one:.1%} of all check-ins, the busiest 1 % {top:.1%}"


CHECKS: Final[dict[str, Test]] = {
    "fingerprint": _fingerprint,
    "time order": _time_order,
    "target in its own history": _own_past,
    "unseen users or places": _unseen,
    "split overlap": _overlap,
    "training on later check-ins": _later_training,
    "share of revisits": _revisits,
    "rhythm": _rhythm,
    "local clock": _local_clock,
    "teleports": _teleports,
    "popularity skew": _popularity,
}
