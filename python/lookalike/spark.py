"""Near-duplicates in Spark DataFrames: the verdicts of one machine, from as many as there are.

>>> from lookalike import spark as las                            # doctest: +SKIP
>>> result = las.dedup(spark.read.parquet("docs"))                # doctest: +SKIP
>>> result.kept.write.parquet("docs-without-duplicates")          # doctest: +SKIP

For Spark 4 and what speaks its protocol (Spark Connect, Sail). The package must be installed where tasks
run. Names and defaults are those of the command; documents are ordered by id, as ``lookalike dedup
--keep min:id`` orders them, and the verdicts are the same. See ``docs/spark.md`` for what is shuffled.
"""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional

from . import _engine, _steps
from ._errors import InputError, SettingError
from ._recipe import RecipeLike, recipe_of
from ._steps import Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Deduplicated", "cluster", "dedup", "fingerprint", "pairs"]

_BLOCKS = "kind int, part int, block binary"
_COLLECTED = (
    "component bigint, rank int, name binary, position binary, repeated boolean, text string, kept string"
)
_REMOVED = "id string, kept string, similarity double, method string"
_PAIRS = "a string, b string, similarity double"

#: Parts of keys for each partition of a shuffle, so that partitions are about even.
_PARTS = 4

#: Tables of frequencies, 4 MiB each, that the driver adds up.
_TABLES = 16

#: Bytes of links of a partition that the driver takes at once.
_FEW_LINKS = 128 << 10

#: Removed ids that are sent to every task rather than shuffled.
_BROADCAST = 1_000_000


class Deduplicated:
    """What :func:`dedup` found.

    Tables that later steps ask for are held by Spark, or in the checkpoint directory where one was given,
    until :meth:`unpersist`.
    """

    def __init__(self, run: "_Run", removed: "DataFrame", count: int) -> None:
        self._run = run
        self._count = count
        #: ``id, kept, similarity, method, threshold, cluster``: every removed document, and the most
        #: similar kept one.
        self.removed = removed

    @cached_property
    def kept(self) -> "DataFrame":
        """The kept rows of the data, with all their columns."""
        from pyspark.sql import functions as F

        run = self._run
        gone = self.removed.select(F.col("id").alias("__removed"))
        if self._count <= _BROADCAST:
            gone = F.broadcast(gone)
        data = run.data.where(run.text.isNotNull())
        return data.join(gone, run.id.cast("string") == F.col("__removed"), "left_anti")

    @property
    def rejected(self) -> "DataFrame":
        """The rows whose text is null: they are in no other table."""
        return self._run.data.where(self._run.text.isNull())

    @cached_property
    def clusters(self) -> "DataFrame":
        """``id, cluster, representative, similarity, kept``: the documents that are not alone."""
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
        """``a, b, similarity``: each removed document ``b`` with the kept one it repeats."""
        from pyspark.sql import functions as F

        return self.removed.select(F.col("kept").alias("a"), F.col("id").alias("b"), "similarity")

    def unpersist(self) -> None:
        """Gives back what Spark holds for this result."""
        self._run.unpersist()


def dedup(
    df: "DataFrame",
    text: str = "text",
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
    checkpoint: Optional[str] = None,
    links_on_driver: int = 4_000_000,
) -> Deduplicated:
    """Keeps one of each group of near-duplicates; the rows of ``result.kept`` are those of one machine.

    ``text`` and ``id`` name columns; ids are compared as strings and must be unique. Rows whose text is
    null are in ``result.rejected``. ``keep`` is first (the smallest id), last (the largest), longest,
    max:FIELD or min:FIELD; ties fall to the smallest id. The other settings are those of
    :func:`lookalike.dedup`.

    The data is read three times, and must have the same rows each time. ``checkpoint`` is a directory, on
    any file system that Spark writes to, where intermediate tables are written; without it
    Spark persists them. Up to ``links_on_driver`` links between documents are followed by the driver (16
    bytes each), more by joins, which need ``checkpoint`` or a session that can make local ones.

    Raises :class:`InputError` for repeated ids and :class:`SettingError` for settings that contradict one
    another.
    """
    job = Job.of(
        recipe, keep, id, threshold=threshold, method=method, distance=distance, candidates=candidates,
        sentences=sentences, verify=verify, unit=unit,
    )
    run = _Run(df, text, id, job, checkpoint, links_on_driver)
    removed = run.settled()
    return Deduplicated(run, removed, removed.count())


def cluster(df: "DataFrame", text: str = "text", id: str = "id", **settings: Any) -> "DataFrame":
    """The documents that are not alone: ``id, cluster, representative, similarity, kept``.

    A cluster is a kept document with those that were removed for it. The arguments are those of
    :func:`dedup`.
    """
    return dedup(df, text, id, **settings).clusters


