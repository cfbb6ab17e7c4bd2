"""The steps of the preparation benchmark in pandas, as in the notebooks that castpoi replaces.

Nothing here is slow on purpose. `python -m benchmarks.pandas_prepare SOURCE OUT` prints one JSON
object.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tzfpy

HOUR = pd.Timedelta(hours=1)


def core(checkins: Any, least: int) -> Any:
    """Drop places, then users, with too few check-ins, until all have enough."""
    while True:
        before = len(checkins)
        checkins = checkins[checkins.groupby("place")["user"].transform("size") >= least]
        checkins = checkins[checkins.groupby("user")["place"].transform("size") >= least]
        if len(checkins) == before:
            return checkins


def without_isolated(checkins: Any) -> Any:
    """Keep check-ins within 24 hours of another of the user, then sessions of two or more."""
    gap = checkins.groupby("user")["time"].diff()
    following = gap.shift(-1)
    checkins = checkins[(gap <= 24 * HOUR) | (following <= 24 * HOUR)].copy()
    gap = checkins.groupby("user")["time"].diff()
    checkins["session"] = (gap.isna() | (gap > 24 * HOUR)).cumsum()
    return checkins[checkins.groupby("session")["user"].transform("size") >= 2]


def localised(checkins: Any) -> Any:
    """Add the time zone of each place and the local time of each check-in."""
    columns = ["lat", "lon", "category", "name"]
    places = checkins.groupby("place")[columns].agg(lambda values: values.mode().iloc[0])
    places["zone"] = [tzfpy.get_tz(lon, lat) for lat, lon in places[["lat", "lon"]].to_numpy()]
    checkins["zone"] = checkins["place"].map(places["zone"])
    checkins["local"] = pd.NaT
    parts = []
    for zone, part in checkins.groupby("zone"):
        parts.append(part["time"].dt.tz_convert(zone).dt.tz_localize(None))
    checkins["local"] = pd.concat(parts)
    return checkins, places


def split(checkins: Any) -> Any:
    """Leave-one-out split, without targets whose place does not occur in train."""
    from_last = checkins.groupby("user").cumcount(ascending=False)
    count = checkins.groupby("user")["place"].transform("size")
    checkins["part"] = np.select([count < 3, from_last == 0, from_last == 1], [3, 2, 1], 0)
    seen = checkins.loc[checkins["part"] == 0, "place"].unique()
    unseen = checkins["part"].isin([1, 2]) & ~checkins["place"].isin(seen)
    checkins.loc[unseen, "part"] = 3
    return checkins


def fingerprint(checkins: Any, places: Any) -> str:
    """A hash over the content of the split."""
    digest = hashlib.sha256()
    for column in ("user", "place"):
        digest.update("\n".join(checkins[column]).encode())
    for numbers in (checkins["time"].astype("int64"), checkins["part"], places["lat"]):
        digest.update(numbers.to_numpy().tobytes())
    return digest.hexdigest()


def main(source: str, out: str) -> None:
    """Prepare a city with pandas, and print its numbers."""
    checkins = pd.read_csv(source)
    checkins["time"] = pd.to_datetime(checkins["time"], utc=True, format="ISO8601")
    bad = checkins[["user", "place", "lat", "lon", "time"]].isna().any(axis=1)
    bad |= (checkins["lat"].abs() > 90) | (checkins["lon"].abs() > 180)
    checkins = checkins[~bad]
    checkins = checkins.sort_values(["user", "time", "place"]).drop_duplicates(
        ["user", "place", "time"]
    )
    checkins = without_isolated(core(checkins, 10))
    checkins, places = localised(checkins)
    hours = checkins["local"].dt.hour.value_counts(normalize=True).sort_index()
    checkins = split(checkins)
    kept = checkins[checkins["part"] != 3]
    history = kept[kept["part"] != 2]
    targets = kept.loc[kept["part"] == 2, ["user", "place"]]
    visited = history.groupby("user").tail(512)[["user", "place"]].drop_duplicates()
    revisits = targets.merge(visited, on=["user", "place"])
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    checkins.to_parquet(folder / "checkins.parquet")
    places.to_parquet(folder / "places.parquet")
    counts = checkins["part"].value_counts()
    summary = {
        "checkins": len(checkins),
        "users": int(checkins["user"].nunique()),
        "places": int(checkins["place"].nunique()),
        "train": int(counts.get(0, 0)),
        "validation": int(counts.get(1, 0)),
        "test": int(counts.get(2, 0)),
        "revisit_share": round(len(revisits) / max(len(targets), 1), 6),
        "quietest_hour": int(hours.idxmin()),
        "fingerprint": fingerprint(checkins, places),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main(*sys.argv[1:])
