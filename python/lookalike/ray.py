"""Near-duplicates in Ray Data, by the steps of :mod:`lookalike.spark` over the blocks of a data set.

>>> from lookalike import ray as lar                              # doctest: +SKIP
>>> kept = lar.dedup(ray.data.read_parquet("docs")).kept          # doctest: +SKIP

This is a thin adapter: the calling process holds all links and the ids of removed documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _engine, _steps
from ._errors import InputError, SettingError
from ._recipe import RecipeLike
from ._steps import Job, Step

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

__all__ = ["Deduplicated", "dedup"]

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


class Deduplicated:
    """The result of :func:`dedup`.

    >>> from lookalike import ray as lar
    >>> texts = ["one and the same text", "something else", "One and the same text!"]
    >>> result = lar.dedup(ray.data.from_items([{"id": str(at), "text": text} for at, text in enumerate(texts)]))
    >>> sorted(row["id"] for row in result.kept.take_all())
    ['0', '1']
    """

    def __init__(self, kept: "Dataset", removed: "pa.Table") -> None:
        #: Kept rows of the data, with all their columns.
        self.kept = kept
        #: A table ``id, kept, similarity, method, threshold, cluster``: every removed document with
        #: its most similar kept document.
        self.removed = removed


def dedup(
    ds: "Dataset",
    text: str = "text",
    id: str = "id",
    *,
    recipe: RecipeLike = "default",
    keep: Optional[str] = None,
    **settings: Any,
) -> Deduplicated:
    """Keeps one document of each cluster of near-duplicates, with the verdicts of one machine.

    ``settings`` are the match options of :func:`lookalike.spark.dedup`. Rows whose text is null are left
    out.

    >>> from lookalike import ray as lar
    >>> texts = ["the ferry leaves at seven", "the ferry leaves at eight", "a bridge"]
    >>> data = ray.data.from_items([{"id": str(at), "text": text} for at, text in enumerate(texts)])
    >>> lar.dedup(data, threshold=0.6, keep="last").removed.select(["id", "kept"]).to_pylist()
    [{'id': '0', 'kept': '1'}]
    """
    import ray

    unknown = set(settings) - set(_steps.RULE)
    if unknown:
        raise SettingError(f"lookalike.ray.dedup has no argument {sorted(unknown)[0]}")
    job = Job.of(recipe, keep, id, **settings)
    names = [id, text] + ([job.field] if job.field is not None else [])
    source = ds.map_batches(lambda table: _columns(table, names), batch_format="pyarrow")
    members = ray.put(_members(job, source))
    collect = lambda table: _run(_steps.collect(job, ray.get(members)), table, _COLLECTED)
    removed = _settled(job, source.map_batches(collect, batch_format="pyarrow"))
    gone = ray.put(removed.column("id"))

    def kept(table: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = table.column(id).cast(pa.string())
        is_gone = pc.is_in(ids, ray.get(gone).combine_chunks())
        return table.filter(pc.and_(pc.invert(is_gone), table.column(text).is_valid()))

    return Deduplicated(ds.map_batches(kept, batch_format="pyarrow"), removed)


def _columns(table: "pa.Table", names: list[str]) -> "pa.Table":
    """Returns id, text, and the value that orders documents, if any."""
    import pyarrow as pa

    id, text, *value = (table.column(name) for name in names)
    columns = [id.cast(pa.string()), text.cast(pa.string()), *value]
    return pa.table(columns, names=["id", "text", "value"][: len(columns)])


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


def _members(job: Job, source: "Dataset") -> bytes:
    """Returns the members of components and the repeated texts."""
    sketched = _mapped(_steps.scatter(job), source).materialize()
    found = _gathered(job, _spread(job, sketched))
    crowded = b"".join(_blocks(found, _steps.CROWDED))
    if crowded:
        features = _mapped(_steps.scatter(job, crowded), source).materialize()
        found = found.union(_gathered(job, _spread(job, features))).materialize()
    if _of_kind(found, _steps.SPLIT).count():
        found = found.union(_gathered(job, _of_kind(found, _steps.SPLIT))).materialize()
    repeated = [block.decode() for block in _blocks(found, _steps.REPEATED_ID)]
    if repeated:
        raise InputError(
            f"{len(repeated)} ids occur in more than one row, for example '{min(repeated)}': give every document "
            "a unique id"
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


def _settled(job: Job, collected: "Dataset") -> "pa.Table":
    """Returns the removed documents."""
    import pyarrow as pa

    def binned(table: "pa.Table") -> "pa.Table":
        bins = [component % _PARTS for component in table.column("component").to_pylist()]
        return table.append_column("bin", pa.array(bins, pa.int64()))

    def settle(table: "pa.Table") -> "pa.Table":
        ordered = table.sort_by([("component", "ascending"), ("rank", "ascending")])
        return _run(_steps.settle(job), ordered, _REMOVED)

    bins = collected.map_batches(binned, batch_format="pyarrow")
    rows = _grouped(bins, "bin", settle, _REMOVED).take_all()
    columns = {name: [row[name] for row in rows] for name in ("id", "kept", "similarity", "method")}
    columns["threshold"] = [job.threshold] * len(rows)
    columns["cluster"] = columns["kept"]
    kinds = [pa.string(), pa.string(), pa.float64(), pa.string(), pa.float64(), pa.string()]
    return pa.table(
        {name: pa.array(values, kind) for (name, values), kind in zip(columns.items(), kinds)}
    )