def pairs(
    df: "DataFrame",
    text: str = "text",
    id: str = "id",
    *,
    checkpoint: Optional[str] = None,
    links_on_driver: int = 4_000_000,
    recipe: RecipeLike = "default",
    **settings: Any,
) -> "DataFrame":
    """Every pair of near-duplicates: ``a, b, similarity``, of equal texts the first document only.

    ``a`` is the smaller id. The arguments are those of :func:`dedup`, without ``keep``.
    """
    unknown = set(settings) - set(_steps.RULE)
    if unknown:
        raise SettingError(f"pairs has no argument {sorted(unknown)[0]}")
    job = Job.of(recipe, None, id, **settings)
    return _Run(df, text, id, job, checkpoint, links_on_driver).settled(pairs=True)


def fingerprint(
    df: "DataFrame", text: str = "text", id: str = "id", *, recipe: RecipeLike = "default"
) -> "DataFrame":
    """The SimHash fingerprint of every document in hexadecimal digits: ``id, fingerprint``.

    A text with too little in it for one has ``-``.
    """
    source = _source(df, text, id, None)
    return source.mapInArrow(_steps.fingerprint(recipe_of(recipe).toml), "id string, fingerprint string")


def _source(df: "DataFrame", text: str, id: str, field: Optional[str]) -> "DataFrame":
    """Id, text, and the value that orders documents, if one does."""
    columns = [df[id].cast("string").alias("id"), df[text].cast("string").alias("text")]
    if field is not None:
        columns.append(df[field].alias("value"))
    return df.select(*columns)


