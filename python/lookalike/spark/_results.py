"""The results of runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional

from .._copy_fields import CopyFields
from .._recipe import recipe_of
from .._repeated_text_steps import PIECE, REST
from .._words import counted
from ._dedup_run import DedupRun
from ._key_filters import rows_without

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ._contamination_run import ContaminationRun
    from ._passage_run import PassageRun
    from ._repeated_text_run import RepeatedTextRun
    from ._tables import RunTables
    from ._text_cuts import TextCuts

#: Largest number of removed ids that are broadcast; of more, a filter goes to every task.
_BROADCAST = 1_000_000

#: What can be found of an item, and its rank.
_FOUND_RANKS = {"question": 1, "answer": 2, "both": 3}


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
        self, run: DedupRun, removed: "DataFrame", count: int, audit: Optional[dict[str, Any]] = None,
        copy_fields: Optional[CopyFields] = None,
    ) -> None:
        self._run = run
        self._count = count
        self._copy_fields = copy_fields
        #: Estimate of the missed and the wrong matches, named as ``lookalike dedup --json`` names it; None if the run
        #: was not audited.
        self.audit = audit
        #: ``id, kept, similarity, method, threshold, cluster``: every removed document with its most
        #: similar kept document.
        self.removed = removed

    @cached_property
    def kept(self) -> "DataFrame":
        """The kept rows of the data, with all their columns, and those of ``copies`` and ``weight``."""
        from pyspark.sql import functions as F

        gone = self.removed.select(F.col("id").alias("__removed"))
        kept = _remaining(self._run, gone, self._count, self._run.limits.filter_memory)
        return kept if self._copy_fields is None else self._with_copies(kept, self._copy_fields)

    def _with_copies(self, kept: "DataFrame", fields: CopyFields) -> "DataFrame":
        """Returns kept rows with the number of documents for which each stands, and the weight that follows from it."""
        from pyspark.sql import functions as F

        counted = self.removed.groupBy("kept").agg((F.count(F.lit(1)) + 1).alias("__copies"))
        counted = counted.withColumnRenamed("kept", "__copied")
        if fields.weight is not None:
            counted = self._with_weights(counted, fields)
        if self._count <= _BROADCAST:
            counted = F.broadcast(counted)
        rows = kept.join(counted, self._run.id.cast("string") == F.col("__copied"), "left")
        if fields.copies is not None:
            rows = rows.withColumn(fields.copies, F.coalesce(F.col("__copies"), F.lit(1).cast("bigint")))
        if fields.weight is not None:
            alone = F.lit(fields.weights_of([1])[0])
            rows = rows.withColumn(fields.weight, F.coalesce(F.col("__weight"), alone))
        return rows.drop("__copied", "__copies", "__weight")

    def _with_weights(self, counted: "DataFrame", fields: CopyFields) -> "DataFrame":
        """Returns the numbers of copies with the weight of each. The driver has the different numbers alone, which are few."""
        from pyspark.sql import functions as F

        numbers = [row["__copies"] for row in counted.select("__copies").distinct().collect()]
        weighted = list(zip(numbers, fields.weights_of(numbers)))
        weights = self._run.spark.createDataFrame(weighted, "__weighted bigint, __weight double")
        joined = counted.join(F.broadcast(weights), F.col("__copies") == F.col("__weighted"))
        return joined.select("__copied", "__copies", "__weight")

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


class RepeatedPassages:
    """The result of :func:`repeated_passages`.

    Spark, or the checkpoint directory if given, holds the tables for later steps until :meth:`unpersist`.

    >>> from lookalike import spark as las
    >>> rows = [("1", "One. The ferry leaves at seven."), ("2", "Two. The ferry leaves at seven!"), ("3", None)]
    >>> found = las.repeated_passages(spark.createDataFrame(rows, "id string, text string"), min_length=4)
    >>> sorted(tuple(row) for row in found.kept.collect())
    [('1', 'One. The ferry leaves at seven.'), ('2', 'Two. ')]
    >>> found.summary["passages"]["passages"], [row.id for row in found.rejected.collect()]
    (1, ['3'])
    >>> found.unpersist()
    """

    def __init__(self, run: "RepeatedTextRun", described: "DataFrame") -> None:
        self._run = run
        self._described = described
        #: ``id, first, start, end, first_start, first_end, length, text``: every piece of text that an earlier document
        #: has. Positions count characters from 0.
        self.cuts = described.where(f"kind = {PIECE}").drop("kind")

    @cached_property
    def kept(self) -> "DataFrame":
        """The rows of the data with all their columns, without the repeated text."""
        from pyspark.sql import functions as F

        run = self._run
        rest = self._described.where(f"kind = {REST}")
        rest = rest.select(F.col("id").alias("__cut"), F.col("text").alias("__rest"))
        rows = run.data.where(~run.is_null).join(rest, run.id.cast("string") == F.col("__cut"), "left")
        text = "`" + run.text.replace("`", "``") + "`"
        return rows.withColumn(run.text, F.coalesce("__rest", text)).drop("__cut", "__rest")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Numbers of documents and of their passages, named as ``lookalike dedup --passages --json`` names them."""
        from pyspark.sql import functions as F

        told = dict(self._run.told)
        of_pieces = self.cuts.agg(F.count(F.lit(1)), F.coalesce(F.sum("length"), F.lit(0))).collect()[0]
        rest = self._described.where(f"kind = {REST}")
        of_documents = rest.agg(F.count(F.lit(1)), F.coalesce(F.sum("length"), F.lit(0))).collect()[0]
        found = {
            "action": "remove",
            "min_words": told.pop("min_words"),
            "documents": of_documents[0],
            "passages": of_pieces[0],
            "tokens": of_pieces[1],
            "emptied": of_documents[0] - of_documents[1],
        }
        return {**told, "passages": found}

    @property
    def rejected(self) -> "DataFrame":
        """The rows of the data that are not valid, because their text is null."""
        return self._run.rejected()

    def unpersist(self) -> None:
        """Releases the tables that Spark holds for this result."""
        self._run.unpersist()


