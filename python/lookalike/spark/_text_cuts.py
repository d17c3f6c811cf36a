"""Parts that are cut from the texts of a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._data import cut_text
from .._errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Largest number of documents whose cuts are broadcast, so that no text travels. Beyond it, Spark joins the tables.
_BROADCAST = 1_000_000

_COLUMNS = ("id", "length", "left_out")


@dataclass(frozen=True)
class TextCuts:
    """What is cut from documents with findings."""

    #: ``id, length, left_out``: the bytes of the text, and the start and the end of each part in bytes; both are null if
    #: nothing of the document stays.
    table: "DataFrame"
    #: Number of the documents of which a part stays.
    count: int

    def removed(self) -> "DataFrame":
        """Returns the ids of the documents of which nothing stays."""
        return self.table.where("left_out IS NULL").select("id")

    def apply(self, rows: "DataFrame", id: "Column", text: str) -> "DataFrame":
        """Returns rows of which the column of texts lacks the parts; all others are as they were."""
        from pyspark.sql import functions as F

        if not self.count:
            return rows
        columns = [F.col(name).alias(f"__cut_{name}") for name in _COLUMNS]
        cuts = self.table.where("left_out IS NOT NULL").select(*columns)
        if self.count <= _BROADCAST:
            cuts = F.broadcast(cuts)
        joined = rows.join(cuts, id.cast("string") == F.col("__cut_id"), "left")
        whole = F.col("`" + text.replace("`", "``") + "`")
        is_cut = F.col("__cut_id").isNotNull()
        # Only the texts that are cut go to Python.
        rest = F.pandas_udf(_rests(), "string")(F.when(is_cut, whole), "__cut_length", "__cut_left_out")
        cut = joined.withColumn(text, F.when(is_cut, rest).otherwise(whole))
        return cut.drop(*(f"__cut_{name}" for name in _COLUMNS))


def _rests() -> Any:
    """Returns a function of three series for `pandas_udf`: texts, their lengths and the parts that are cut."""
    import pandas as pd

    def rests(texts: Any, lengths: Any, parts: Any) -> Any:
        return pd.Series([_rest(*row) for row in zip(texts, lengths, parts)], dtype=object)

    # Spark takes the kind of the function from its types, and not from names of types.
    rests.__annotations__ = {"texts": pd.Series, "lengths": pd.Series, "parts": pd.Series, "return": pd.Series}
    return rests


def _rest(text: Any, length: Any, parts: Any) -> Any:
    if parts is None:
        return None
    if not isinstance(text, str) or len(text.encode()) != length:
        raise InputError(
            "a text of the data differs from the one that was searched: write or persist the data before the run"
        )
    return cut_text(text, [int(place) for place in parts])