class _Run:
    """The tables of a run, one made from another."""

    def __init__(
        self, data: "DataFrame", text: str, id: str, job: Job, checkpoint: Optional[str], local: int
    ) -> None:
        self.data = data
        self.text = data[text]
        self.id = data[id]
        self.job = job
        self.spark = data.sparkSession
        self.source = _source(data, text, id, job.field)
        self.checkpoint = f"{checkpoint.rstrip('/')}/{uuid.uuid4().hex}" if checkpoint else None
        self.local = local
        self.held: list["DataFrame"] = []
        self.parts = _PARTS * int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200)
        self.written = 0

    def settled(self, pairs: bool = False) -> "DataFrame":
        """Removed documents, or pairs."""
        from pyspark.sql import functions as F

        links, others = self.linked()
        _refuse_repeated_ids(others)
        repeats = [bytes(row.block) for row in others if row.kind == _steps.REPEATS]
        of_links = [row for row in others if row.kind == _steps.LINKS]
        if sum(row.bytes for row in of_links) <= 16 * self.local:
            if any(row.block is None for row in of_links):
                of_links = links.select("block").collect()
            members = _engine.members([bytes(row.block) for row in of_links], repeats)
            collected = self.source.mapInArrow(_steps.collect(self.job, members), _COLLECTED)
        else:
            links = links.mapInArrow(_steps.unpack_links(), "a bigint, b bigint")
            collected = self.joined(links, repeats)
        whole = collected.repartition("component").sortWithinPartitions("component", "rank")
        settled = whole.mapInArrow(_steps.settle(self.job, pairs), _PAIRS if pairs else _REMOVED)
        if pairs:
            return self.keep(settled)
        columns = [F.lit(self.job.threshold).alias("threshold"), F.col("kept").alias("cluster")]
        return self.keep(settled.select("*", *columns))

    def linked(self) -> tuple["DataFrame", list[Any]]:
        """Blocks of links between documents, and what else parts have found; see `others`."""
        sketched = self.keep(self.source.mapInArrow(_steps.scatter(self.job, self.parts), _BLOCKS))
        keyed = sketched.where(f"kind = {_steps.PART}")
        of_features = self.feature_keys(sketched)
        if of_features is not None:
            keyed = keyed.union(of_features)
        found = [self.gathered(keyed)]
        others = self.others(found[0])
        crowded = b"".join(bytes(row.block) for row in others if row.kind == _steps.CROWDED)
        if crowded:
            step = _steps.scatter(self.job, 1, crowded)
            of_features = self.feature_keys(self.keep(self.source.mapInArrow(step, _BLOCKS)))
            if of_features is not None:
                found.append(self.gathered(of_features))
                others += self.others(found[1])
        if any(row.kind == _steps.SPLIT for row in others):
            split = [table.where(f"kind = {_steps.SPLIT}") for table in found]
            found.append(self.gathered(_union(split)))
            others += self.others(found[-1])
        return _union([table.where(f"kind = {_steps.LINKS}") for table in found]), others

    def feature_keys(self, sketched: "DataFrame") -> Optional["DataFrame"]:
        """The rarest features of documents as keys; None if there are no features."""
        tables = sketched.where(f"kind = {_steps.TABLE}")
        if _partitions(sketched) > _TABLES:
            tables = tables.repartition(1).mapInArrow(_steps.add_tables(self.job), _BLOCKS)
        rows = tables.toArrow()
        if rows.num_rows == 0:
            return None
        (table,) = _steps.add_tables(self.job)(rows.to_batches())
        keys = _steps.feature_keys(self.job, table.column("block")[0].as_py(), self.parts)
        return sketched.where(f"kind = {_steps.FEATURES}").mapInArrow(keys, _BLOCKS)

    def gathered(self, keyed: "DataFrame") -> "DataFrame":
        """What parts find."""
        whole = keyed.repartition("part")
        return self.keep(whole.mapInArrow(_steps.gather(self.job, self.parts), _BLOCKS))

    def others(self, found: "DataFrame") -> list[Any]:
        """What parts have found; of squares and many links only how large they are."""
        from pyspark.sql import functions as F

        size = F.length("block")
        few = (F.col("kind") != _steps.LINKS) | (size <= _FEW_LINKS)
        block = F.when(few & (F.col("kind") != _steps.SPLIT), F.col("block")).alias("block")
        return found.select("kind", size.alias("bytes"), block).collect()

    def joined(self, links: "DataFrame", repeats: list[bytes]) -> "DataFrame":
        """What `collect` makes, by joins: for more members than a machine holds."""
        from pyspark.sql import functions as F

        labels = self.components(links)
        schema = "node bigint, name binary, position binary, id string, text string"
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
        return both.where(~alone).select(
            F.when(decided, F.xxhash64("id")).otherwise(F.col("component")).alias("component"),
            rank.alias("rank"),
            "name",
            F.when(decided, F.encode("id", "UTF-8")).otherwise(F.col("position")).alias("position"),
            F.col("first").isNotNull().alias("repeated"),
            F.when(rank == 0, F.col("text")).alias("text"),
            F.when(decided, F.col("kept")).alias("kept"),
        )

    def components(self, links: "DataFrame") -> "DataFrame":
        """The smallest node that each is connected with, by large-star and small-star in turn.

        Kiveris et al., "Connected Components in MapReduce and Beyond", 2014. Every round is a
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
        """The edges, cut off from how they came about."""
        return self.keep(edges) if self.checkpoint else edges.localCheckpoint()

    def keep(self, table: "DataFrame") -> "DataFrame":
        """The table, made once: in the checkpoint directory, or by Spark."""
        if self.checkpoint is None:
            table = table.persist()
            self.held.append(table)
            return table
        self.written += 1
        path = f"{self.checkpoint}/{self.written}"
        table.write.parquet(path)
        return self.spark.read.parquet(path)

    def unpersist(self) -> None:
        """Gives back what Spark holds."""
        for table in self.held:
            table.unpersist()
        self.held.clear()


def _partitions(table: "DataFrame") -> float:
    """How many partitions a table has; where Spark Connect does not tell, very many."""
    from pyspark.errors import PySparkException

    try:
        return table.rdd.getNumPartitions()
    except (AttributeError, PySparkException):
        return float("inf")


def _union(tables: list["DataFrame"]) -> "DataFrame":
    first, *rest = tables
    for table in rest:
        first = first.union(table)
    return first


def _large_star(edges: "DataFrame") -> "DataFrame":
    """Every node's larger neighbours go to the smallest of its neighbours and itself."""
    from pyspark.sql import functions as F

    both = edges.union(edges.select(F.col("v").alias("u"), F.col("u").alias("v")))
    least = both.groupBy("u").agg(F.min("v").alias("least"))
    least = least.select("u", F.least("u", "least").alias("least"))
    larger = both.where("v > u").join(least, "u")
    return larger.select(F.col("v").alias("u"), F.col("least").alias("v")).where("u != v").distinct()


def _small_star(edges: "DataFrame") -> "DataFrame":
    """Every node and its smaller neighbours go to the smallest of them."""
    from pyspark.sql import functions as F

    down = edges.select(F.greatest("u", "v").alias("u"), F.least("u", "v").alias("v"))
    least = down.groupBy("u").agg(F.min("v").alias("least"))
    smaller = down.join(least, "u").select(F.col("v").alias("u"), F.col("least").alias("v"))
    own = least.select("u", F.col("least").alias("v"))
    return smaller.union(own).where("u != v").distinct()


def _refuse_repeated_ids(others: list[Any]) -> None:
    repeated = [bytes(row.block).decode() for row in others if row.kind == _steps.REPEATED_ID]
    if repeated:
        shown = ", ".join(f"'{id}'" for id in sorted(repeated)[:3])
        raise InputError(
            f"{len(repeated)} ids stand in more than one row, such as {shown}: every document needs an id of "
            "its own"
        )
