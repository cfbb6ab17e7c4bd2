"""A city as the atomic files of RecBole, so that other libraries can check our numbers.

NAME.inter has the check-ins of the split in canonical order, with their part, NAME.item the places.
"""

from pathlib import Path

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.reading.layouts import INTERACTIONS, ITEMS
from castpoi.core.errors import BadInput
from castpoi.core.files import new_file

_USER, _ITEM = "user_id:token", "item_id:token"


def export_recbole(city: City, out: Path, *, overwrite: bool = False) -> Path:
    """Write a city to `out`, which ends in `.inter`, and to `.item` next to it, which is returned.

    Check-ins that the split leaves out are not written.
    """
    items = out.with_suffix(ITEMS)
    if out.suffix != INTERACTIONS:
        raise BadInput(f"{out} is not a name for interactions of RecBole; end it in {INTERACTIONS}")
    if not overwrite and (found := [path for path in (out, items) if path.exists()]):
        raise BadInput(
            f"{found[0]} already exists; choose another --out or replace it with --overwrite"
        )
    _write(_interactions(city), out)
    _write(_items(city), items)
    return items


def _interactions(city: City) -> pl.DataFrame:
    seconds = pl.col(record.AT_UTC).to_physical() / record.SECOND_US
    return (
        city.checkins.with_columns(city.split[record.PART])
        .filter(pl.col(record.PART) != record.LEFT_OUT)
        .join(city.users, on=record.USER, how="left", maintain_order="left")
        .join(city.places, on=record.PLACE, how="left", maintain_order="left")
        .select(
            pl.col(record.USER_ID).alias(_USER),
            pl.col(record.PLACE_ID).alias(_ITEM),
            seconds.alias("timestamp:float"),
            pl.col(record.PART).alias("split:token"),
        )
    )


def _items(city: City) -> pl.DataFrame:
    columns = {record.LAT: "float", record.LON: "float"}
    columns |= dict.fromkeys((record.CATEGORY, record.NAME, record.ZONE), "token")
    return city.places.select(
        pl.col(record.PLACE_ID).alias(_ITEM),
        *(pl.col(name).alias(f"{name}:{kind}") for name, kind in columns.items()),
    )


def _write(table: pl.DataFrame, out: Path) -> None:
    with new_file(out) as path:
        path.touch(mode=0o600)  # user ids and visits
        table.write_csv(path, separator="\t")
