"""The results of runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional

from .._recipe import recipe_of
from .._words import counted
from ._dedup_run import DedupRun
from ._key_filters import rows_without

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ._passage_run import PassageRun

#: Largest number of removed ids that are broadcast; of more, a filter goes to every task.
_BROADCAST = 1_000_000


class Deduplicated:
    """The result of :func:`dedup`.

    Spark, or the checkpoint directory if given, holds the tables for later steps until :meth:`unpersist`.

    >>> from lookalike import spark as las
    >>> rows = [("1", "one and the same text"), ("2", "something else"), ("3", "One and the same text!"), ("4", None)]
    >>> result = las.dedup(spark.createDataFrame(rows, "id string, text string"))
    >>> sorted(row.id for row in result.kept.collect())
    ['1', '2']
    >>> [row.id for row in result.rejected.collect()]
    ['4']
    >>> result.unpersist()
    """

    def __init__(
        self, run: DedupRun, removed: "DataFrame", count: int, audit: Optional[dict[str, Any]] = None
    ) -> None:
        self._run = run
        self._count = count
        #: Estimate of the missed and the wrong matches, named as ``lookalike dedup --json`` names it; None if the run
        #: was not audited.
        self.audit = audit
        #: ``id, kept, similarity, method, threshold, cluster``: every removed document with its most
        #: similar kept document.
        self.removed = removed

    @cached_property
    def kept(self) -> "DataFrame":
        """The kept rows of the data, with all their columns."""
        from pyspark.sql import functions as F

        run = self._run
        gone = self.removed.select(F.col("id").alias("__removed"))
        if run.unusable:
            gone = gone.union(run.unusable_ids())
        data = run.data.where(~run.is_null)
        count = self._count + len(run.unusable)
        if count > _BROADCAST:
            return rows_without(data, run.id, gone, count, run.limits.filter_memory)
        return data.join(F.broadcast(gone), run.id.cast("string") == F.col("__removed"), "left_anti")

    @property
    def rejected(self) -> "DataFrame":
        """The rows that are not valid and are in no other table: their text is null, or `reasons` has the
        reason."""
        return self._run.rejected()

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons, by id, why rows with a text are not valid."""
        return dict(self._run.unusable)

    @cached_property
    def clusters(self) -> "DataFrame":
        """``id, cluster, representative, similarity, kept``: the documents in clusters of two or more."""
        from pyspark.sql import functions as F

        def row(table: "DataFrame", id: str, similarity: "Column", kept: bool) -> "DataFrame":
            named = [F.col("kept").alias(name) for name in ("cluster", "representative")]
            flag = F.lit(kept).alias("kept")
            return table.select(F.col(id).alias("id"), *named, similarity.alias("similarity"), flag)

        removed = row(self.removed, "id", F.col("similarity"), False)
        kept = self.removed.select("kept").distinct()
        return removed.union(row(kept, "kept", F.lit(1.0), True))

    @property
    def pairs(self) -> "DataFrame":
        """``a, b, similarity``: each removed document ``b`` with its kept document ``a``."""
        from pyspark.sql import functions as F

        return self.removed.select(F.col("kept").alias("a"), F.col("id").alias("b"), "similarity")

    def summary(self) -> dict[str, Any]:
        """Numbers of documents and clusters and the settings, named as ``lookalike dedup --json`` names them, and
        ``audit`` if the run was audited.

        Spark counts the rows of the data and the clusters for it.
        """
        from pyspark.sql import functions as F

        run = self._run
        nulls = F.coalesce(F.sum(F.when(run.is_null, 1).otherwise(0)), F.lit(0))
        rows, rejected = run.data.agg(F.count(F.lit(1)), nulls).collect()[0]
        rejected += len(run.unusable)
        clusters = self.removed.select("kept").distinct().count() if self._count else 0
        return {
            "documents": rows - rejected,
            "kept": rows - rejected - self._count,
            "removed": self._count,
            "clusters": clusters,
            "rejected": rejected,
            "method": dict(run.job.rule).get("method") or "auto",
            "threshold": run.job.threshold,
            "recipe": recipe_of(run.job.recipe).name,
            **({} if self.audit is None else {"audit": self.audit}),
        }

    def __repr__(self) -> str:
        return f"<Deduplicated DataFrame: {counted(self._count, 'document')} removed; summary() counts the others>"

    def unpersist(self) -> None:
        """Releases the tables that Spark holds for this result."""
        self._run.unpersist()


class Passages:
    """The result of :func:`passages`.

    Spark, or the checkpoint directory if given, holds the tables for later steps until :meth:`unpersist`.

    >>> from lookalike import spark as las
    >>> rows = [("1", "the ferry leaves at seven"), ("2", "so the ferry leaves at seven"), ("3", None)]
    >>> found = las.passages(spark.createDataFrame(rows, "id string, text string"), min_length=4)
    >>> found.summary["passages"], found.summary["documents"], [row.id for row in found.rejected.collect()]
    (1, 2, ['3'])
    >>> found.unpersist()
    """

    def __init__(self, run: "PassageRun", passages: "DataFrame") -> None:
        self._run = run
        #: ``document, source, start, end, source_start, source_end, length, similarity, kind``: every passage.
        self.passages = passages

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Numbers of documents, passages and boilerplate, named as ``lookalike passages --json`` names them."""
        from pyspark.sql import functions as F

        pairs = self.passages.select("document", "source").distinct()
        of_pairs = pairs.agg(F.count("*"), F.countDistinct("document")).collect()[0]
        told = {"passages": self.passages.count(), "pairs": of_pairs[0], "copying": of_pairs[1]}
        return {**self._run.told, **told}

    @property
    def rejected(self) -> "DataFrame":
        """The rows of the data that are not valid, because their text is null or for the reason in `reasons`."""
        return self._run.rejected()

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons, by id, why rows with a text are not valid."""
        return dict(self._run.unusable)

    def unpersist(self) -> None:
        """Releases the tables that Spark holds for this result."""
        self._run.unpersist()
