"""The data of a run, and the tables that Spark or a checkpoint directory holds for it."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Optional, Sequence

from .._errors import InputError
from ._columns import Columns
from ._session import refuse_old_spark, refuse_other_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Parts of keys for each partition of a shuffle, so that partitions have about equal sizes.
PARTS = 4

#: Columns of a table of blocks.
BLOCKS = "kind int, part int, block binary"


class RunTables:
    """The data of a run, and the tables that Spark or a checkpoint directory holds for it."""

    def __init__(
        self, data: "DataFrame", columns: Columns, checkpoint: Optional[str], against: Optional["DataFrame"]
    ) -> None:
        from pyspark.sql import functions as F

        for frame in (data, against):
            if frame is not None:
                refuse_other_frame(frame)
        refuse_old_spark(data.sparkSession)
        self.data = data
        self.id = columns.id_of(data)
        text = columns.text_of(data)
        self.is_null = F.lit(False) if text is None else text.isNull()
        self.spark = data.sparkSession
        self.source = columns.of(data, None if against is None else False)
        if against is not None:
            self.source = self.source.unionByName(columns.of(against, True))
        self.checkpoint = f"{checkpoint.rstrip('/')}/{uuid.uuid4().hex}" if checkpoint else None
        self.held: list["DataFrame"] = []
        self.parts = PARTS * int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200)
        self.written = 0
        #: Ids of rows that have a text but are not valid, and the reasons.
        self.unusable: list[tuple[str, str]] = []

    def reject(self, told: list[bytes]) -> None:
        """Stores rows that are not valid."""
        self.unusable += [tuple(json.loads(row)) for row in told]

    def unusable_ids(self) -> "DataFrame":
        """Returns the ids of rows that have a text but are not valid."""
        return self.spark.createDataFrame([(id,) for id, _ in self.unusable], "__removed string")

    def rejected(self) -> "DataFrame":
        """Returns the rows of the data that are not valid."""
        from pyspark.sql import functions as F

        if not self.unusable:
            return self.data.where(self.is_null)
        unusable = F.broadcast(self.unusable_ids())
        told = self.data.join(unusable, self.id.cast("string") == F.col("__removed"), "left")
        return told.where(self.is_null | F.col("__removed").isNotNull()).drop("__removed")

    def keep(self, table: "DataFrame") -> "DataFrame":
        """Returns the table, computed once and stored in the checkpoint directory or by Spark."""
        if self.checkpoint is None:
            table = table.persist()
            self.held.append(table)
            return table
        self.written += 1
        path = f"{self.checkpoint}/{self.written}"
        table.write.parquet(path)
        # With its columns, because an engine may write no file for a table without rows.
        return self.spark.read.schema(table.schema).parquet(path)

    def unpersist(self) -> None:
        """Releases the tables that Spark holds."""
        for table in self.held:
            table.unpersist()
        self.held.clear()


def in_order(table: "DataFrame", whole: Sequence[str], *order: str) -> "DataFrame":
    """Returns the rows with equal values of the columns ``whole`` one after another in one partition, in an order.

    The rows are numbered in a further column, because an engine may drop a sort that nothing seems to need, as Sail
    does before a step in Python. For a window function it keeps the order.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    return table.withColumn("place", F.row_number().over(Window.partitionBy(*whole).orderBy(*order)))


def union_of(tables: list["DataFrame"]) -> "DataFrame":
    """Returns the rows of all tables, which have the same columns."""
    first, *rest = tables
    for table in rest:
        first = first.union(table)
    return first


def refuse_repeated(count: int, some: list[bytes], whose: str) -> None:
    """Refuses ids that occur in several rows, of which it names some."""
    if count:
        shown = ", ".join(f"'{bytes(id).decode()}'" for id in sorted(some)[:3])
        raise InputError(
            f"{count} ids{whose} occur in more than one row, for example {shown}: give every document "
            "a unique id"
        )
