"""Types of data in memory, by what they can do, so that no package of frames is needed for them.

A string has none of these, because it is neither data nor a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name: str, bound: Any, default: Any) -> Any:
        """Returns a type variable without a default, which only type checkers need."""
        return _TypeVar(name, bound=bound)


class ArrowStream(Protocol):
    """A table or column that Arrow can read."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class ArrowArray(Protocol):
    """A record batch or an array that Arrow can read."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class Frame(Protocol):
    """A frame of pandas or polars."""

    @property
    def columns(self) -> Any: ...


class DataSet(Protocol):
    """A table of pyarrow, or a data set of datasets."""

    @property
    def column_names(self) -> Any: ...


class ArrowDataSet(Protocol):
    """A data set of pyarrow, which is not read yet."""

    def to_table(self) -> Any: ...


class Column(Protocol):
    """A column of pandas or polars, or an array of NumPy."""

    @property
    def dtype(self) -> Any: ...


#: Data of a run: a table or frame, a column, a dictionary of columns, or texts and dictionaries one after another.
Rows = Union[
    ArrowStream, ArrowArray, Frame, DataSet, ArrowDataSet, Column, Mapping[Any, Any], list[Any], tuple[Any, ...], Iterator[Any]
]
#: The type of the data, which the kept rows have, too.
RowsT = TypeVar("RowsT", bound=Rows, default=Any)
