"""Data frames of any library become polars frames: by the Arrow PyCapsule interface, or by column.

polars, pyarrow, pandas (with pyarrow), DuckDB and others have the interface; pandas without pyarrow
is read column by column. Ids of any type become text.
"""

from importlib.util import find_spec
from typing import Any

import polars as pl
import polars.selectors as cs

from castpoi.core.errors import BadInput


def is_frame(source: object) -> bool:
    """Whether this is a table in memory, of any library."""
    return isinstance(source, pl.DataFrame | pl.LazyFrame) or (
        hasattr(source, "__arrow_c_stream__") or hasattr(source, "iloc")
    )


def as_frame(source: Any, *, what: str) -> pl.DataFrame:
    """The table as a polars frame; `what` names it in an error."""
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    try:
        if hasattr(source, "iloc"):
            return _of_pandas(source)
        return pl.DataFrame(source)
    except Exception as problem:  # code of another library may raise anything
        raise BadInput(
            f"{what} is a {type(source).__name__} that cannot be read as a table ({problem}); give "
            "a polars, pandas or pyarrow table"
        ) from problem


def texts(column: pl.Series) -> pl.Series:
    """Ids as text: whole numbers without a decimal point, as pandas makes them of missing ids."""
    if column.dtype.is_float():
        whole = column.drop_nulls().drop_nans()
        if (whole == whole.floor()).all():
            column = column.fill_nan(None).cast(pl.Int64)
    return column.cast(pl.String)


def _of_pandas(frame: Any) -> pl.DataFrame:
    if find_spec("pyarrow"):
        read = pl.DataFrame(frame)
    else:
        values = frame.astype(object).where(frame.notna(), None)
        read = pl.DataFrame({str(name): values[name].tolist() for name in values.columns})
    return read.with_columns(cs.float().fill_nan(None))
