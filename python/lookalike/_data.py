"""Data as it is given: Arrow streams from tables, frames and lists."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Sequence, Union

from ._errors import InputError

Names = Union[str, Sequence[str]]


def held(data: Any) -> Any:
    """Data that can be read again: what gives its rows but once is taken into memory."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "__next__"):
        return list(data)
    known = type(data).__module__.partition(".")[0] in ("pandas", "polars", "datasets", "pyarrow")
    return _taken(data) if hasattr(data, "__arrow_c_stream__") and not known else data


def stream_of(data: Any, text: Sequence[str], what: str = "data") -> Any:
    """What exports a stream of record batches: ``data`` itself wherever it does.

    Accepted are tables and frames of pyarrow, polars, pandas, datasets and all that has
    ``__arrow_c_stream__``; record batches; columns, arrays and sequences of strings, which become
    the column that ``text`` names; lists of dictionaries.
    """
    import pyarrow as pa

    module = type(data).__module__.partition(".")[0]
    if module == "datasets":
        return _of_datasets(data, what)
    if isinstance(data, (str, bytes, Mapping, Set)) or data is None:
        raise InputError(f"{what} is {_kind(data)}: give a table, or a list of strings or of dictionaries")
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _column(data, text)
    if module == "pandas":
        return _of_pandas(data, text)
    if module == "polars" and type(data).__name__ == "LazyFrame":
        data = data.collect()
    if hasattr(data, "__arrow_c_stream__"):
        return _of_stream(data, text)
    if hasattr(data, "__arrow_c_array__"):
        array = pa.array(data)
        if pa.types.is_struct(array.type):
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)])
        return _column(array, text)
    if not hasattr(data, "__iter__"):
        raise InputError(f"{what} is {_kind(data)}: give a table, or a list of strings or of dictionaries")
    values = data if isinstance(data, (list, tuple)) or hasattr(data, "dtype") else list(data)
    if len(values) and isinstance(values[0], Mapping):
        return table_of_rows(values, what)
    return _column(_strings(values, what), text)


def _kind(data: Any) -> str:
    return "None" if data is None else f"of the type {type(data).__name__}"


def texts_of(texts: Any) -> Any:
    """A stream whose first column are the texts."""
    if isinstance(texts, str):
        texts = [texts]
    stream = stream_of(texts, ["text"], "texts")
    columns = getattr(stream, "num_columns", None)
    if columns is not None and columns != 1:
        raise InputError(f"the texts are a table of {columns} columns: give one of them")
    return stream


def _column(array: Any, text: Sequence[str]) -> Any:
    import pyarrow as pa

    if len(text) != 1:
        raise InputError(f"a single column cannot be all of {', '.join(text)}: give a table")
    return pa.table({text[0]: array})


def _strings(values: Any, what: str) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeEncodeError) as error:
        for position, value in enumerate(values):
            if value is not None and not isinstance(value, str):
                raise InputError(f"{what}[{position}] is {_kind(value)}, not a string") from error
        raise InputError(f"{what} cannot be read as strings: {error}") from error


def table_of_rows(rows: Sequence[Any], what: str) -> Any:
    """Dictionaries as a table of all their keys; what one lacks is null."""
    import pyarrow as pa

    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{what}[{position}] is {_kind(row)}, not a dictionary as those before it")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        try:
            columns[str(name)] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeEncodeError) as error:
            raise InputError(f"{what}: the values of {name!r} are not of one kind: {error}") from error
    return pa.table(columns)


def _of_stream(data: Any, text: Sequence[str]) -> Any:
    import pyarrow as pa

    taken = _taken(data)
    return taken if isinstance(taken, pa.Table) else _column(taken, text)


def _taken(data: Any) -> Any:
    """What a stream gives, where it lies: a table of records, or a column of anything else."""
    import pyarrow as pa

    chunks = pa.chunked_array(data)
    return pa.Table.from_struct_array(chunks) if pa.types.is_struct(chunks.type) else chunks


def _of_pandas(data: Any, text: Sequence[str]) -> Any:
    import pyarrow as pa

    if type(data).__name__ == "DataFrame":
        return pa.Table.from_pandas(data, preserve_index=False)
    return _column(pa.array(data, from_pandas=True), text)


def _of_datasets(data: Any, what: str) -> Any:
    if type(data).__name__ != "Dataset":
        raise InputError(f"{what} is {_kind(data)}: give one of its splits")
    return data.with_format("arrow")[:]


def select(data: Any, rows: Any) -> Any:
    """The rows of ``data`` by their numbers, as a value of its own kind."""
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        columns = [_take(column, rows) for column in data.columns]
        return type(data).from_arrays(columns, schema=data.schema) if columns else data.take(pa.array(rows))
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _take(data, rows)
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        return data.iloc[rows]
    if module == "datasets":
        return data.select(rows)
    if module == "polars":
        return data.collect()[rows] if type(data).__name__ == "LazyFrame" else data[rows]
    if module == "numpy":
        return data[rows]
    if isinstance(data, (list, tuple)):
        return type(data)(data[row] for row in rows.tolist())
    return select(stream_of(data, ["text"]), rows)


def _take(column: Any, rows: Any) -> Any:
    """The values of a column at some rows. pyarrow takes none of views of strings."""
    import pyarrow as pa

    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    plain = views.get(column.type)
    taken = (column if plain is None else column.cast(plain)).take(pa.array(rows))
    return taken if plain is None else taken.cast(column.type)
