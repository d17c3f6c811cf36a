"""The audit of a run on many machines: its steps over record batches, and what the calling process does with them.

A sample of documents is compared exactly with all later documents. The sample follows from the ids, so the figures are
the same whatever the partitions are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterator, Optional, Protocol

from . import _engine
from ._steps import Batches, Job, Step

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns of sampled documents, of similar ones and of removed ones, with their types in Spark.
SAMPLED = {
    "number": "bigint", "id": "string", "given": "boolean", "of_part": "bigint", "position": "binary", "text": "string"
}
PARTNERS = {"sampled": "int", "number": "bigint", "id": "string", "given": "boolean", "found": "boolean"}
REMOVED = {"id": "string", "kept": "string"}


def sample_documents(job: Job, limit: int, ids: list[str]) -> Step:
    """Turns rows of documents into those that may be sampled, and those with some ids, which have no number."""

    def step(batches: Batches) -> Iterator[Any]:
        sample = _engine.SampleDocuments(job.open(), limit, ids)
        for batch in batches:
            yield sample.add(batch)

    return step


def compare_sample(job: Job, sample: "pa.RecordBatch") -> Step:
    """Turns rows of documents into those that are similar to a sampled one before them.

    For each sampled document they are at most `_engine.AUDIT_PARTNERS` rows, those with the smallest numbers.
    """

    def step(batches: Batches) -> Iterator[Any]:
        compare = _engine.CompareSample(job.open(), sample)
        for batch in batches:
            compare.add(batch)
        yield compare.finish()

    return step


def sample_removed() -> Step:
    """Turns rows of removed documents and their kept ones into a sample of them, which can be sampled again."""

    def step(batches: Batches) -> Iterator[Any]:
        sample = _engine.SampleRemoved()
        for batch in batches:
            sample.add(batch)
        yield sample.finish()

    return step


class AuditTables(Protocol):
    """The tables of a run, as Spark or Ray have them."""

    def sampled(self, step: Step) -> "pa.Table":
        """Returns the rows that a step makes of all documents, with the columns `SAMPLED`."""

    def partners(self, job: Job, sample: "pa.RecordBatch") -> "pa.Table":
        """Returns the rows of `compare_sample` for all documents: for each sampled document, only those with the
        smallest numbers."""

    def removed_sample(self) -> "pa.Table":
        """Returns the rows of `sample_removed` for the removed documents, of all tasks."""

    def removed_among(self, ids: list[str]) -> set[str]:
        """Returns which of these ids removed documents have."""


def audit_run(job: Job, tables: AuditTables, counted: tuple[int, int], wanted: int) -> dict[str, Any]:
    """Returns the audit of a run, with the names that ``lookalike dedup --json`` gives it.

    ``counted`` has the number of documents and the bytes of their texts. ``wanted`` is the number of documents to
    sample; for 0 it follows from the number of documents.
    """
    import pyarrow.compute as pc

    size, limit = _engine.choose_sample(counted[0], wanted or None)
    removed = [tuple(row.values()) for row in batch_of(sample_removed(), tables.removed_sample()).to_pylist()]
    rows = tables.sampled(sample_documents(job, limit, sorted({id for pair in removed for id in pair})))
    drawn = rows.filter(pc.is_valid(rows.column("number")))
    sample = one_batch(drawn.sort_by([("number", "ascending"), ("id", "ascending")]).slice(0, size))
    partners = tables.partners(job, sample)
    named = {(row["id"], row["given"]) for table in (sample, partners) for row in _ids_of(table)}
    ids = {id for id, given in named if not given} | {kept for _, kept in removed}
    gone = tables.removed_among(sorted(ids))
    texts = {(row["id"], row["given"]): row["text"] for row in rows.select(["id", "given", "text"]).to_pylist()}
    report = _engine.audit_report(
        job.open(), counted, wanted or None, sample, _with_left(partners, sample, gone), _texts_of(removed, texts, gone)
    )
    found: dict[str, Any] = json.loads(report)
    return found


def one_batch(table: "pa.Table") -> "pa.RecordBatch":
    """Returns the rows of a table as one batch."""
    import pyarrow as pa

    columns = [column.combine_chunks() for column in table.columns]
    columns = [column.chunk(0) if isinstance(column, pa.ChunkedArray) else column for column in columns]
    return pa.RecordBatch.from_arrays(columns, table.column_names)


def batch_of(step: Step, table: "pa.Table") -> Any:
    """Returns the only batch that a step makes of a table."""
    (batch,) = step(table.to_batches())
    return batch


def smallest_partners(partners: "pa.Table") -> "pa.Table":
    """Returns for each sampled document the similar ones with the smallest numbers."""
    ordered = partners.sort_by([("sampled", "ascending"), ("number", "ascending"), ("id", "ascending")])
    chosen, counts = [], dict[int, int]()
    for row, sampled in enumerate(ordered.column("sampled").to_pylist()):
        counts[sampled] = counts.get(sampled, 0) + 1
        if counts[sampled] <= _engine.AUDIT_PARTNERS:
            chosen.append(row)
    return ordered.take(chosen)


def _ids_of(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(["id", "given"]).to_pylist()
    return rows


def _with_left(partners: "pa.Table", sample: "pa.RecordBatch", gone: set[str]) -> "pa.RecordBatch":
    """Returns similar documents, and whether each remains in the output together with the sampled one."""
    import pyarrow as pa

    is_kept = [row["given"] or row["id"] not in gone for row in _ids_of(sample)]
    sampled = partners.column("sampled").to_pylist()
    left = [
        is_kept[at] and (row["given"] or row["id"] not in gone) for at, row in zip(sampled, _ids_of(partners))
    ]
    columns = [pa.array(sampled, pa.int32()), pa.array(partners.column("found").to_pylist(), pa.bool_())]
    return pa.RecordBatch.from_arrays([*columns, pa.array(left, pa.bool_())], ["sampled", "found", "left"])


def _texts_of(
    removed: list[tuple[str, str]], texts: dict[tuple[str, Optional[bool]], str], gone: set[str]
) -> list[tuple[str, list[str]]]:
    """Returns the text of each removed document and that of its kept one.

    A known document may have the id of another one, which the table of removed documents does not tell apart. Then both
    texts are returned, unless the other one is removed.
    """

    def kept_texts(id: str) -> list[str]:
        known = [texts[id, True]] if (id, True) in texts else []
        return known if id in gone or (id, False) not in texts else [*known, texts[id, False]]

    return [(texts[id, False], kept_texts(kept)) for id, kept in removed]
