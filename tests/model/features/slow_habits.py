"""Habits in plain Python, one visit at a time; see `castpoi/model/features/habits.py`."""

import math
from datetime import UTC, datetime, timedelta

from tests.model.small import LAT, LON, Visit

Sums = dict[str, list[float]]
"""By name: of the place, of all."""


def counted(visits: list[Visit], candidate: int, known_us: int | None) -> Sums:
    """What each visit counts, summed: of the place, and of all."""
    here, last_us, offset = visits[-1]
    now_us = last_us if known_us is None else known_us
    now = local_time(now_us, offset)
    way = visits[-2][0] if len(visits) > 1 else None
    sums: Sums = {}

    def add(name: str, visit: Visit, weight: float) -> None:
        kept = sums.setdefault(name, [0.0, 0.0])
        kept[0] += weight if visit[0] == candidate else 0.0
        kept[1] += weight

    for number, visit in enumerate(visits):
        clock = clock_of(visit)
        add("visits", visit, 1.0)
        add("fresh", visit, math.exp(-days_between(visit[1], now_us) / 20))
        add("fresher", visit, math.exp(-days_between(visit[1], now_us) / 3))
        add("hour", visit, cosine_of(clock, now))
        add("day", visit, float(is_weekend(clock) == is_weekend(now)))
        if not number:
            continue
        before = visits[number - 1]
        then = clock_of(before) if known_us is None else clock
        hour = math.exp(4 * (cosine_of(then, now) - 1))
        day = float(is_weekend(then) == is_weekend(now))
        nearby = math.exp(-distance_km(before[0], here) / 0.5)
        from_here = float(before[0] == here)
        two_after = float(number > 1 and visits[number - 2][0] == way)
        add("arrivals", visit, 1.0)
        add("from here", visit, from_here)
        add("from here fresh", visit, from_here * math.exp(-days_between(before[1], now_us) / 20))
        add("from here hour", visit, from_here * hour)
        add("from here same way", visit, from_here * two_after)
        add("two after", visit, two_after)
        add("after hour", visit, hour)
        add("after hour and day", visit, hour * day)
        add("nearby", visit, nearby)
        add("nearby hour", visit, nearby * hour)
        add("leading", visit, log_hours(days_between(before[1], visit[1])))

    return sums


def habits(visits: list[Visit], candidate: int, known_us: int | None = None) -> list[float]:
    """The habits of a history about a place that it knows."""
    here, last_us, _ = visits[-1]
    now_us = last_us if known_us is None else known_us
    sums = counted(visits, candidate, known_us)

    def part(name: str) -> float:
        return sums.get(name, [0.0, 0.0])[0]

    def share(name: str) -> float:
        own, whole = sums.get(name, [0.0, 0.0])
        return math.log(1 + 20 * own / whole) if own else 0.0

    def log(name: str) -> float:
        return math.log(1 + part(name))

    waited_since = visits[-2][1] if known_us is None and len(visits) > 1 else last_us
    last = max(visit[1] for visit in visits if visit[0] == candidate)
    at_here = sum(place == here for place, _, _ in visits)
    return [
        share("visits"),
        log("fresh"),
        log("fresher"),
        log_hours(days_between(last, now_us)),
        part("hour") / part("visits"),
        part("day") / part("visits"),
        log("from here"),
        share("from here"),
        log("from here fresh"),
        log("from here hour"),
        log("from here same way"),
        log("two after"),
        log("after hour"),
        share("after hour"),
        log("after hour and day"),
        share("after hour and day"),
        log("nearby"),
        log("nearby hour"),
        math.log(1 + distance_km(here, candidate)) / math.log(101),
        part("leading") / max(part("arrivals"), 1),
        float(candidate == here),
        math.log(1 + len(visits)),
        len({place for place, _, _ in visits}) / len(visits),
        log_hours(days_between(waited_since, now_us)),
        math.log(1 + 20 * at_here / len(visits)),
    ]


def clock_of(visit: Visit) -> datetime:
    return local_time(visit[1], visit[2])


def cosine_of(clock: datetime, now: datetime) -> float:
    return math.cos(2 * math.pi * (day_share(clock) - day_share(now)))


def is_weekend(clock: datetime) -> bool:
    return clock.weekday() >= 5


def days_between(earlier_us: int, later_us: int) -> float:
    return max(0, later_us - earlier_us) / 8.64e10


def log_hours(days: float) -> float:
    """1 after a year."""
    return math.log(1 + 24 * days) / math.log(1 + 24 * 365)


def local_time(at_us: int, offset: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us, minutes=offset)


def day_share(clock: datetime) -> float:
    midnight = clock.replace(hour=0, minute=0, second=0, microsecond=0)
    return (clock - midnight) / timedelta(days=1)


def distance_km(left: int, right: int) -> float:
    """Haversine on a sphere of 6371 km."""
    lat_a, lon_a, lat_b, lon_b = (
        math.radians(degrees) for degrees in (LAT[left], LON[left], LAT[right], LON[right])
    )
    half = math.sin((lat_b - lat_a) / 2) ** 2
    half += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * 6371.0 * math.asin(math.sqrt(half))
