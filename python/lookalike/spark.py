"""Near-duplicates in Spark DataFrames, with the same verdicts as on one machine.

>>> from lookalike import spark as las                            # doctest: +SKIP
>>> result = las.dedup(spark.read.parquet("docs"))                # doctest: +SKIP
>>> result.kept.write.parquet("docs-without-duplicates")          # doctest: +SKIP

Works with Spark 4 and engines with its protocol (Spark Connect, Sail). The package must be installed where
tasks run. Names and defaults are those of the command. Documents are ordered by id, and the verdicts equal
those of ``lookalike dedup --keep min:id``. :func:`passages` finds copied passages. ``docs/spark.md`` describes
the shuffled data.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from . import _engine, _passage_steps, _steps
from . import _arguments as arguments
from ._data import Names
from ._errors import InputError, SettingError
from ._passage_steps import PassageJob
from ._recipe import RecipeLike, recipe_of
from ._steps import Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Deduplicated", "Passages", "cluster", "dedup", "fingerprint", "pairs", "passages"]

_BLOCKS = "kind int, part int, block binary"
_COLLECTED = (
    "component bigint, rank int, name binary, position binary, of_part bigint, repeated boolean, text string, "
    "kept string"
)
_REMOVED = "id string, kept string, similarity double, method string"
_PAIRS = "a string, b string, similarity double"
_GROUPED = "kind int, key bigint, id string, given boolean, groups array<bigint>"
_PASSAGES = (
    "document string, source string, start bigint, end bigint, source_start bigint, source_end bigint, "
    "length bigint, similarity double, kind string"
)

#: Parts of keys for each partition of a shuffle, so that partitions have about equal sizes.
_PARTS = 4

#: Largest number of frequency tables (4 MiB each) that the driver adds up.
_TABLES = 16

#: Largest size in bytes of the links of a partition that the driver collects at once.
_FEW_LINKS = 128 << 10

#: Size of a link in bytes.
_LINK = 16

#: Largest number of removed ids that are broadcast instead of shuffled.
_BROADCAST = 1_000_000

#: Types without a single value.
_COMPOSED = ("array", "map", "struct", "binary", "variant")


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

    def __init__(self, run: "_Run", removed: "DataFrame", count: int) -> None:
        self._run = run
        self._count = count
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
        if self._count + len(run.unusable) <= _BROADCAST:
            gone = F.broadcast(gone)
        data = run.data.where(~run.is_null)
        return data.join(gone, run.id.cast("string") == F.col("__removed"), "left_anti")

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

    def __init__(self, run: "_PassageRun", passages: "DataFrame") -> None:
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


def dedup(
    df: "DataFrame",
    text: Names = "text",
    id: str = "id",
    *,
    threshold: Optional[float] = None,
    method: Optional[str] = None,
    distance: Optional[int] = None,
    candidates: Optional[str] = None,
    sentences: Optional[int] = None,
    recipe: RecipeLike = "default",
    verify: Optional[str] = None,
    unit: Optional[str] = None,
    keep: Optional[str] = None,
    within: Optional[str] = None,
    against: Optional["DataFrame"] = None,
    features: Optional[str] = None,
    window: Any = None,
    time: Optional[str] = None,
    checkpoint: Optional[str] = None,
    links_on_driver: int = 4_000_000,
    component_memory: int = _steps.COMPONENT_MEMORY,
) -> Deduplicated:
    """Keeps one document of each cluster of near-duplicates, with the same result as on one machine.

    ``text`` and ``id`` name columns; ids are compared as strings and must be unique. Several columns of
    text are joined by a line feed. Rows whose text is null are in ``result.rejected``. ``keep`` is first
    (the smallest id), last (the largest), longest, max:FIELD or min:FIELD; among equals, the smallest id
    is kept. ``within`` restricts matches to equal values of a column. All documents of ``against``, which has
    the same columns, precede the data and are kept. ``features`` names a column of given features: strings, a
    map of strings to weights, or a string that is split at white space. The other settings are those of
    :func:`lookalike.dedup`; ``window`` and ``time`` are refused.

    The data is read three times and must have the same rows each time. ``checkpoint`` is a directory for
    intermediate tables on any file system that Spark writes to; without it, Spark persists them. The driver
    connects up to ``links_on_driver`` links between documents (16 bytes each). More links are connected by
    joins, which need ``checkpoint`` or a session with local checkpoints. If all sketches of a run fit into the
    bytes of these links, the driver also finds the links. One task decides each component of connected
    documents. If the texts of a component, with 600 bytes added for each, take more than
    ``component_memory`` bytes (4 GiB), the run ends with an error that names one of them.

    Raises :class:`InputError` for missing columns and repeated ids, and :class:`SettingError` for settings
    that contradict each other.

    >>> from lookalike import spark as las
    >>> rows = [("1", "seven and nine", 3), ("2", "Seven and nine!", 4), ("3", "from monday on", 3)]
    >>> df = spark.createDataFrame(rows, "url string, body string, length int")
    >>> result = las.dedup(df, text="body", id="url", keep="max:length")
    >>> [(row.id, row.kept, row.similarity) for row in result.removed.collect()]
    [('1', '2', 1.0)]
    """
    if window is not None or time is not None:
        raise SettingError(
            "window and time are not available on Spark: leave them out, or divide the data by a column with within"
        )
    job = Job.of(
        recipe, keep, id, threshold=threshold, method=method, distance=distance, candidates=candidates,
        sentences=sentences, verify=verify, unit=unit, within=within is not None,
        against=against is not None, features=features is not None,
    )
    columns = _Columns(arguments.names("text", text), id, job.field, within, features)
    run = _Run(df, columns, job, checkpoint, (links_on_driver, component_memory), against)
    return run.deduplicated()


def cluster(df: "DataFrame", text: Names = "text", id: str = "id", **settings: Any) -> "DataFrame":
    """Returns the documents in clusters of two or more: ``id, cluster, representative, similarity, kept``.

    A cluster is a kept document with the documents removed as its duplicates. The arguments are those of
    :func:`dedup`.

    >>> from lookalike import spark as las
    >>> rows = [("1", "one and the same text"), ("2", "something else"), ("3", "One and the same text!")]
    >>> clusters = las.cluster(spark.createDataFrame(rows, "id string, text string"))
    >>> sorted((row.id, row.cluster, row.kept) for row in clusters.collect())
    [('1', '1', True), ('3', '1', False)]
    """
    return dedup(df, text, id, **settings).clusters


def pairs(
    df: "DataFrame",
    text: Names = "text",
    id: str = "id",
    *,
    within: Optional[str] = None,
    features: Optional[str] = None,
    checkpoint: Optional[str] = None,
    links_on_driver: int = 4_000_000,
    component_memory: int = _steps.COMPONENT_MEMORY,
    recipe: RecipeLike = "default",
    **settings: Any,
) -> "DataFrame":
    """Returns every pair of near-duplicates as ``a, b, similarity``. Of equal texts, only the first document
    is listed, as with ``lookalike pairs --distinct``.

    ``a`` is the smaller id. The arguments are those of :func:`dedup`, without ``keep`` and ``against``.

    >>> from lookalike import spark as las
    >>> rows = [("1", "the ferry leaves at seven"), ("2", "a bridge"), ("3", "the ferry leaves at eight")]
    >>> found = las.pairs(spark.createDataFrame(rows, "id string, text string"), threshold=0.5)
    >>> [tuple(row) for row in found.collect()]
    [('1', '3', 0.6)]
    """
    unknown = set(settings) - set(_steps.RULE)
    if unknown:
        raise SettingError(f"pairs has no argument {sorted(unknown)[0]}")
    job = Job.of(
        recipe, None, id, within=within is not None, features=features is not None, **settings
    )
    columns = _Columns(arguments.names("text", text), id, None, within, features)
    return _Run(df, columns, job, checkpoint, (links_on_driver, component_memory)).pairs()


def passages(
    df: "DataFrame",
    against: Optional["DataFrame"] = None,
    *,
    text: Names = "text",
    id: str = "id",
    min_length: int = 12,
    max_documents: Union[int, str, None] = None,
    within: Optional[str] = None,
    recipe: RecipeLike = "default",
    offsets: str = "characters",
    window: Any = None,
    time: Optional[str] = None,
    order: Optional[str] = None,
    checkpoint: Optional[str] = None,
) -> Passages:
    """Finds the passages that each document has from others, with the same result as on one machine.

    The source of a passage is the document with the smaller id; with ``against``, which has the same columns as
    the data, only its documents are sources. ``text`` and ``id`` name columns; ids are compared as strings and
    must be unique. Several columns of text are joined by a line feed. Rows whose text is null are in
    ``result.rejected``. ``within`` compares only documents with equal values of a column. ``min_length``,
    ``max_documents``, ``recipe`` and ``offsets`` are as in :func:`lookalike.passages`. ``window`` and ``time``
    are refused, and so is ``order``, because a table of Spark has none.

    The data is read twice and must have the same rows each time. ``checkpoint`` is a directory for intermediate
    tables on any file system that Spark writes to; without it, Spark persists them.

    Raises :class:`InputError` for missing columns and repeated ids, and :class:`SettingError` for settings that
    are not valid.

    >>> from lookalike import spark as las
    >>> known = [("k", "The ferry leaves at seven. Nobody misses it, because the next one leaves at noon.")]
    >>> rows = [("e", "As they say, nobody misses it because the next one leaves at noon.")]
    >>> data, known = (spark.createDataFrame(some, "id string, text string") for some in (rows, known))
    >>> found = las.passages(data, known, min_length=6).passages.collect()
    >>> [(row.document, row.source, row.start, row.end, row.kind) for row in found]
    [('e', 'k', 13, 65, 'verbatim')]
    """
    if window is not None or time is not None:
        raise SettingError(
            "window and time are not available on Spark: leave them out, or divide the data by a column with within"
        )
    if order is not None:
        raise SettingError(
            "order is not available on Spark: leave it out, and sort the passages by a column with orderBy"
        )
    job = PassageJob.of(
        recipe, min_length, offsets, max_documents, within=within is not None, against=against is not None
    )
    columns = _Columns(arguments.names("text", text), id, None, arguments.word("within", within))
    return _PassageRun(df, columns, job, checkpoint, against).found()


def fingerprint(
    df: "DataFrame", text: Names = "text", id: str = "id", *, recipe: RecipeLike = "default"
) -> "DataFrame":
    """Returns the SimHash fingerprint of every document in hexadecimal digits: ``id, fingerprint``.

    The fingerprint of a text that is too short is ``-``.

    >>> from lookalike import spark as las
    >>> rows = [("1", "the ferry leaves at seven"), ("2", "THE FERRY leaves at seven!"), ("3", "")]
    >>> found = las.fingerprint(spark.createDataFrame(rows, "id string, text string")).collect()
    >>> found[0].fingerprint == found[1].fingerprint, found[2].fingerprint
    (True, '-')
    """
    source = _Columns(arguments.names("text", text), id).of(df).select("id", "text")
    return source.mapInArrow(_steps.fingerprint(recipe_of(recipe).toml), "id string, fingerprint string")


@dataclass(frozen=True)
class _Columns:
    """Names of the columns that a run needs."""

    text: list[str]
    id: str
    value: Optional[str] = None
    part: Optional[str] = None
    features: Optional[str] = None

    def of(self, data: "DataFrame", given: Optional[bool] = None) -> "DataFrame":
        """Returns the columns under the names that the steps use."""
        from pyspark.sql import functions as F

        columns = [self.id_of(data).cast("string").alias("id")]
        text = self.text_of(data)
        columns += [] if text is None else [text.alias("text")]
        for name, column in (("value", self.value), ("part", self.part), ("features", self.features)):
            if column is not None:
                refused = () if name == "features" else _COMPOSED
                columns.append(_column(data, column, refused).alias(name))
        if given is not None:
            columns.append(F.lit(given).alias("given"))
        return data.select(*columns)

    def id_of(self, data: "DataFrame") -> "Column":
        """Returns the column of the ids."""
        return _column(data, self.id, (*_COMPOSED, "boolean"))

    def text_of(self, data: "DataFrame") -> Optional["Column"]:
        """Returns the column of the text; None if features replace the text."""
        from pyspark.sql import functions as F

        if self.features is not None and not all(_is_there(data, name) for name in self.text):
            return None
        texts = [_column(data, name, strings=True) for name in self.text]
        if len(texts) == 1:
            return texts[0]
        return F.when(F.coalesce(*texts).isNotNull(), F.concat_ws("\n", *texts))


def _is_there(data: "DataFrame", name: str) -> bool:
    return name in data.columns or ("." in name and name.split(".")[0] in data.columns)


def _column(data: "DataFrame", name: str, refused: Sequence[str] = (), strings: bool = False) -> "Column":
    """Returns a column by its name, or a nested field by its path, for example ``a.b``."""
    if not _is_there(data, name):
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


class _Tables:
    """The data of a run, and the tables that Spark or a checkpoint directory holds for it."""

    def __init__(
        self, data: "DataFrame", columns: _Columns, checkpoint: Optional[str], against: Optional["DataFrame"]
    ) -> None:
        from pyspark.sql import functions as F

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
        self.parts = _PARTS * int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200)
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
        return self.spark.read.parquet(path)

    def unpersist(self) -> None:
        """Releases the tables that Spark holds."""
        for table in self.held:
            table.unpersist()
        self.held.clear()


class _Run(_Tables):
    """The tables of a deduplication, or of a search for pairs."""

    def __init__(
        self, data: "DataFrame", columns: _Columns, job: Job, checkpoint: Optional[str],
        limits: tuple[int, int], against: Optional["DataFrame"] = None,
    ) -> None:
        super().__init__(data, columns, checkpoint, against)
        self.job = job
        self.local, self.component_memory = limits

    def deduplicated(self) -> Deduplicated:
        """Returns the result of a deduplication."""
        from pyspark.sql import functions as F

        columns = [F.lit(self.job.threshold).alias("threshold"), F.col("kept").alias("cluster")]
        settled, count = self.settled(_REMOVED)
        removed = settled.select("*", *columns)
        if count is None:
            removed = self.keep(removed)
            count = removed.count()
        return Deduplicated(self, removed, count)

    def pairs(self) -> "DataFrame":
        """Returns all pairs."""
        settled, count = self.settled(_PAIRS)
        return self.keep(settled) if count is None else settled

    def settled(self, schema: str) -> tuple["DataFrame", Optional[int]]:
        """Returns removed documents or pairs; for small runs, which the driver holds, also their number."""
        collected, is_small = self.collected()
        whole = _in_order(collected, "component", "rank")
        step = _steps.settle(self.job, schema == _PAIRS, self.component_memory)
        settled = whole.mapInArrow(step, schema)
        if not is_small:
            return settled, None
        table = settled.toArrow()
        return self.spark.createDataFrame(table, schema), table.num_rows

    def collected(self) -> tuple["DataFrame", bool]:
        """Returns the documents in components, and True if the driver has linked all of them."""
        from pyspark.sql import functions as F

        sketched = self.keep(self.source.mapInArrow(_steps.scatter(self.job), _BLOCKS))
        sizes = sketched.select("kind", F.length("block").alias("bytes")).toArrow()
        told = list(zip(sizes.column("kind").to_pylist(), sizes.column("bytes").to_pylist()))
        is_small = sum(size for _, size in told) <= _LINK * self.local
        if is_small:
            found = self.linked_here(sketched)
            self.unpersist()
            return self.by_members(found), True
        kinds = [kind for kind, _ in told]
        links, others = self.linked(sketched, kinds)
        self.refuse_ids([(row.kind, row.block) for row in others])
        sizes = [row.bytes for row in others if row.kind == _steps.LINKS]
        if sum(sizes) <= _LINK * self.local:
            found = [(row.kind, bytes(row.block)) for row in others if row.block is not None]
            if any(row.block is None for row in others if row.kind == _steps.LINKS):
                found = [row for row in found if row[0] != _steps.LINKS]
                found += [(_steps.LINKS, bytes(row.block)) for row in links.select("block").collect()]
            return self.by_members(found), False
        links = links.mapInArrow(_steps.unpack_links(), "a bigint, b bigint")
        repeats = [bytes(row.block) for row in others if row.kind == _steps.REPEATS]
        return self.joined(links, repeats), False

    def by_members(self, found: list[tuple[int, bytes]]) -> "DataFrame":
        """Returns the documents in components, whose members every task receives."""
        of_kind = lambda kind: [block for of, block in found if of == kind]
        members = _engine.members(of_kind(_steps.LINKS), of_kind(_steps.REPEATS))  # type: ignore[no-untyped-call]
        return self.source.mapInArrow(_steps.collect(self.job, members), _COLLECTED)

    def linked_here(self, sketched: "DataFrame") -> list[tuple[int, bytes]]:
        """Returns links and other findings from blocks that the driver collects."""

        def again(crowded: bytes) -> list[Any]:
            blocks = self.source.mapInArrow(_steps.scatter(self.job, crowded), _BLOCKS)
            batches: list[Any] = blocks.toArrow().to_batches()
            return batches

        blocks = sketched.toArrow().to_batches()
        rejected = [block for batch in blocks for kind, block in _steps.rows_of(batch) if kind == _steps.REJECTED]
        self.reject(rejected)
        found = _steps.linked(self.job, blocks, again)
        self.refuse_ids(found)
        return found

    def linked(self, sketched: "DataFrame", kinds: list[int]) -> tuple["DataFrame", list[Any]]:
        """Returns blocks of links between documents, and the other findings of the parts; see `others`."""
        if _steps.REJECTED in kinds:
            rows = sketched.where(f"kind = {_steps.REJECTED}").select("block").collect()
            self.reject([bytes(row.block) for row in rows])
        found = [self.gathered(self.spread(sketched, kinds.count(_steps.TABLE)))]
        others = self.others(found[0])
        crowded = b"".join(bytes(row.block) for row in others if row.kind == _steps.CROWDED)
        if crowded:
            features = self.keep(self.source.mapInArrow(_steps.scatter(self.job, crowded), _BLOCKS))
            found.append(self.gathered(self.spread(features, None)))
            others += self.others(found[1])
        if any(row.kind == _steps.SPLIT for row in others):
            split = [table.where(f"kind = {_steps.SPLIT}") for table in found]
            found.append(self.gathered(_union(split)))
            others += self.others(found[-1])
        return _union([table.where(f"kind = {_steps.LINKS}") for table in found]), others

    def spread(self, sketched: "DataFrame", tables: Optional[int]) -> "DataFrame":
        """Splits blocks by parts. ``tables`` is the number of frequency tables."""
        of_tables = sketched.where(f"kind = {_steps.TABLE}")
        if tables is None or tables > _TABLES:
            of_tables = of_tables.repartition(1).mapInArrow(_steps.add_tables(self.job), _BLOCKS)
        table = None
        if tables != 0:
            summed = list(_steps.add_tables(self.job)(of_tables.toArrow().to_batches()))
            table = _steps.rows_of(summed[0])[0][1] if summed else None
        kinds = f"kind = {_steps.PART} OR kind = {_steps.FEATURES}"
        return sketched.where(kinds).mapInArrow(_steps.spread(self.job, table, self.parts), _BLOCKS)

    def refuse_ids(self, others: list[tuple[int, bytes]]) -> None:
        """Refuses ids that occur in several rows."""
        _refuse_repeated(others, _steps.REPEATED_ID, "")
        _refuse_repeated(others, _steps.REPEATED_GIVEN_ID, " of against")

    def gathered(self, keyed: "DataFrame") -> "DataFrame":
        """Returns the links and repeats that the parts find."""
        whole = keyed.repartition("part")
        return self.keep(whole.mapInArrow(_steps.gather(self.job, self.parts), _BLOCKS))

    def others(self, found: "DataFrame") -> list[Any]:
        """Returns the findings of the parts; of divided buckets and many links, only their sizes."""
        from pyspark.sql import functions as F

        size = F.length("block")
        few = (F.col("kind") != _steps.LINKS) | (size <= _FEW_LINKS)
        block = F.when(few & (F.col("kind") != _steps.SPLIT), F.col("block")).alias("block")
        rows: list[Any] = found.select("kind", size.alias("bytes"), block).collect()
        return rows

    def joined(self, links: "DataFrame", repeats: list[bytes]) -> "DataFrame":
        """Returns the rows of `collect` by joins, for more members than one machine holds."""
        from pyspark.sql import functions as F

        labels = self.components(links)
        schema = (
            "node bigint, name binary, position binary, id string, given boolean, of_part bigint, text string"
        )
        named = self.source.mapInArrow(_steps.name_texts(self.job), schema)
        blocks = [(_steps.REPEATS, 0, block) for block in repeats]
        blocks = self.spark.createDataFrame(blocks, _BLOCKS)
        step = _steps.unpack_repeats(self.job)
        firsts = blocks.mapInArrow(step, "name binary, first binary, kept string")
        both = named.join(labels, "node", "left").join(firsts, "name", "left")
        alone = F.col("component").isNull() & (F.col("first").isNull() | (F.col("first") == F.col("position")))
        is_first = F.col("first").isNull() | (F.col("first") == F.col("position"))
        decided = F.col("component").isNull()
        rank = F.when(decided, 2).when(is_first, 0).otherwise(1)
        is_known = F.col("given") & ~is_first
        return both.where(~alone & ~is_known).select(
            F.when(decided, F.xxhash64("id")).otherwise(F.col("component")).alias("component"),
            rank.alias("rank"),
            "name",
            F.when(decided, F.encode("id", "UTF-8")).otherwise(F.col("position")).alias("position"),
            "of_part",
            F.col("first").isNotNull().alias("repeated"),
            F.when(rank == 0, F.col("text")).alias("text"),
            F.when(decided, F.col("kept")).alias("kept"),
        )

    def components(self, links: "DataFrame") -> "DataFrame":
        """Returns each node with the smallest node of its component, by alternating large-star and small-star.

        Source: Kiveris et al., "Connected Components in MapReduce and Beyond", 2014. Every round ends with a
        checkpoint.
        """
        from pyspark.sql import functions as F

        edges = self.keep(links.select(F.greatest("a", "b").alias("u"), F.least("a", "b").alias("v")))
        before = None
        while True:
            edges = self.round_done(_small_star(_large_star(edges)))
            told = edges.agg(F.count("*"), F.sum(F.xxhash64("u", "v") % 1_000_003)).collect()[0]
            if told == before:
                break
            before = told
        members = edges.select(F.col("u").alias("node"), F.col("v").alias("component"))
        roots = edges.select(F.col("v").alias("node"), F.col("v").alias("component"))
        return self.keep(members.union(roots).distinct())

    def round_done(self, edges: "DataFrame") -> "DataFrame":
        """Returns the edges without their lineage."""
        return self.keep(edges) if self.checkpoint else edges.localCheckpoint()


class _PassageRun(_Tables):
    """The tables of a search for passages."""

    def __init__(
        self, data: "DataFrame", columns: _Columns, job: PassageJob, checkpoint: Optional[str],
        against: Optional["DataFrame"],
    ) -> None:
        super().__init__(data, columns, checkpoint, against)
        self.job = job
        #: Numbers of the summary.
        self.told: dict[str, Any] = {}

    def found(self) -> Passages:
        """Returns the passages."""
        wanted = self.grouped().where(f"kind = {_passage_steps.DOCUMENT}")
        texts = self.by_groups(wanted)
        return Passages(self, self.keep(texts.mapInArrow(_passage_steps.compare(self.job), _PASSAGES)))

    def by_groups(self, wanted: "DataFrame") -> "DataFrame":
        """Returns the texts of all groups, each group in one partition and first the text of its document."""
        from pyspark.sql import functions as F

        names = ["id", "given"] if self.job.against else ["id"]
        texts = self.source.where(F.col("text").isNotNull()).select(*names, "text")
        placed = wanted.join(texts, names).select("key", "id", "text", F.explode("groups").alias("group"))
        return _in_order(placed.withColumn("is_other", F.col("group") != F.col("key")), "group", "is_other", "key")

    def grouped(self) -> "DataFrame":
        """Returns the documents of candidate pairs with their groups; refuses repeated ids."""
        scattered = self.keep(self.source.mapInArrow(_passage_steps.scatter(self.job, self.parts), _BLOCKS))
        limit = self.count_documents(scattered)
        grams = scattered.where(f"kind = {_passage_steps.GRAMS}").repartition("part")
        candidates = grams.mapInArrow(_passage_steps.candidates(self.job, limit, self.parts), _BLOCKS)
        ids = scattered.where(f"kind = {_passage_steps.IDS}")
        of_parts = ids.union(candidates).repartition("part")
        grouped = self.keep(of_parts.mapInArrow(_passage_steps.members(), _GROUPED))
        others = grouped.where(f"kind != {_passage_steps.DOCUMENT}").select("kind", "id").collect()
        repeated = [(row.kind, row.id.encode()) for row in others]
        _refuse_repeated(repeated, _passage_steps.REPEATED_ID, "")
        _refuse_repeated(repeated, _passage_steps.REPEATED_KNOWN_ID, " of against")
        counts = [json.loads(row.id) for row in others if row.kind == _passage_steps.COUNTS]
        self.told["boilerplate"] = {
            "max_documents": limit,
            "grams": sum(it["boilerplate_grams"] for it in counts),
            "documents": sum(it["with_boilerplate"] for it in counts),
        }
        return grouped

    def count_documents(self, scattered: "DataFrame") -> Optional[int]:
        """Stores the numbers of documents and the rows that are not valid, and returns the limit of boilerplate."""
        kinds = f"kind = {_passage_steps.REJECTED} OR kind = {_passage_steps.COUNTS}"
        rows = scattered.where(kinds).select("kind", "block").collect()
        self.reject([bytes(row.block) for row in rows if row.kind == _passage_steps.REJECTED])
        counts = [json.loads(bytes(row.block)) for row in rows if row.kind == _passage_steps.COUNTS]
        documents, known, tokens, rejected = (
            sum(it[name] for it in counts) for name in ("documents", "known", "tokens", "rejected")
        )
        recipe = recipe_of(self.job.recipe)
        self.told = {
            "documents": documents,
            "against": known,
            "tokens": tokens,
            "rejected": rejected,
            "min_words": self.job.min_length,
            "recipe": recipe.name,
        }
        return self.job.limit(known if self.job.against else documents)


def _in_order(table: "DataFrame", whole: str, *order: str) -> "DataFrame":
    """Returns the rows with equal values of the column ``whole`` one after another in one partition, in an order.

    The rows are numbered in a further column, because an engine may drop a sort that nothing seems to need, as Sail
    does before a step in Python. For a window function it keeps the order.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    return table.withColumn("place", F.row_number().over(Window.partitionBy(whole).orderBy(*order)))


