"""Arrow streams from the tables, frames and lists that users pass."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Set
from typing import Any, Container, Iterable, NoReturn, Sequence, Union

from ._errors import ArgumentTypeError, InputError
from ._paths import is_path, read_paths, refuse_string
from ._placeholders import placeholder_of
from ._words import counted

Names = Union[str, Sequence[str]]


#: Packages whose tables, frames and columns are known by their classes.
_PACKAGES = ("pandas", "polars", "datasets", "pyarrow", "numpy")


def library_class(data: Any) -> tuple[str, str]:
    """Returns the package and the name of the first class of data that a known package has, or else those of its own
    class. A subclass of a frame is treated as the frame, and no package is imported for it."""
    classes = [(one.__module__.partition(".")[0], one.__name__) for one in type(data).__mro__]
    return next((one for one in classes if one[0] in _PACKAGES), classes[0])


def make_rereadable(data: Any) -> Any:
    """Returns data that can be read twice; data that yields its rows only once is read into memory."""
    import pyarrow as pa

    data = _read_deferred(data, "data")
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    package, name = library_class(data)
    if package == "datasets":
        if name == "IterableDataset":
            return list(data)
        if name == "IterableDatasetDict":
            return _read_splits(data)
    if hasattr(data, "__next__"):
        return list(data)
    return _taken(data) if hasattr(data, "__arrow_c_stream__") and package not in _PACKAGES else data


def _read_deferred(data: Any, what: str) -> Any:
    """Returns data that is not read yet as a table or frame: paths, an Arrow data set, a lazy frame. Returns other data as
    it is, and refuses a string."""
    if is_path(data):
        return read_paths(data, what)
    if isinstance(data, str):
        refuse_string(what, data)
    if type(data).__module__.startswith("pyarrow._dataset") and hasattr(data, "to_table"):
        return data.to_table()
    if library_class(data) == ("polars", "LazyFrame"):
        return data.collect()
    return data


def stream_of(data: Any, text: Sequence[str], what: str = "data") -> Any:
    """Returns an object that exports a stream of record batches: ``data`` itself if possible.

    Accepts tables and frames of pyarrow, polars, pandas and datasets, any object with
    ``__arrow_c_stream__``, record batches and lists of dictionaries. A column, an array or a sequence
    of strings becomes the column that ``text`` names. NaN and other marks of missing values are nulls.
    """
    stream = _arrow_of(data, text, what)
    refuse_repeated(stream, text, what)
    return _with_missing_texts(stream, text)


def refuse_repeated(stream: Any, names: Iterable[Any], what: str) -> None:
    """Refuses a table in which several columns have one of the names. A name with full stops is within the column that
    is before the first one."""
    schema = getattr(stream, "schema", None)
    there = list(getattr(schema, "names", ()))
    if len(set(there)) == len(there):
        return
    for name in names:
        column = name if name in there else str(name).partition(".")[0]
        if there.count(column) > 1:
            raise InputError(f"{what} has the column `{column}` {_times(there.count(column))}: rename one of them")


def _times(number: int) -> str:
    return "twice" if number == 2 else f"{number} times"


def _with_missing_texts(stream: Any, text: Sequence[str]) -> Any:
    """Returns a table in which columns of texts that have no value at all are nulls, whatever their type.

    Frames without a value in a column have no type for it: pandas and NumPy take floating point.
    """
    import pyarrow as pa

    if not isinstance(stream, pa.Table):
        return stream
    if not stream.num_columns and not stream.num_rows:
        return pa.table({name: pa.array([], pa.large_string()) for name in text})
    for name in text:
        at = stream.schema.get_field_index(name)
        if at < 0:
            continue
        column = stream.column(at)
        has_no_type = not len(column) and not pa.types.is_nested(column.type)
        if has_no_type or pa.types.is_floating(column.type) and _has_only_nan(column):
            stream = stream.set_column(at, name, pa.nulls(len(column), pa.large_string()))
    return stream


def _has_only_nan(column: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.is_null(column, nan_is_null=True), min_count=0).as_py())


def _arrow_of(data: Any, text: Sequence[str], what: str) -> Any:
    """Returns data as an object that exports a stream of record batches."""
    import pyarrow as pa

    module, kind = library_class(data)
    if module == "datasets":
        return _of_datasets(data, text, what)
    data = _read_deferred(data, what)
    if isinstance(data, Mapping) and data:
        return _of_columns(data, text, what)
    if isinstance(data, (bytes, Mapping, Set)) or data is None:
        raise ArgumentTypeError(f"{what} is {_kind(data)}: give a table, or a list of strings or of dictionaries")
    if isinstance(data, pa.Table) and data.num_rows and not data.num_columns:
        _refuse_no_columns(what, data.num_rows)
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _column(data, text)
    if module == "pandas":
        return _of_pandas(data, text, what)
    if module == "polars" and kind == "DataFrame" and not _NOT_IN_ARROW.isdisjoint(map(str, data.dtypes)):
        return _of_polars_objects(data, text, what)
    if hasattr(data, "__arrow_c_stream__"):
        return _of_stream(data, text)
    if hasattr(data, "__arrow_c_array__"):
        array = pa.array(data)
        if pa.types.is_struct(array.type):
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)])
        return _column(array, text)
    if not hasattr(data, "__iter__"):
        raise ArgumentTypeError(f"{what} is {_kind(data)}: give a table, or a list of strings or of dictionaries")
    values = data if isinstance(data, (list, tuple)) or hasattr(data, "dtype") else list(data)
    if len(values) and isinstance(values[0], Mapping):
        return table_of_rows(values, what, text)
    return _column(_strings(values, what), text)


def _refuse_no_columns(what: str, rows: int, remedy: str = "give a table with a column of texts") -> NoReturn:
    raise InputError(f"{what} has {counted(rows, 'row')} and no columns: {remedy}")


def _of_columns(data: Mapping[Any, Any], text: Sequence[str], what: str) -> Any:
    """Returns a dictionary of columns as a table."""
    import pyarrow as pa

    columns = {}
    for name, values in data.items():
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise InputError(
                f"{what} is a dictionary, and its value {name!r} is {_kind(values)}: give columns of equal length, or "
                "a list of dictionaries"
            )
        columns[str(name)] = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else list(values)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{what} has columns of different lengths: {lengths}")
    arrays = {}
    for name, values in columns.items():
        arrays[name] = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else _array_of(values, name, what, name in text)
    return pa.table(arrays)


def _array_of(values: list[Any], name: Any, what: str, is_wanted: bool) -> Any:
    """Returns values as an array. Marks of missing values are nulls; values of several types are a placeholder, and are
    refused if they are wanted."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except _UNFIT:
        pass
    try:
        return pa.array(_without_marks(values))
    except _UNFIT as error:
        if is_wanted:
            raise InputError(f"{what}: the values of {name!r} have different types: {error}") from error
        return placeholder_of(values)


