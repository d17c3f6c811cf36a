"""Near-duplicates in Ray Data, by the steps of :mod:`lookalike.spark` over the blocks of a data set.

>>> from lookalike import ray as lar                              # doctest: +SKIP
>>> kept = lar.dedup(ray.data.read_parquet("docs")).kept          # doctest: +SKIP

This is a thin adapter: the calling process holds all links and the ids of removed documents. ``docs/spark-steps.md``
describes the steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _arguments as arguments
from . import _audit_steps, _engine, _steps
from ._copy_fields import CopyFields, refuse_one_machine
from ._errors import InputError, SettingError
from ._files import FilePath
from ._keywords import advise_argument
from ._recipe import RecipeLike, recipe_of
from ._run import WeightBy
from ._steps import Job, Step
from ._words import counted

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

__all__ = ["Deduplicated", "dedup", "pairs"]

#: Number of parts that receive keys and components.
_PARTS = 64

_BLOCKS = (("kind", "int32"), ("part", "int32"), ("block", "binary"))
_COLLECTED = (
    ("component", "int64"),
    ("rank", "int32"),
    ("name", "binary"),
    ("position", "binary"),
    ("of_part", "int64"),
    ("repeated", "bool"),
    ("text", "string"),
    ("kept", "string"),
)
_REMOVED = (("id", "string"), ("kept", "string"), ("similarity", "float64"), ("method", "string"))
#: Types of pyarrow by those of Spark.
_TYPES = {"int": "int32", "bigint": "int64", "string": "string", "binary": "binary", "boolean": "bool"}
_PAIRS = (("a", "string"), ("b", "string"), ("similarity", "float64"))


class Deduplicated:
    """The result of :func:`dedup`.

    >>> from lookalike import ray as lar
    >>> texts = ["one and the same text", "something else", "One and the same text!"]
    >>> result = lar.dedup(ray.data.from_items([{"id": str(at), "text": text} for at, text in enumerate(texts)]))
    >>> sorted(row["id"] for row in result.kept.take_all())
    ['0', '1']
    """

    def __init__(
        self, kept: "Dataset", removed: "pa.Table", data: "Dataset", text: str, job: Job,
        audit: Optional[dict[str, Any]] = None,
    ) -> None:
        self._data, self._text, self._job = data, text, job
        #: Estimate of the missed and the wrong matches, as :mod:`lookalike.spark` has it; None if the run was not
        #: audited.
        self.audit = audit
        #: Kept rows of the data, with all their columns.
        self.kept = kept
        #: A table ``id, kept, similarity, method, threshold, cluster``: every removed document with
        #: its most similar kept document.
        self.removed = removed

    @property
    def pairs(self) -> "pa.Table":
        """``a, b, similarity``: each removed document ``b`` with its kept document ``a``."""
        return self.removed.select(["kept", "id", "similarity"]).rename_columns(["a", "b", "similarity"])

    def summary(self) -> dict[str, Any]:
        """Numbers of documents and clusters and the settings, with the names that :mod:`lookalike.spark` gives them.

        Ray counts the rows of the data for it.
        """
        name = self._text
        nulls = self._data.map_batches(lambda table: _count_of_nulls(table, name), batch_format="pyarrow")
        rows, removed = self._data.count(), self.removed.num_rows
        rejected = int(nulls.sum("nulls") or 0) if rows else 0
        return {
            "documents": rows - rejected,
            "kept": rows - rejected - removed,
            "removed": removed,
            "clusters": len(self.removed.column("kept").unique()),
            "rejected": rejected,
            "method": dict(self._job.rule).get("method") or "auto",
            "threshold": self._job.threshold,
            "recipe": recipe_of(self._job.recipe).name,
            **({} if self.audit is None else {"audit": self.audit}),
        }

    def __repr__(self) -> str:
        removed = counted(self.removed.num_rows, "document")
        return f"<Deduplicated Dataset: {removed} removed; summary() counts the others>"


def dedup(
    ds: "Dataset",
    text: str = "text",
    id: str = "id",
    *,
    recipe: RecipeLike = "default",
    keep: Optional[str] = None,
    within: Optional[str] = None,
    against: Optional["Dataset"] = None,
    audit: Union[int, bool, None] = None,
    forms: Optional[FilePath] = None,
    copies: Optional[str] = None,
    weight: Optional[str] = None,
    weight_by: WeightBy = "log",
    **settings: Any,
) -> Deduplicated:
    """Keeps one document of each cluster of near-duplicates, with the verdicts of one machine.

    ``within`` restricts matches to equal values of a column. All documents of ``against``, which has the same columns,
    precede the data and are kept. ``forms`` is the file of a table of forms, or "off". ``keep``, ``copies``, ``weight`` and
    ``weight_by`` are as in :func:`lookalike.spark.dedup`, and ``settings`` are its match options. Rows whose text is null
    are left out. ``audit`` (True, or the number of documents to sample) estimates the missed and the wrong
    matches in ``result.audit``; it reads the data twice more.

    >>> from lookalike import ray as lar
    >>> texts = ["the ferry leaves at seven", "the ferry leaves at eight", "a bridge"]
    >>> data = ray.data.from_items([{"id": str(at), "text": text} for at, text in enumerate(texts)])
    >>> lar.dedup(data, threshold=0.6, keep="last").removed.select(["id", "kept"]).to_pylist()
    [{'id': '0', 'kept': '1'}]
    """
    import ray

    refuse_one_machine(settings, "Ray")
    _refuse_unknown(dedup, settings)
    there = ds.schema()
    fields = CopyFields.of(copies, weight, weight_by, () if there is None else there.names, against is not None)
    job = Job.of(recipe, keep, id, within=within is not None, against=against is not None, forms=forms, **settings)
    wanted = arguments.audit(audit)
    if wanted is not None:
        _engine.check_audit(job.open())
    values = {f"value{at}": field for at, field in enumerate(job.order_fields)}
    names = {"id": id, "text": text, **values, "part": within}
    source = _documents(ds, names, against)
    sketched = _sketched(job, source)
    removed = _removed(job, _settled(job, source, sketched))
    audited = None
    if wanted is not None:
        tables = _AuditedData(source, removed)
        counts = _steps.add_counts(_blocks(sketched, _steps.COUNT))
        audited = _audit_steps.audit_run(job, tables, counts, wanted)
    gone = ray.put(removed.column("id"))
    counted = None if fields is None else ray.put(_counted_copies(removed, fields))

    def kept(table: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = table.column(id).cast(pa.string())
        is_gone = pc.is_in(ids, ray.get(gone).combine_chunks())
        rows = table.filter(pc.and_(pc.invert(is_gone), table.column(text).is_valid()))
        return rows if fields is None else _with_copies(rows, id, fields, ray.get(counted))

    return Deduplicated(ds.map_batches(kept, batch_format="pyarrow"), removed, ds, text, job, audited)


def pairs(
    ds: "Dataset",
    text: str = "text",
    id: str = "id",
    *,
    recipe: RecipeLike = "default",
    within: Optional[str] = None,
    against: Optional["Dataset"] = None,
    forms: Optional[FilePath] = None,
    **settings: Any,
) -> "pa.Table":
    """Returns every pair of near-duplicates as ``a, b, similarity``, where ``a`` is the smaller id. Of equal texts, only
    the first document is listed. With ``against``, which has the same columns as the data, ``a`` is one of its documents
    and ``b`` one of the data; of equal texts, the first document of each is listed, and the two are not a pair.

    >>> from lookalike import ray as lar
    >>> texts = ["the ferry leaves at seven", "a bridge", "the ferry leaves at eight"]
    >>> data = ray.data.from_items([{"id": str(at), "text": text} for at, text in enumerate(texts)])
    >>> lar.pairs(data, threshold=0.5).to_pylist()
    [{'a': '0', 'b': '2', 'similarity': 0.6}]
    """
    _refuse_unknown(pairs, settings)
    job = Job.of(recipe, None, id, within=within is not None, against=against is not None, forms=forms, **settings)
    source = _documents(ds, {"id": id, "text": text, "part": within}, against)
    return _table_of(_settled(job, source, _sketched(job, source), _PAIRS), _PAIRS)


def _counted_copies(removed: "pa.Table", fields: CopyFields) -> "pa.Table":
    """Returns a table ``id, copies`` of the kept documents that stand for others too, and ``weight`` if it is a field."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = pc.value_counts(removed.column("kept"))
    copies = pc.add(counted.field("counts"), 1)
    columns = {"id": counted.field("values"), "copies": copies}
    if fields.weight is not None:
        columns["weight"] = pa.array(fields.weights_of(copies.to_pylist()), pa.float64())
    return pa.table(columns)


