"""The namespace ``lookalike`` of frames and columns of polars. Importing this module registers it.

>>> import polars as pl, lookalike.polars
>>> frame = pl.DataFrame({"text": ["The ferry leaves at seven.", "A bridge.", "the FERRY leaves at seven!"]})
>>> frame.lookalike.unique().height
2
>>> frame.filter(~frame.lookalike.is_duplicate()).height
2
>>> frame["text"].lookalike.is_duplicate().to_list()
[False, False, True]
>>> frame.lazy().lookalike.unique().collect().height
2
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from polars.api import register_dataframe_namespace, register_lazyframe_namespace, register_series_namespace

from ._accessor import FrameAccessor, SeriesAccessor
from ._options import DedupOptions, Unpack

__all__ = ["LookalikeLazyNamespace", "LookalikeNamespace", "LookalikeSeriesNamespace"]


@register_dataframe_namespace("lookalike")
class LookalikeNamespace(FrameAccessor):
    """The calls of this package on a frame of polars."""

    def _column(self, values: np.ndarray) -> Any:
        return pl.Series("is_duplicate", values)

    def _nullable_column(self, values: np.ndarray, missing: np.ndarray) -> Any:
        return _nullable_series(values, missing)


@register_lazyframe_namespace("lookalike")
class LookalikeLazyNamespace(LookalikeNamespace):
    """The calls of this package on a lazy frame of polars, which is collected for them once."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows.collect())

    def unique(self, **options: Unpack[DedupOptions]) -> Any:
        """Returns the kept rows of :meth:`dedup`, as a lazy frame."""
        return super().unique(**options).lazy()


@register_series_namespace("lookalike")
class LookalikeSeriesNamespace(SeriesAccessor):
    """The calls of this package on a column of polars."""

    def _column(self, values: np.ndarray) -> Any:
        return pl.Series("is_duplicate", values)

    def _nullable_column(self, values: np.ndarray, missing: np.ndarray) -> Any:
        return _nullable_series(values, missing)


def _nullable_series(values: np.ndarray, missing: np.ndarray) -> Any:
    column = pl.Series("simhash", values)
    return column.set(pl.Series(missing), None)
