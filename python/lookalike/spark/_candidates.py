"""Documents that are in a component or repeat a text, selected by tasks that read the data again.

A text with a link crosses the network once, to its component, if every task holds the destinations of all nodes
(:func:`by_destinations`) or the driver has found the components. Otherwise (:func:`by_filters`) it goes to the row of
its node first, which has the component.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from .. import _steps
from .._destination_table import DestinationLayout
from ._key_filters import build_filter, build_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .._key_filter import KeyFilter
    from .._steps import Job
    from ._tables import RunTables

#: Columns of repeated texts.
REPEATS = "node bigint, name binary, first binary, kept string"

#: Largest number of repeated texts that are broadcast.
_FEW_REPEATS = 500_000


@dataclass(frozen=True)
class Selection:
    """What is selected: the documents with a link, and unless pairs are wanted, those that repeat a text."""

    run: "RunTables"
    job: "Job"
    #: The component of every node with a link, the number of these nodes, and whether the driver has them.
    labels: "DataFrame"
    nodes: int
    is_on_driver: bool
    #: Repeated texts and their number; None if no text is repeated.
    repeats: Optional["DataFrame"]
    names: int
    are_pairs: bool

    def collected(self, filter_memory: int) -> tuple["DataFrame", list[str]]:
        """Returns the selected rows, and the columns that rows of the same component have in common."""
        layout = DestinationLayout.for_keys(self.nodes, filter_memory)
        joins_are_broadcasts = self.is_on_driver and self.names <= _FEW_REPEATS
        if layout is None or joins_are_broadcasts:
            return by_filters(self, filter_memory), ["component"]
        return by_destinations(self, layout, filter_memory), ["destination", "component"]

    def repeated_filter(self, filter_memory: int) -> Optional["KeyFilter"]:
        from pyspark.sql import functions as F

        if self.repeats is None:
            return None
        return build_filter(self.repeats.select(F.col("node").alias("key")), self.names, filter_memory)


def by_destinations(selection: Selection, layout: DestinationLayout, filter_memory: int) -> "DataFrame":
    """Returns the selected rows, each in the partition of its destination.

    Documents, components of nodes and repeated texts are shuffled together by destination, once. Window functions over
    the rows of a node and of a text then replace joins, because a join by more columns than the destination would
    shuffle again.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # A hash of the component and not its high bits, because a component is the smallest of its nodes.
    hashed = F.xxhash64("component").bitwiseAND(F.lit(0xFFFF)).cast("int")
    labels = selection.labels.withColumn("destination", hashed)
    table = build_table(labels.select(F.col("node").alias("key"), "destination"), layout)
    step = _steps.candidate_texts(selection.job, table, selection.repeated_filter(filter_memory))
    documents = selection.run.source.mapInArrow(step, _CANDIDATES).drop("may_repeat")
    documents = documents.withColumn("is_document", F.lit(True))
    rows = documents.unionByName(labels.withColumn("is_document", F.lit(False)), allowMissingColumns=True)
    if selection.repeats is None:
        rows = rows.select("*", *_nulls("first binary", "kept string"))
    else:
        addressed = selection.repeats.mapInArrow(_steps.address_repeats(table), f"{REPEATS}, destination int")
        addressed = addressed.withColumn("is_document", F.lit(False))
        rows = rows.unionByName(addressed, allowMissingColumns=True)
    # Of a node, its component comes first, which has no name. The same order serves both windows.
    until_row = (Window.unboundedPreceding, Window.currentRow)
    order = [F.asc_nulls_first("name"), F.asc_nulls_first("is_document")]
    of_node = Window.partitionBy("destination", "node").orderBy(*order).rowsBetween(*until_row)
    of_text = Window.partitionBy("destination", "node", "name").orderBy(order[1]).rowsBetween(*until_row)
    rows = rows.repartition("destination").withColumn("component", F.first("component", True).over(of_node))
    if selection.repeats is not None:
        for column in ("first", "kept"):
            rows = rows.withColumn(column, F.first(column, True).over(of_text))
    rows = rows.where("is_document")
    return _collected(rows.where("component IS NOT NULL") if selection.are_pairs else rows, "destination")


def by_filters(selection: Selection, filter_memory: int) -> "DataFrame":
    """Returns the selected rows. Joins remove the few others that filters select."""
    from pyspark.sql import functions as F

    labels, repeats = selection.labels, selection.repeats
    linked = build_filter(labels.select(F.col("node").alias("key")), selection.nodes, filter_memory)
    step = _steps.candidate_texts(selection.job, linked, selection.repeated_filter(filter_memory))
    components = F.broadcast(labels) if selection.is_on_driver else labels
    rows = selection.run.source.mapInArrow(step, _CANDIDATES).drop("destination").join(components, "node", "left")
    if selection.are_pairs:
        rows = rows.where("component IS NOT NULL")
    if repeats is None:
        return _collected(rows.select("*", *_nulls("first binary", "kept string")))
    repeats = repeats.drop("node")
    if selection.names <= _FEW_REPEATS:
        return _collected(rows.join(F.broadcast(repeats), "name", "left"))
    # Only rows whose text several documents may have are sent to the place of its name. Their texts follow them.
    rows = selection.run.keep(rows)
    single = rows.where("NOT may_repeat").select("*", *_nulls("first binary", "kept string"))
    return _collected(rows.where("may_repeat").join(repeats, "name", "left").unionByName(single))


_CANDIDATES = ", ".join(f"{name} {kind}" for name, kind in _steps.CANDIDATES.items())


def _nulls(*columns: str) -> list["Column"]:
    from pyspark.sql import functions as F

    return [F.lit(None).cast(column.split()[1]).alias(column.split()[0]) for column in columns]


def _collected(rows: "DataFrame", *others: str) -> "DataFrame":
    """Returns the rows of `collect` from candidates with their components, and the first documents with their texts.
    The columns ``others`` stay."""
    from pyspark.sql import functions as F

    is_first = F.col("first").isNull() | (F.col("first") == F.col("position"))
    is_decided = F.col("component").isNull()
    rank = F.when(is_decided, 2).when(is_first, 0).otherwise(1)
    # Known documents are kept, and only the first one with a text is compared.
    is_wanted = ~(is_decided & is_first) & ~(F.col("given") & ~is_first)
    return rows.where(is_wanted).select(
        # Decided rows can go anywhere, so the hash of the id spreads them.
        F.when(is_decided, F.xxhash64("id")).otherwise(F.col("component")).alias("component"),
        rank.alias("rank"),
        "name",
        F.when(is_decided, F.encode("id", "UTF-8")).otherwise(F.col("position")).alias("position"),
        "of_part",
        F.col("first").isNotNull().alias("repeated"),
        F.when(rank == 0, F.col("text")).alias("text"),
        F.when(is_decided, F.col("kept")).alias("kept"),
        *others,
    )
