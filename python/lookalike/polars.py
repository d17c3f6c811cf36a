"""The namespace ``lookalike`` of frames of polars. Importing this module registers it.

>>> import polars as pl, lookalike.polars
>>> frame = pl.DataFrame({"text": ["The ferry leaves at seven.", "A bridge.", "the FERRY leaves at seven!"]})
>>> frame.lookalike.unique().height
2
>>> frame.lookalike.is_duplicate().tolist()
[False, False, True]
"""

from __future__ import annotations

from polars.api import register_dataframe_namespace

from ._accessor import FrameAccessor

__all__ = ["LookalikeNamespace"]


@register_dataframe_namespace("lookalike")
class LookalikeNamespace(FrameAccessor):
    """The calls of this package on a frame of polars."""
