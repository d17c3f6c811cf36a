"""Ids of rows: their type in results, rows without an id, and positions.

The engine compares ids as strings. Results give them back in the type of the column, so that a result can be joined
with the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

from ._choices import IdField
from ._data import refuse_repeated
from ._errors import InputError
from ._placeholders import problem_of_placeholder


@dataclass(frozen=True)
class IdColumn:
    """The ids of a table: the column if its type is not a string, and the number of rows without an id."""

    typed: Optional[Any] = None
    missing: int = 0


def named_ids(stream: Any, id: IdField, what: str, strict: bool = False) -> tuple[Any, IdColumn]:
    """Returns a stream whose rows all have an id, and its ids.

    A row without an id gets the id ``what:row``, with rows from 1. So it is compared and reported like every other.
    ``strict`` leaves it as it is, for the engine to refuse.
    """
    import pyarrow as pa

    name = "id" if id is None else id
    if not isinstance(stream, pa.Table) or not isinstance(name, str):
        return stream, IdColumn()
    refuse_repeated(stream, [name], what)
    at = stream.schema.get_field_index(name)
    if at < 0:
        return stream, IdColumn()
    column = _plain_ids(stream.column(at), name, what)
    if column.type != stream.schema.field(at).type:
        stream = stream.set_column(at, name, column)
    if pa.types.is_nested(column.type):
        return stream, IdColumn()
    if _is_uuid(column.type):
        strings = _filled(column, what, keeps_nulls=strict)
        return stream.set_column(at, name, strings), IdColumn(column, column.null_count)
    typed = None if _is_text(column.type) or pa.types.is_null(column.type) else column
    if strict or not column.null_count:
        return stream, IdColumn(typed)
    return stream.set_column(at, name, _filled(column, what)), IdColumn(typed, column.null_count)


def _plain_ids(column: Any, name: str, what: str) -> Any:
    """Returns ids without a dictionary of numbers, and refuses values that no column of ids can have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    problem = problem_of_placeholder(column.type)
    if problem:
        raise InputError(f"the ids of {what} in `{name}` have {problem}: give strings, or whole numbers below 2**64")
    if pa.types.is_dictionary(column.type) and not _is_text(column.type):
        return pc.cast(column, column.type.value_type)
    return column


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    views = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind))


def _filled(column: Any, what: str, keeps_nulls: bool = False) -> Any:
    """Returns ids as strings, with ``what:row`` in place of nulls."""
    import pyarrow as pa

    values = [
        (None if keeps_nulls else f"{what}:{row}") if value is None else value if isinstance(value, str) else str(value)
        for row, value in enumerate(column.to_pylist(), 1)
    ]
    return pa.array(values, pa.large_string())


#: Empty tables as the engine gave them, with their results, by what they were made of. The engine gives one empty table
#: for a schema. An entry holds its table, so that no other one gets its identity.
_EMPTY: dict[tuple[int, tuple[tuple[str, str], ...], int], tuple[Any, Any]] = {}
_MOST_EMPTY = 32


def located(table: Any, roles: Sequence[tuple[str, str]], ids: dict[str, IdColumn]) -> Any:
    """Returns a table of results with the position of each row, and with ids in their type.

    ``roles`` has for each id its column and the prefix of its columns ``source`` and ``row``. Positions count from 0
    within the source.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if table is None:
        return None
    key = (id(table), tuple(roles), len(ids))
    is_plain = not table.num_rows and all(column.typed is None for column in ids.values())
    if is_plain and key in _EMPTY:
        return _EMPTY[key][1]
    empty = table
    for column, prefix in roles:
        positions = pc.subtract(table[f"{prefix}row"].cast(pa.int64()), 1)
        typed = _typed(table, prefix, positions, ids)
        if typed is not None:
            table = table.set_column(table.schema.get_field_index(column), column, typed)
        table = table.append_column(f"{prefix}position", positions)
    if is_plain and len(_EMPTY) < _MOST_EMPTY:
        _EMPTY[key] = (empty, table)
    return table


def name_by_ids(table: Any, columns: Sequence[str], names: Any, ids: Any) -> Any:
    """Returns a table whose columns with names of documents have the ids in their type.

    ``names`` are the ids as the engine writes them, and ``ids`` the same ones in the type of their column. A column with
    a name that is not among them stays as it is.
    """
    import pyarrow.compute as pc

    if table is None or names.type == ids.type:
        return table
    known = names.combine_chunks()
    for column in columns:
        at = table.schema.get_field_index(column)
        places = pc.index_in(table.column(at), value_set=known) if at >= 0 else None
        if places is not None and not places.null_count:
            table = table.set_column(at, column, ids.take(places))
    return table


def cast_ids(table: Any, columns: Sequence[str], ids: dict[str, IdColumn]) -> Any:
    """Returns a table whose columns with ids as text have whole numbers where the ids of all sources are.

    A row without an id is null, as in :func:`located`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {None if column.typed is None else column.typed.type for column in ids.values()}
    kind = next(iter(kinds))
    if len(kinds) != 1 or kind is None or not pa.types.is_integer(kind):
        return table
    for column in columns:
        at = table.schema.get_field_index(column)
        texts = table.column(at)
        is_missing = pc.match_substring_regex(texts, "^(data|against):")
        table = table.set_column(at, column, pc.cast(pc.if_else(is_missing, None, texts), kind))
    return table


def _typed(table: Any, prefix: str, positions: Any, ids: dict[str, IdColumn]) -> Optional[Any]:
    """Returns ids in the type of their column, or None if they stay strings: where two sources have two types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: dict[str, Any] = {source: column.typed for source, column in ids.items()}
    kinds = {None if typed is None else typed.type for typed in columns.values()}
    if len(kinds) != 1 or None in kinds:
        return None
    if len(columns) == 1:
        return next(iter(columns.values())).take(positions)
    starts: dict[str, int] = {}
    parts: list[Any] = []
    start = 0
    for source, typed in columns.items():
        starts[source] = start
        parts.extend(typed.chunks)
        start += len(typed)
    offsets = pa.array([starts[source] for source in table[f"{prefix}source"].to_pylist()], pa.int64())
    return pa.chunked_array(parts, type=next(iter(kinds))).take(pc.add(positions, offsets))
