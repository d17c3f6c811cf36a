"""The accessor ``lookalike`` of frames and columns of pandas. Importing this module registers it.

>>> import pandas as pd, lookalike.pandas
>>> frame = pd.DataFrame({"text": ["The ferry leaves at seven.", "A bridge.", "the FERRY leaves at seven!"]})
>>> frame.lookalike.unique().index.tolist()
[0, 1]
>>> frame[frame.lookalike.is_duplicate()].index.tolist()
[2]
>>> frame["text"].lookalike.is_duplicate().tolist()
[False, False, True]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import register_dataframe_accessor, register_series_accessor

from ._accessor import FrameAccessor, SeriesAccessor

__all__ = ["LookalikeAccessor", "LookalikeSeriesAccessor"]


@register_dataframe_accessor("lookalike")
class LookalikeAccessor(FrameAccessor):
    """The calls of this package on a frame of pandas."""

    def _column(self, values: np.ndarray) -> Any:
        return pd.Series(values, index=self._rows.index)

    def _nullable_column(self, values: np.ndarray, missing: np.ndarray) -> Any:
        return _nullable_series(self._rows, values, missing)


@register_series_accessor("lookalike")
class LookalikeSeriesAccessor(SeriesAccessor):
    """The calls of this package on a column of pandas."""

    def _column(self, values: np.ndarray) -> Any:
        return pd.Series(values, index=self._rows.index)

    def _nullable_column(self, values: np.ndarray, missing: np.ndarray) -> Any:
        return _nullable_series(self._rows, values, missing)


def _nullable_series(rows: Any, values: np.ndarray, missing: np.ndarray) -> Any:
    return pd.Series(pd.arrays.IntegerArray(values, missing), index=rows.index, name="simhash")