def _union(tables: list["DataFrame"]) -> "DataFrame":
    first, *rest = tables
    for table in rest:
        first = first.union(table)
    return first


def _large_star(edges: "DataFrame") -> "DataFrame":
    """Connects the larger neighbours of every node with the smallest of its neighbours and itself."""
    from pyspark.sql import functions as F

    both = edges.union(edges.select(F.col("v").alias("u"), F.col("u").alias("v")))
    least = both.groupBy("u").agg(F.min("v").alias("least"))
    least = least.select("u", F.least("u", "least").alias("least"))
    larger = both.where("v > u").join(least, "u")
    return larger.select(F.col("v").alias("u"), F.col("least").alias("v")).where("u != v").distinct()


def _small_star(edges: "DataFrame") -> "DataFrame":
    """Connects every node and its smaller neighbours with the smallest of them."""
    from pyspark.sql import functions as F

    down = edges.select(F.greatest("u", "v").alias("u"), F.least("u", "v").alias("v"))
    least = down.groupBy("u").agg(F.min("v").alias("least"))
    smaller = down.join(least, "u").select(F.col("v").alias("u"), F.col("least").alias("v"))
    own = least.select("u", F.col("least").alias("v"))
    return smaller.union(own).where("u != v").distinct()


def _refuse_repeated(others: list[tuple[int, bytes]], kind: int, whose: str) -> None:
    repeated = [bytes(block).decode() for of, block in others if of == kind]
    if repeated:
        shown = ", ".join(f"'{id}'" for id in sorted(repeated)[:3])
        raise InputError(
            f"{len(repeated)} ids{whose} occur in more than one row, for example {shown}: give every document "
            "a unique id"
        )