def _with_copies(rows: "pa.Table", id: str, fields: CopyFields, counted: "pa.Table") -> "pa.Table":
    """Returns kept rows with the number of documents for which each stands, and the weight that follows from it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(rows.column(id).cast(pa.string()), counted.column("id").combine_chunks())

    def values(name: str, alone: Any) -> Any:
        return pc.fill_null(counted.column(name).take(places), alone)

    if fields.copies is not None:
        rows = rows.append_column(fields.copies, values("copies", 1))
    if fields.weight is not None:
        rows = rows.append_column(fields.weight, values("weight", fields.weights_of([1])[0]))
    return rows


def _refuse_unknown(function: Callable[..., Any], settings: dict[str, Any]) -> None:
    unknown = sorted(set(settings) - set(_steps.RULE))
    if unknown:
        advice = advise_argument(unknown[0], function, _steps.RULE) or ": leave it out"
        raise SettingError(
            f"lookalike.ray.{function.__name__} has no argument {unknown[0]}{advice}; the match options are "
            f"{', '.join(_steps.RULE)}"
        )


def _documents(data: "Dataset", names: dict[str, Optional[str]], against: Optional["Dataset"]) -> "Dataset":
    """Returns the documents of the data, and those of ``against``."""
    if against is None:
        return _source(data, names, None)
    return _source(data, names, False).union(_source(against, names, True))


def _source(data: "Dataset", names: dict[str, Optional[str]], given: Optional[bool]) -> "Dataset":
    """Returns the columns of documents under the names that the steps use."""
    there = data.schema()
    for name in names.values():
        if name is not None and there is not None and name not in there.names:
            raise InputError(f"the data has no column '{name}' among " + ", ".join(f"'{it}'" for it in there.names))
    return data.map_batches(lambda table: _columns(table, names, given), batch_format="pyarrow")


def _columns(table: "pa.Table", names: dict[str, Optional[str]], given: Optional[bool]) -> "pa.Table":
    import pyarrow as pa

    columns = {name: table.column(column) for name, column in names.items() if column is not None}
    for name in ("id", "text"):
        columns[name] = columns[name].cast(pa.string())
    if given is not None:
        columns["given"] = pa.array([given] * table.num_rows, pa.bool_())
    return pa.table(columns)


def _count_of_nulls(table: "pa.Table", name: str) -> "pa.Table":
    import pyarrow as pa

    return pa.table({"nulls": pa.array([table.column(name).null_count], pa.int64())})


def _run(step: Step, table: "pa.Table", columns: "tuple[tuple[str, str], ...]" = _BLOCKS) -> "pa.Table":
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns])
    return pa.Table.from_batches(list(step(table.to_batches())), schema)


def _mapped(step: Step, data: "Dataset") -> "Dataset":
    return data.map_batches(lambda table: _run(step, table), batch_format="pyarrow")


def _of_kind(data: "Dataset", *kinds: int) -> "Dataset":
    def rows(table: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        return table.filter(pc.is_in(table.column("kind"), pa.array(kinds, pa.int32())))

    return data.map_batches(rows, batch_format="pyarrow")


def _sketched(job: Job, source: "Dataset") -> "Dataset":
    """Returns the blocks of keys, features and counts of the documents."""
    return _mapped(_steps.scatter(job), source).materialize()


def _members(job: Job, source: "Dataset", sketched: "Dataset") -> bytes:
    """Returns the members of components and the repeated texts."""
    found = _gathered(job, _spread(job, sketched))
    crowded = b"".join(_blocks(found, _steps.CROWDED))
    if crowded:
        features = _mapped(_steps.scatter(job, crowded), source).materialize()
        found = found.union(_gathered(job, _spread(job, features))).materialize()
    if _of_kind(found, _steps.SPLIT).count():
        found = found.union(_gathered(job, _of_kind(found, _steps.SPLIT))).materialize()
    for kind, whose in ((_steps.REPEATED_ID, ""), (_steps.REPEATED_GIVEN_ID, " of against")):
        repeated = [block.decode() for block in _blocks(found, kind)]
        if repeated:
            raise InputError(
                f"{len(repeated)} ids{whose} occur in more than one row, for example '{min(repeated)}': give every "
                "document a unique id"
            )
    return _engine.members(_blocks(found, _steps.LINKS), _blocks(found, _steps.REPEATS))


def _spread(job: Job, sketched: "Dataset") -> "Dataset":
    """Splits blocks by parts, with the rarest features of documents as keys."""
    import pyarrow as pa

    tables, table = _blocks(sketched, _steps.TABLE), None
    if tables:
        (summed,) = _steps.add_tables(job)([pa.record_batch({"block": pa.array(tables, pa.binary())})])
        table = summed.column("block")[0].as_py()
    blocks = _of_kind(sketched, _steps.PART, _steps.FEATURES)
    return _mapped(_steps.spread(job, table, _PARTS), blocks)


def _grouped(data: "Dataset", key: str, step: Any, columns: "tuple[tuple[str, str], ...]") -> "Dataset":
    """Runs a step over the rows of every group."""
    import pyarrow as pa
    import ray

    # Blocks without rows can lack columns, so that Ray's shuffle fails, and a data set without rows has no
    # groups.
    blocks = data.materialize().to_arrow_refs()
    rows = ray.remote(lambda table: table.num_rows)
    counts = ray.get([rows.remote(block) for block in blocks])
    full = [block for block, count in zip(blocks, counts) if count]
    if not full:
        return ray.data.from_arrow(_run(lambda batches: iter(()), pa.table({}), columns))
    data = ray.data.from_arrow_refs(full)
    groups = data.groupby(key, num_partitions=_PARTS)
    return groups.map_groups(step, batch_format="pyarrow").materialize()


def _gathered(job: Job, keyed: "Dataset") -> "Dataset":
    """Returns the links and repeats that the parts find."""
    step = _steps.gather(job, _PARTS)
    return _grouped(keyed, "part", lambda table: _run(step, table), _BLOCKS)


def _blocks(found: "Dataset", kind: int) -> list[bytes]:
    return [row["block"] for row in _of_kind(found, kind).take_all()]


def _settled(
    job: Job, source: "Dataset", sketched: "Dataset", columns: Any = _REMOVED
) -> list[dict[str, Any]]:
    """Returns rows of removed documents or of pairs."""
    import pyarrow as pa
    import ray

    members = ray.put(_members(job, source, sketched))
    collect = lambda table: _run(_steps.collect(job, ray.get(members)), table, _COLLECTED)
    step = _steps.settle(job, columns is _PAIRS)

    def binned(table: "pa.Table") -> "pa.Table":
        bins = [component % _PARTS for component in table.column("component").to_pylist()]
        return table.append_column("bin", pa.array(bins, pa.int64()))

    def settle(table: "pa.Table") -> "pa.Table":
        ordered = table.sort_by([("component", "ascending"), ("rank", "ascending")])
        return _run(step, ordered, columns)

    collected = source.map_batches(collect, batch_format="pyarrow")
    bins = collected.map_batches(binned, batch_format="pyarrow")
    rows: list[dict[str, Any]] = _grouped(bins, "bin", settle, columns).take_all()
    return rows


class _AuditedData:
    """The tables of an audited run; see :class:`lookalike._audit_steps.AuditTables`."""

    def __init__(self, source: "Dataset", removed: "pa.Table") -> None:
        self.source, self.removed = source, removed

    def sampled(self, step: Step) -> "pa.Table":
        return self.rows(lambda: step, _audit_steps.SAMPLED)

    def partners(self, job: Job, sample: "pa.RecordBatch") -> "pa.Table":
        import ray

        held = ray.put(sample)
        found = self.rows(lambda: _audit_steps.compare_sample(job, ray.get(held)), _audit_steps.PARTNERS)
        return _audit_steps.smallest_partners(found)

    def removed_sample(self) -> "pa.Table":
        return self.removed.select(list(_audit_steps.REMOVED))

    def removed_among(self, ids: list[str]) -> set[str]:
        return set(ids).intersection(self.removed.column("id").to_pylist())

    def rows(self, step: Any, columns: dict[str, str]) -> "pa.Table":
        """Returns the rows that a step makes of whole blocks of documents, because it prepares a sample first."""
        typed = tuple((name, _TYPES[kind]) for name, kind in columns.items())
        made = self.source.map_batches(
            lambda table: _run(step(), table, typed), batch_format="pyarrow", batch_size=None
        )
        return _table_of(made.take_all(), typed)


def _removed(job: Job, rows: list[dict[str, Any]]) -> "pa.Table":
    """Returns removed documents as a table."""
    import pyarrow as pa

    table = _table_of(rows, _REMOVED)
    table = table.append_column("threshold", pa.array([job.threshold] * len(rows), pa.float64()))
    return table.append_column("cluster", table.column("kept"))


def _table_of(rows: list[dict[str, Any]], columns: "tuple[tuple[str, str], ...]") -> "pa.Table":
    import pyarrow as pa

    return pa.table({name: pa.array([row[name] for row in rows], pa.type_for_alias(kind)) for name, kind in columns})