class Decontaminated:
    """The result of :func:`decontaminate`.

    Spark, or the checkpoint directory if given, holds the tables for later steps until :meth:`unpersist`.

    >>> from lookalike import spark as las
    >>> quiz = [{"question": "In which year did the first ferry reach the northern lighthouse?", "answer": "1907"}]
    >>> rows = [("1", "Nothing of it."), ("2", "IN WHICH year did the first ferry reach the northern lighthouse?"), ("3", None)]
    >>> result = las.decontaminate(spark.createDataFrame(rows, "id string, text string"), quiz)
    >>> [row.id for row in result.kept.collect()], [row.id for row in result.rejected.collect()]
    (['1'], ['3'])
    >>> result.summary["items_found"], result.summary["items"]
    (1, 1)
    >>> result.unpersist()
    """

    def __init__(
        self, run: "ContaminationRun", findings: "DataFrame", count: int, cuts: Optional["TextCuts"] = None
    ) -> None:
        self._run = run
        #: Number of the removed documents.
        self._count = count
        self._cuts = cuts
        #: ``id, benchmark, item, found, score, start, end, item_start, item_end``: every item that stands in a document.
        self.findings = findings

    @cached_property
    def kept(self) -> "DataFrame":
        """The rows of the data that stay, whole or in part, with all their columns. With ``cut`` passage or sentence, their
        texts lack what was cut."""
        from pyspark.sql import functions as F

        run, cuts = self._run, self._cuts
        removed = self.findings.select("id").distinct() if cuts is None else cuts.removed()
        kept = _remaining(run, removed.select(F.col("id").alias("__removed")), self._count, run.filter_memory)
        return kept if cuts is None else cuts.apply(kept, run.id, run.text)

    @cached_property
    def items(self) -> "DataFrame":
        """``benchmark, item, found, score, documents``: the items that were found."""
        from pyspark.sql import functions as F

        rank = F.max(sum(F.when(F.col("found") == part, rank).otherwise(0) for part, rank in _FOUND_RANKS.items()))
        names = {rank: part for part, rank in _FOUND_RANKS.items()}
        grouped = self.findings.groupBy("benchmark", "item").agg(
            rank.alias("rank"), F.max("score").alias("score"), F.count(F.lit(1)).alias("documents")
        )
        found = F.when(F.col("rank") == 3, names[3]).when(F.col("rank") == 2, names[2]).otherwise(names[1])
        return grouped.select("benchmark", "item", found.alias("found"), "score", "documents")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Numbers of documents, findings, items and benchmarks, named as ``lookalike decontaminate --json`` names them."""
        from pyspark.sql import functions as F

        told = self._run.told
        counted = self.items.groupBy("benchmark").agg(
            F.count(F.lit(1)).alias("found"), F.sum(F.when(F.col("found") == "both", 1).otherwise(0)).alias("found_both")
        )
        of_items = {row.benchmark: row for row in counted.collect()}
        of_documents = self.findings.groupBy("benchmark").agg(F.countDistinct("id").alias("documents"))
        documents = {row.benchmark: row.documents for row in of_documents.collect()}

        def counted_benchmark(benchmark: dict[str, Any]) -> dict[str, Any]:
            row, name = of_items.get(benchmark["name"]), benchmark["name"]
            found, both = (row.found, row.found_both) if row else (0, 0)
            named = {key: benchmark[key] for key in ("name", "presets", "items", "rejected", "rejected_rows")}
            return {**named, "found": found, "found_both": both, "documents": documents.get(name, 0)}

        return {
            **told,
            "kept": told["documents"] - self._count,
            "removed": self._count,
            "cut": 0 if self._cuts is None else self._cuts.count,
            "findings": self.findings.count(),
            "items_found": sum(row.found for row in of_items.values()),
            "benchmarks": [counted_benchmark(one) for one in told["benchmarks"]],
        }

    @property
    def rejected(self) -> "DataFrame":
        """The rows of the data that are not valid, because their text is null or for the reason in `reasons`."""
        return self._run.rejected()

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons, by id, why rows with a text are not valid."""
        return dict(self._run.unusable)

    def __repr__(self) -> str:
        cut = "" if self._cuts is None else f", {self._cuts.count} cut"
        return f"<Decontaminated DataFrame: {counted(self._count, 'document')} removed{cut}; summary counts the others>"

    def unpersist(self) -> None:
        """Releases the tables that Spark holds for this result."""
        self._run.unpersist()


def _remaining(run: "RunTables", gone: "DataFrame", count: int, filter_memory: int) -> "DataFrame":
    """Returns the valid rows of the data whose ids are not among ``count`` of ``gone``, with the column `__removed`."""
    from pyspark.sql import functions as F

    if run.unusable:
        gone = gone.union(run.unusable_ids())
    data = run.data.where(~run.is_null)
    count += len(run.unusable)
    if count > _BROADCAST:
        return rows_without(data, run.id, gone, count, filter_memory)
    return data.join(F.broadcast(gone), run.id.cast("string") == F.col("__removed"), "left_anti")
