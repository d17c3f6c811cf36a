"""The audit of a deduplication: a sample of documents is compared exactly with all later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _audit_steps as steps
from .. import _engine
from .._steps import Job, Step
from ._session import collect_arrow, frame_of
from ._tables import RunTables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class AuditedFrames:
    """The tables of an audited run; see :class:`lookalike._audit_steps.AuditTables`."""

    def __init__(self, run: RunTables, removed: "DataFrame") -> None:
        self.run = run
        self.removed = removed

    def sampled(self, step: Step) -> "pa.Table":
        return collect_arrow(self.run.source.mapInArrow(step, _schema(steps.SAMPLED)))

    def partners(self, job: Job, sample: "pa.RecordBatch") -> "pa.Table":
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        found = self.run.source.mapInArrow(steps.compare_sample(job, sample), _schema(steps.PARTNERS))
        # The tasks reduce the rows, so that the driver receives a bounded number of them.
        place = F.row_number().over(Window.partitionBy("sampled").orderBy("number", "id"))
        smallest = found.withColumn("place", place).where(F.col("place") <= _engine.AUDIT_PARTNERS)
        return collect_arrow(smallest.drop("place"))

    def removed_sample(self) -> "pa.Table":
        pairs = self.removed.select("id", "kept")
        return collect_arrow(pairs.mapInArrow(steps.sample_removed(), _schema(steps.REMOVED)))

    def removed_among(self, ids: list[str]) -> set[str]:
        import pyarrow as pa
        from pyspark.sql import functions as F

        wanted = frame_of(self.run.spark, pa.table({"id": pa.array(ids, pa.string())}), "id string")
        rows = self.removed.select("id").join(F.broadcast(wanted), "id", "left_semi")
        return set(collect_arrow(rows).column("id").to_pylist())


def _schema(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
