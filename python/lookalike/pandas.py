"""The accessor ``lookalike`` of frames of pandas. Importing this module registers it.

>>> import pandas as pd, lookalike.pandas
>>> frame = pd.DataFrame({"text": ["The ferry leaves at seven.", "A bridge.", "the FERRY leaves at seven!"]})
>>> frame.lookalike.unique().index.tolist()
[0, 1]
>>> frame.lookalike.is_duplicate().tolist()
[False, False, True]
"""

from __future__ import annotations

from pandas.api.extensions import register_dataframe_accessor

from ._accessor import FrameAccessor

__all__ = ["LookalikeAccessor"]


@register_dataframe_accessor("lookalike")
class LookalikeAccessor(FrameAccessor):
    """The calls of this package on a frame of pandas."""