def _without_marks(values: Iterable[Any]) -> list[Any]:
    """Returns values with None in place of NaN, NaT and the missing value of pandas."""
    return [None if is_missing(value) else value for value in values]


def is_missing(value: Any) -> bool:
    """Returns True for None, NaN, NaT and the missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Real) and value != value


#: Types of polars that no Arrow type has.
_NOT_IN_ARROW = {"Object", "Int128", "UInt128"}


def _of_polars_objects(data: Any, text: Sequence[str], what: str) -> Any:
    """Returns a frame of polars with columns that Arrow lacks, for example of UUIDs."""
    import pyarrow as pa

    columns = {}
    for column in data.iter_columns():
        name, is_plain = column.name, str(column.dtype) not in _NOT_IN_ARROW
        columns[name] = column.to_arrow() if is_plain else _array_of(column.to_list(), name, what, name in text)
    return pa.table(columns)


def _kind(data: Any) -> str:
    return "None" if data is None else f"of the type {type(data).__name__}"


def texts_of(texts: Any) -> Any:
    """Returns a stream whose first column holds the texts."""
    if isinstance(texts, str):
        texts = [texts]
    stream = stream_of(texts, ["text"], "texts")
    columns = getattr(stream, "num_columns", None)
    if columns is not None and columns != 1:
        raise InputError(f"texts is a table with {columns} columns: give a single column")
    return stream


#: Texts up to which a list is given to the engine as it is: making a table of it takes longer than their sketches.
_FEW_TEXTS = 64


def few_texts_of(texts: Any) -> Any:
    """Returns a short list of strings as it is, and other texts as :func:`texts_of`."""
    if type(texts) is list and len(texts) <= _FEW_TEXTS and all(type(one) is str for one in texts):
        # Texts that are not Unicode are refused with their place, like those of a long list.
        if all(one.isascii() or _is_unicode(one) for one in texts):
            return texts
    return texts_of(texts)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: Errors of pyarrow for values that do not fit into a column.
_UNFIT = (ValueError, TypeError, NotImplementedError, OverflowError)


def _column(array: Any, text: Sequence[str]) -> Any:
    import pyarrow as pa

    if len(text) != 1:
        raise InputError(f"the input is a single column, but text names {len(text)} ({', '.join(text)}): give a table")
    return pa.table({text[0]: array})


def _strings(values: Any, what: str) -> Any:
    import pyarrow as pa

    if hasattr(values, "tolist"):
        # pyarrow below 18 does not make large strings of NumPy's.
        values = values.tolist()
    try:
        return pa.array(values, pa.large_string())
    except _UNFIT:
        values = _without_marks(values)
    try:
        return pa.array(values, pa.large_string())
    except _UNFIT as error:
        for position, value in enumerate(values):
            if value is not None and not isinstance(value, str):
                raise InputError(f"{what}[{position}] is {_kind(value)}, not a string") from error
        raise InputError(f"{what} cannot be read as strings: {error}") from error


def table_of_rows(rows: Sequence[Any], what: str, wanted: Sequence[Any]) -> Any:
    """Returns dictionaries as a table with all their keys; missing values are null. The values of a
    ``wanted`` key must have one type."""
    import pyarrow as pa

    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{what}[{position}] is {_kind(row)}, not a dictionary like the rows before it")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        columns[str(name)] = _array_of([row.get(name) for row in rows], name, what, name in wanted)
    return pa.table(columns)


def _of_stream(data: Any, text: Sequence[str]) -> Any:
    import pyarrow as pa

    taken = _taken(data)
    return taken if isinstance(taken, pa.Table) else _column(taken, text)


def _taken(data: Any) -> Any:
    """Returns a stream without a copy: a table if it holds records, else a column."""
    import pyarrow as pa

    chunks = pa.chunked_array(data)
    return pa.Table.from_struct_array(chunks) if pa.types.is_struct(chunks.type) else chunks


def _of_pandas(data: Any, text: Sequence[str], what: str) -> Any:
    import pyarrow as pa

    if library_class(data)[1] == "DataFrame":
        if len(data) and not len(data.columns):
            _refuse_no_columns(what, len(data), "use `frame.reset_index()` if its texts are the index")
        try:
            return pa.Table.from_pandas(data, preserve_index=False)
        except _UNFIT:
            columns = [(str(name), _of_pandas_column(column)) for name, column in data.items()]
            return pa.Table.from_arrays([column for _, column in columns], names=[name for name, _ in columns])
    try:
        return _column(pa.array(data, from_pandas=True), text)
    except _UNFIT:
        return _column(_strings(list(data), what), text)


def _of_pandas_column(column: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(column, from_pandas=True)
    except _UNFIT:
        return placeholder_of(column)


def _of_datasets(data: Any, text: Sequence[str], what: str) -> Any:
    if library_class(data)[1] == "IterableDatasetDict":
        data = _read_splits(data)
    kind = library_class(data)[1]
    if kind == "Column":
        return _column(_strings(list(data), what), text)
    if kind == "IterableDataset":
        return table_of_rows(list(data), what, text)
    if kind == "DatasetDict" and data:
        import pyarrow as pa

        splits = [split.with_format("arrow")[:] for split in data.values()]
        return pa.concat_tables(splits, promote_options="permissive")
    if kind != "Dataset":
        raise InputError(f"{what} is {_kind(data)}: give a Dataset, or a dictionary of them")
    return data.with_format("arrow")[:]


def _read_splits(data: Any) -> Any:
    """Returns a dictionary of streamed data sets as one of data sets in memory."""
    import datasets

    return datasets.DatasetDict(
        {name: datasets.Dataset.from_list(list(split), features=split.features) for name, split in data.items()}
    )


def select(data: Any, rows: Any) -> Any:
    """Returns the rows of ``data`` by their numbers, as a value of the same type."""
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        columns = [_take(column, rows) for column in data.columns]
        return type(data).from_arrays(columns, schema=data.schema) if columns else data.take(pa.array(rows))
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _take(data, rows)
    module, kind = library_class(data)
    if module == "pandas":
        return data.iloc[rows] if hasattr(data, "iloc") else data[rows]
    if kind == "DatasetDict":
        return _select_splits(data, rows)
    if module == "datasets" and hasattr(data, "select"):
        return data.select(rows)
    if isinstance(data, Mapping):
        taken = rows.tolist()
        return {name: values[rows] if hasattr(values, "dtype") else [values[at] for at in taken] for name, values in data.items()}
    if module in ("polars", "numpy"):
        return data[rows]
    if isinstance(data, tuple):
        return tuple(data[row] for row in rows.tolist())
    if isinstance(data, Sequence):
        return [data[row] for row in rows.tolist()]
    return select(stream_of(data, ["text"]), rows)


def refuse_added(data: Any, names: Sequence[str]) -> None:
    """Refuses data to whose rows no fields of these names can be added."""
    if not names:
        return
    first = data[0] if isinstance(data, Sequence) and not isinstance(data, str) and len(data) else None
    if _is_frame(data) or isinstance(data, Mapping):
        there: Any = _names_of(data)
    elif isinstance(first, Mapping):
        there = {name for row in data for name in row}
    elif isinstance(data, Sequence) and not len(data):
        return
    else:
        raise InputError(
            f"data is {_kind(data)}, whose rows have no fields to which `{names[0]}` could be added: give a table, or a list "
            "of dictionaries"
        )
    refuse_taken(there, names)


def refuse_taken(there: Container[str], names: Sequence[str]) -> None:
    """Refuses names of added fields that the data has already."""
    for name in names:
        if name in there:
            raise InputError(f"data already has a field `{name}`: give the added field another name")


def _is_frame(data: Any) -> bool:
    import pyarrow as pa

    kinds = ("DataFrame", "Dataset", "DatasetDict")
    return isinstance(data, (pa.Table, pa.RecordBatch)) or library_class(data)[1] in kinds


def _names_of(data: Any) -> list[str]:
    if library_class(data)[1] == "DatasetDict":
        return [name for split in data.values() for name in split.column_names]
    if isinstance(data, Mapping):
        return [str(name) for name in data]
    if hasattr(data, "schema") and hasattr(data.schema, "names") and not callable(data.schema.names):
        return list(data.schema.names)
    return [str(name) for name in getattr(data, "column_names", None) or data.columns]


def with_added(data: Any, added: Mapping[str, list[Any]]) -> Any:
    """Returns data with further fields, as a value of the same type. :func:`refuse_added` says what can have them."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    module, kind = library_class(data)
    if isinstance(data, pa.Table):
        for name, values in added.items():
            data = data.append_column(name, pa.array(values, type=_type_of(values)))
        return data
    if module == "pandas":
        return data.assign(**{name: list(values) for name, values in added.items()})
    if module == "polars":
        import polars as pl

        return data.with_columns([pl.from_arrow(pa.array(values, type=_type_of(values))).alias(name) for name, values in added.items()])
    if kind == "DatasetDict":
        splits, start = {}, 0
        for name, split in data.items():
            end = start + len(split)
            splits[name] = with_added(split, {field: values[start:end] for field, values in added.items()})
            start = end
        return type(data)(splits)
    if module == "datasets":
        for name, values in added.items():
            data = data.add_column(name, values)
        return data
    if isinstance(data, Mapping):
        return {**data, **added}
    rows = zip(data, *added.values())
    return type(data)({**row, **dict(zip(added, values))} for row, *values in rows)


