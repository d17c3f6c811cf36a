"""Columns whose values no Arrow type holds. They may be present in data, and are refused where they are used."""

from __future__ import annotations

import numbers
from typing import Any, Iterable, Optional

#: Problems of such columns, each the name of the only field of the placeholder.
_SEVERAL_TYPES = "values of several types"
_TOO_LARGE = "whole numbers beyond 64 bits"


def placeholder_of(values: Iterable[Any]) -> Any:
    """Returns a column of nulls whose type says what is wrong with the values."""
    import pyarrow as pa

    several = list(values)
    numbers_only = all(one is None or isinstance(one, numbers.Integral) for one in several)
    return pa.nulls(len(several), pa.struct({_TOO_LARGE if numbers_only else _SEVERAL_TYPES: pa.null()}))


def problem_of_placeholder(kind: Any) -> Optional[str]:
    """Returns the problem of the values of a placeholder; None for other types."""
    import pyarrow as pa

    if pa.types.is_struct(kind) and kind.num_fields == 1 and kind.field(0).name in (_SEVERAL_TYPES, _TOO_LARGE):
        return str(kind.field(0).name)
    return None
