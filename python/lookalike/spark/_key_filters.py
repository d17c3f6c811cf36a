"""Filters and static tables of keys that are in a table of Spark, built by tasks; see :mod:`lookalike._key_filter` and
:mod:`lookalike._destination_table`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Union

from .. import _steps
from .._destination_table import DestinationLayout, DestinationTable
from .._key_filter import FilterLayout, KeyFilter
from ._session import collect_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Default of the largest size in bytes of a filter.
FILTER_MEMORY = 64 << 20


def build_filter(keys: "DataFrame", count: int, max_bytes: int) -> KeyFilter:
    """Returns a filter of the column `key`, which has about ``count`` values. The driver receives the filter alone."""
    layout = FilterLayout.for_keys(count, max_bytes)
    return KeyFilter(layout, _built_slices(keys, layout))


def build_table(keys: "DataFrame", layout: DestinationLayout) -> DestinationTable:
    """Returns a table of the columns `key` and `destination`. The driver receives the table alone."""
    return DestinationTable(layout, _built_slices(keys, layout))


def _built_slices(keys: "DataFrame", layout: Union[FilterLayout, DestinationLayout]) -> Iterator[tuple[int, bytes]]:
    columns = ", ".join(f"{name} {kind}" for name, kind in keys.dtypes)
    sliced = keys.mapInArrow(_steps.hash_slices(layout), f"slice int, {columns}").repartition("slice")
    built = collect_arrow(sliced.mapInArrow(_steps.build_slices(layout), "slice int, block binary"))
    return zip(built.column("slice").to_pylist(), built.column("block").to_pylist())


def rows_without(data: "DataFrame", id: "Column", gone: "DataFrame", count: int, max_bytes: int) -> "DataFrame":
    """Returns the rows of the data whose ids are not among ``count`` of ``gone``, which has the column `__removed`.

    The rows stay where they are. A filter of the ids goes to every task. The ids that pass it although they are not
    among those of ``gone`` are found by a join of ids alone; they are few.
    """
    from pyspark.sql import functions as F

    built = build_filter(gone.select(F.xxhash64("__removed").alias("key")), count, max_bytes)
    may_be_gone = F.pandas_udf(_hits(built), "boolean")
    marked = data.withColumn("__id", id.cast("string"))
    suspected = marked.select("__id").where(may_be_gone(F.xxhash64("__id")))
    spared = suspected.join(gone, F.col("__id") == F.col("__removed"), "left_anti").withColumnRenamed("__id", "__spared")
    marked = marked.withColumn("__hit", may_be_gone(F.xxhash64("__id")))
    told = marked.join(F.broadcast(spared), F.col("__id") == F.col("__spared"), "left")
    return told.where(~F.col("__hit") | F.col("__spared").isNotNull()).drop("__id", "__hit", "__spared")


def _hits(built: KeyFilter) -> Any:
    """Returns a function of a series of keys for `pandas_udf`."""
    import pandas as pd

    def hits(keys: Any) -> Any:
        return pd.Series(built.has(keys.to_numpy()))

    # Spark takes the kind of the function from its types, and not from names of types.
    hits.__annotations__ = {"keys": pd.Series, "return": pd.Series}
    return hits
