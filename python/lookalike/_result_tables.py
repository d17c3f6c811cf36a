"""Results as tables of pyarrow, pandas and polars, with equal columns.

Ids have the type that they have in the data: UUIDs are those of Python in pandas, and strings in polars, which has no
type for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
else:
    from ._type_modules import pa, pd, pl


def pandas_of(table: Any) -> Any:
    """Returns a table as a frame of pandas. The package pandas must be installed."""
    frame = table.to_pandas()
    for name, column in _uuid_columns(table).items():
        # Written out, because the versions of pyarrow differ in what they make of the type.
        frame[name] = column.to_pylist()
    return frame


def polars_of(table: Any) -> Any:
    """Returns a table as a frame of polars. The package polars must be installed."""
    import polars as pl
    import pyarrow as pa

    for name, column in _uuid_columns(table).items():
        texts = [None if one is None else str(one) for one in column.to_pylist()]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return pl.from_arrow(table)


def _uuid_columns(table: Any) -> dict[str, Any]:
    kinds = {field.name: getattr(field.type, "extension_name", None) for field in table.schema}
    return {name: table[name] for name, kind in kinds.items() if kind == "arrow.uuid"}


class ResultTable:
    """A result with one table, as a table or a frame of other packages."""

    def to_arrow(self) -> pa.Table:
        """Returns the result as a table of pyarrow."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Returns the columns of :meth:`to_arrow` as a frame of pandas."""
        return pandas_of(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Returns the columns of :meth:`to_arrow` as a frame of polars."""
        return polars_of(self.to_arrow())
