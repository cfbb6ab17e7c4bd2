"""Quantities in words: counts, distances, durations, shares and days."""

from datetime import date


def counted(count: int, thing: str) -> str:
    """A count and its noun: 1 place, 2,000 places."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def distance_words(distance_km: float | None) -> str:
    """A distance with the unit that suits it: 840 m, 1.3 km, 212 km."""
    if distance_km is None:
        return "–"
    if distance_km < 0.9995:
        return f"{distance_km * 1000:.0f} m"
    return f"{distance_km:,.1f} km" if distance_km < 99.95 else f"{distance_km:,.0f} km"


def duration_words(seconds: float | None) -> str:
    """A duration with the unit that suits it: 18 s, 25 min, 3.9 h, 4.2 days."""
    if seconds is None:
        return "–"
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    if round(seconds / 60) < 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:,.1f} days"


def share_words(share: float | None) -> str:
    """A share as a percentage with one decimal: 64.2%."""
    return "–" if share is None else f"{share:.1%}"


def day_words(day: date | None) -> str:
    """A day in full: 3 April 2012."""
    return "–" if day is None else f"{day.day} {day:%B} {day.year}"
