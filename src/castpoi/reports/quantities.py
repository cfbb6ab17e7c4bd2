"""Counts, distances, gaps and days in words a person reads at a glance."""

from datetime import date


def counted(count: int, thing: str) -> str:
    """So many things: 1 place, 2,000 places."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def distance_words(distance_km: float | None) -> str:
    """A distance with the unit that suits it: 840 m, 1.3 km, 212 km."""
    if distance_km is None:
        return "–"
    if distance_km < 0.9995:
        return f"{distance_km * 1000:.0f} m"
    return f"{distance_km:,.1f} km" if distance_km < 99.95 else f"{distance_km:,.0f} km"


def gap_words(gap_hours: float | None) -> str:
    """A stretch of time with the unit that suits it: 18 s, 25 min, 3.9 h, 4.2 days."""
    if gap_hours is None:
        return "–"
    if gap_hours < 1 / 60:
        return f"{gap_hours * 3600:.0f} s"
    if gap_hours < 1:
        return f"{gap_hours * 60:.0f} min"
    return f"{gap_hours:.1f} h" if gap_hours < 48 else f"{gap_hours / 24:,.1f} days"


def share_words(share: float | None) -> str:
    """A share as a percentage with one decimal: 64.2%."""
    return "–" if share is None else f"{share:.1%}"


def day_words(day: date | None) -> str:
    """A day in full: 3 April 2012."""
    return "–" if day is None else f"{day.day} {day:%B} {day.year}"
