"""Writing a synthetic city, complete or not at all: one table, or a folder with its settings.

OUT.csv, .csv.gz, .tsv, .tsv.gz, .parquet   the table alone
OUT/checkins.parquet, OUT/synthesis.json    the table, and the settings to make it again
"""

from pathlib import Path
from typing import Final

import polars as pl

import castpoi
from castpoi.checkins.synthetic.plan import SynthesisConfig
from castpoi.core.errors import BadInput
from castpoi.core.files import (
    DAMAGED,
    check_vacant,
    check_writable,
    new_file,
    new_folder,
    write_json,
    writing,
)

TABLE: Final = "checkins.parquet"
PARAMETERS: Final = "synthesis.json"
KIND: Final = "synthesis"
ENDINGS: Final = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")  # suffixes of tables
_COLUMNS: Final = ["user", "place", "lat", "lon", "time", "category", "name"]


def check_free(out: Path, *, overwrite: bool) -> None:
    """Refuse a path that exists or cannot be written, before any work is done."""
    if _is_table(out):
        _check_free_table(out, overwrite=overwrite)
        return
    if out.is_file():
        raise BadInput(
            f"{out} is a file without the suffix of a table ({', '.join(ENDINGS)}); choose another "
            "--out"
        )
    # a suffix begins with a letter; town-1.2 has none
    if out.suffix[1:2].isalpha() and not out.exists():
        raise BadInput(
            f"{out} ends in {out.suffix}, which cannot be written; use {', '.join(ENDINGS)} for a "
            "table, or no suffix for a folder"
        )
    check_vacant(out, kind=KIND, overwrite=overwrite)


def _is_table(out: Path) -> bool:
    return out.name.lower().endswith(ENDINGS)


def _separator(table: Path) -> str:
    return "\t" if table.name.lower().endswith((".tsv", ".tsv.gz")) else ","


def _check_free_table(out: Path, *, overwrite: bool) -> None:
    check_writable(out)
    if not out.exists():
        return
    if not out.is_file():
        raise BadInput(f"{out} is a folder with the suffix of a table; choose another --out")
    if not _is_synthetic(out):
        raise BadInput(f"{out} exists and is not a synthetic city; choose another --out")
    if not overwrite:
        raise BadInput(
            f"{out} already holds a synthetic city; choose another --out or replace it with "
            "--overwrite"
        )


def _is_synthetic(table: Path) -> bool:
    """Whether a table has our columns and ids."""
    try:
        if table.name.lower().endswith(".parquet"):
            first = pl.read_parquet(table, n_rows=1)
        else:
            first = pl.read_csv(table, separator=_separator(table), n_rows=1, infer_schema=False)
    except (OSError, *DAMAGED):
        return False
    return first.columns == _COLUMNS and str(first["user"].first()).startswith("person-")


def write_checkins(
    checkins: pl.DataFrame,
    out: Path,
    *,
    config: SynthesisConfig,
    seed: int,
    overwrite: bool = False,
) -> Path:
    """Write a synthetic city and return the path of its table."""
    check_free(out, overwrite=overwrite)
    if _is_table(out):
        with new_file(out) as staged:
            _write_table(checkins, staged)
        return out
    with writing(out), new_folder(out, kind=KIND, overwrite=overwrite) as staging:
        _write_table(checkins, staging / TABLE)
        settings = {
            "kind": KIND,
            "castpoi": castpoi.__version__,
            "seed": seed,
            "parameters": config.as_json(),
            "checkins": checkins.height,
            "users": checkins["user"].n_unique(),
            "places": checkins["place"].n_unique(),
        }
        write_json(staging / PARAMETERS, settings)
    return out / TABLE


def _write_table(checkins: pl.DataFrame, table: Path) -> None:
    name = table.name.lower()
    if name.endswith(".parquet"):
        checkins.write_parquet(table, compression="zstd")
        return
    checkins.write_csv(
        table,
        separator=_separator(table),
        datetime_format="%Y-%m-%dT%H:%M:%SZ",
        compression="gzip" if name.endswith(".gz") else "uncompressed",
    )
