"""Results as tables of pyarrow, pandas and polars, with equal columns.

Ids have the type that they have in the data: UUIDs are those of Python in pandas, and strings in polars, which has no
type for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
else:
    from ._type_modules import pa, pd, pl


def pandas_of(table: Any) -> Any:
    """Returns a table as a frame of pandas. The package pandas must be installed.

    Whole numbers of which some are missing keep their values in a nullable type, such as ``Int64``.
    """
    frame = table.to_pandas()
    for name in _integers_with_nulls(table):
        frame[name] = table.select([name]).to_pandas(types_mapper=_nullable_type)[name]
    for name, column in _uuid_columns(table).items():
        # Written out, because the versions of pyarrow differ in what they make of the type.
        frame[name] = column.to_pylist()
    return frame


def _integers_with_nulls(table: Any) -> list[str]:
    import pyarrow as pa

    return [field.name for field in table.schema if pa.types.is_integer(field.type) and table[field.name].null_count]


def _nullable_type(kind: Any) -> Any:
    """Returns the nullable type of pandas for whole numbers; None for other types."""
    import pandas as pd
    import pyarrow as pa

    if not pa.types.is_integer(kind):
        return None
    name = str(kind)
    return pd.api.types.pandas_dtype(name.replace("uint", "UInt") if name.startswith("u") else name.replace("int", "Int"))


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


class RejectedRow(NamedTuple):
    """A row that is not valid: its ``position`` from 0, and the ``reason``. Messages count rows from 1.

    >>> import lookalike as la
    >>> la.dedup(["a text", None]).rejected
    [RejectedRow(position=1, reason='the field `text` is null, not a string')]
    """

    position: int
    reason: str


def rejected_rows(told: Iterable[tuple[int, str]]) -> list[RejectedRow]:
    """Returns rejected rows of the engine with the names of their fields."""
    return [RejectedRow(*row) for row in told]


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
