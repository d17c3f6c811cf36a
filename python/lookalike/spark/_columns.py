"""The columns of DataFrames that a run reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Sequence

from .._errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Types without a single value.
COMPOSED = ("array", "map", "struct", "binary", "variant")


@dataclass(frozen=True)
class Columns:
    """Names of the columns that a run needs."""

    text: list[str]
    id: str
    #: Columns with the values that order documents.
    values: Sequence[str] = ()
    part: Optional[str] = None
    features: Optional[str] = None

    def of(self, data: "DataFrame", given: Optional[bool] = None) -> "DataFrame":
        """Returns the columns under the names that the steps use."""
        from pyspark.sql import functions as F

        columns = [self.id_of(data).cast("string").alias("id")]
        text = self.text_of(data)
        columns += [] if text is None else [text.alias("text")]
        values = [(f"value{at}", column) for at, column in enumerate(self.values)]
        for name, column in (*values, ("part", self.part), ("features", self.features)):
            if column is not None:
                refused = () if name == "features" else COMPOSED
                columns.append(column_of(data, column, refused).alias(name))
        if given is not None:
            columns.append(F.lit(given).alias("given"))
        return data.select(*columns)

    def id_of(self, data: "DataFrame") -> "Column":
        """Returns the column of the ids."""
        return column_of(data, self.id, (*COMPOSED, "boolean"))

    def text_of(self, data: "DataFrame") -> Optional["Column"]:
        """Returns the column of the text; None if features replace the text."""
        from pyspark.sql import functions as F

        if self.features is not None and not all(has_column(data, name) for name in self.text):
            return None
        texts = [column_of(data, name, strings=True) for name in self.text]
        if len(texts) == 1:
            return texts[0]
        return F.when(F.coalesce(*texts).isNotNull(), F.concat_ws("\n", *texts))


def has_column(data: "DataFrame", name: str) -> bool:
    return name in data.columns or ("." in name and name.split(".")[0] in data.columns)


def column_of(data: "DataFrame", name: str, refused: Sequence[str] = (), strings: bool = False) -> "Column":
    """Returns a column by its name, or a nested field by its path, for example ``a.b``."""
    if not has_column(data, name):
        there = ", ".join(f"'{other}'" for other in data.columns)
        raise InputError(f"the data has no column '{name}' among {there}")
    if name in data.columns:
        column = data["`" + name.replace("`", "``") + "`"]
        kind = data.schema[name].dataType
    else:
        column = data[name]
        kind = data.select(column).schema[0].dataType
    if strings and kind.typeName() not in ("string", "char", "varchar", "void"):
        raise InputError(
            f"the column '{name}' is of the type {kind.simpleString()}, which cannot be used as text: cast "
            "it to a string"
        )
    if kind.typeName() in refused:
        raise InputError(
            f"the column '{name}' is of the type {kind.simpleString()}, which cannot be used here: give a "
            "column of single values, for example strings or numbers"
        )
    return column.cast("string") if strings else column