def _type_of(values: Sequence[Any]) -> Any:
    """Returns the type of a column of added values, which may all be empty lists."""
    import pyarrow as pa

    return pa.list_(pa.string()) if any(isinstance(value, list) for value in values) else None


def _select_splits(data: Any, rows: Any) -> Any:
    """Returns a dictionary of data sets with the rows, which are numbered through all of them."""
    selected, start = {}, 0
    for name, split in data.items():
        end = start + len(split)
        selected[name] = split.select(rows[(rows >= start) & (rows < end)] - start)
        start = end
    return type(data)(selected)


def _take(column: Any, rows: Any) -> Any:
    """Returns the values of a column at some rows, including types for which pyarrow has no `take`
    (string views and run-end encoding)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_encode(_take(pc.run_end_decode(column), rows), run_end_type=column.type.run_end_type)
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    plain = views.get(column.type)
    taken = (column if plain is None else column.cast(plain)).take(pa.array(rows))
    return taken if plain is None else taken.cast(column.type)


def with_texts(data: Any, text: str, left_out: Mapping[int, Sequence[int]]) -> Any:
    """Returns data without parts of some texts, as a value of the same type.

    ``left_out`` has for the number of a row the start and the end of each part, ascending, in bytes of its text.
    """
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        columns = [_cut_column(column, left_out) if name == text else column for name, column in zip(data.schema.names, data.columns)]
        return type(data).from_arrays(columns, schema=data.schema)
    kind = library_class(data)[1]
    if kind == "DataFrame":
        cut = _cut_column(data[text], left_out)
        return data.assign(**{text: cut}) if hasattr(data, "assign") else data.with_columns(cut)
    if kind == "DatasetDict":
        splits, start = {}, 0
        for name, split in data.items():
            places = range(start, start + len(split))
            splits[name] = with_texts(split, text, {row - start: left_out[row] for row in places if row in left_out})
            start += len(split)
        return type(data)(splits)
    if kind == "Dataset":
        names, features = data.column_names, data.features
        cut = _cut_column(list(data.with_format(None)[text]), left_out)
        # Added before the other one is removed, because a data set without columns has no rows.
        other = next(f"text{at}" for at in range(len(names) + 1) if f"text{at}" not in names)
        data = data.add_column(other, cut).remove_columns(text).rename_column(other, text).select_columns(names)
        return data.cast(features) if data.features != features else data
    if isinstance(data, Mapping):
        return {**data, text: _cut_column(data[text], left_out)}
    if isinstance(data, Sequence) and len(data) and isinstance(data[next(iter(left_out), 0)], Mapping):
        rows = [
            {**row, text: cut_text(row[text], left_out[at])} if at in left_out else row for at, row in enumerate(data)
        ]
        return tuple(rows) if isinstance(data, tuple) else rows
    return _cut_column(data, left_out)


def _cut_column(column: Any, left_out: Mapping[int, Sequence[int]]) -> Any:
    """Returns a column of texts without parts of some, as a value of the same type."""
    import pyarrow as pa

    if not left_out:
        return column
    rows = list(left_out)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        texts = [cut_text(column[row].as_py(), left_out[row]) for row in rows]
        places = list(range(len(column)))
        for number, row in enumerate(rows):
            places[row] = len(column) + number
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        taken = _take(pa.chunked_array([*chunks, pa.array(texts, column.type)]), places)
        return taken if isinstance(column, pa.ChunkedArray) else taken.combine_chunks()
    texts = [cut_text(column[row] if not hasattr(column, "iloc") else column.iloc[row], left_out[row]) for row in rows]
    module, _ = library_class(column)
    if module == "polars":
        import polars as pl

        values = column.to_list()
        for row, cut in zip(rows, texts):
            values[row] = cut
        return pl.Series(column.name, values, column.dtype)
    if module == "pandas" or module == "numpy":
        copy = column.copy()
        target = copy.iloc if hasattr(copy, "iloc") else copy
        target[rows] = texts
        return copy
    values = list(column)
    for row, cut in zip(rows, texts):
        values[row] = cut
    return tuple(values) if isinstance(column, tuple) else values


def cut_text(text: str, parts: Sequence[int]) -> str:
    """Returns a text without the bytes from each start to its end."""
    whole, rest, place = text.encode(), b"", 0
    for start, end in zip(parts[::2], parts[1::2]):
        rest += whole[place:start]
        place = end
    return (rest + whole[place:]).decode()
