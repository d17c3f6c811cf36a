"""A deduplication, or a search for pairs: from the data to removed documents or pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from .. import _arguments as arguments
from .. import _engine, _steps
from .._audit_steps import audit_run
from .._steps import Job
from ._audit_run import AuditedFrames
from ._candidates import REPEATS, Selection
from ._columns import Columns
from ._components import LABELS, connect_links
from ._key_filters import FILTER_MEMORY
from ._linking import Linked, Linking, sizes_of
from ._session import collect_arrow, frame_of
from ._tables import BLOCKS, RunTables, in_order, refuse_repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REMOVED = "id string, kept string, similarity double, method string"
PAIRS = "a string, b string, similarity double"

_COLLECTED = (
    "component bigint, rank int, name binary, position binary, of_part bigint, repeated boolean, text string, "
    "kept string"
)

#: Size of a link in bytes.
_LINK = 16


@dataclass(frozen=True)
class RunLimits:
    """What the driver and a task may hold."""

    links_on_driver: int = 4_000_000
    component_memory: int = _steps.COMPONENT_MEMORY
    filter_memory: int = FILTER_MEMORY

    def __post_init__(self) -> None:
        arguments.given_whole("links_on_driver", self.links_on_driver, 0, 2**40)
        for name in ("component_memory", "filter_memory"):
            arguments.given_whole(name, getattr(self, name), 1, 2**50)


class DedupRun(RunTables):
    """The tables of a deduplication, or of a search for pairs."""

    def __init__(
        self, data: "DataFrame", columns: Columns, job: Job, checkpoint: Optional[str], limits: RunLimits,
        against: Optional["DataFrame"] = None,
    ) -> None:
        super().__init__(data, columns, checkpoint, against)
        self.job = job
        self.limits = limits
        #: Reads the blocks with the numbers of documents, once they are sketched.
        self.read_counts: Callable[[], list[bytes]] = list

    def removed(self) -> tuple["DataFrame", int]:
        """Returns the removed documents, and their number."""
        removed, count = self.resolved(REMOVED)
        if count is None:
            removed = self.keep(removed)
            count = removed.count()
        return removed, count

    def audit(self, removed: "DataFrame", wanted: int) -> dict[str, Any]:
        """Returns the audit of the run, after its removed documents; see `audit_run`."""
        counted = _steps.add_counts(self.read_counts())
        return audit_run(self.job, AuditedFrames(self, removed), counted, wanted)

    def pairs(self) -> "DataFrame":
        """Returns all pairs."""
        return self.resolved(PAIRS)[0]

    def resolved(self, schema: str) -> tuple["DataFrame", Optional[int]]:
        """Returns removed documents or pairs; for small runs, which the driver holds, also their number."""
        sketched = self.keep(self.source.mapInArrow(_steps.scatter(self.job), BLOCKS))
        sizes = sizes_of(sketched)
        if sum(size for _, size in sizes.values()) <= _LINK * self.limits.links_on_driver:
            settled = collect_arrow(self.settle(self.collected_by_driver(sketched), schema))
            return frame_of(self.spark, settled, schema), settled.num_rows
        if _steps.REJECTED in sizes:
            self.reject(self.blocks_of_kind(sketched, _steps.REJECTED))
        self.read_counts = lambda: self.blocks_of_kind(sketched, _steps.COUNT)
        linking = Linking(self, self.job, self.limits.filter_memory)
        return self.resolved_by_tables(linking.link(sketched, sizes.get(_steps.TABLE, (0, 0))[0]), schema), None

    def blocks_of_kind(self, sketched: "DataFrame", kind: int) -> list[bytes]:
        """Returns the few blocks of a kind."""
        rows = sketched.where(f"kind = {kind}").select("block").collect()
        return [bytes(row.block) for row in rows]

    def settle(self, collected: "DataFrame", schema: str, whole: Sequence[str] = ("component",)) -> "DataFrame":
        """Returns the removed documents or pairs of whole components, whose rows have equal columns ``whole``."""
        step = _steps.settle(self.job, schema == PAIRS, self.limits.component_memory)
        return in_order(collected, whole, "rank").mapInArrow(step, schema)

    # Small runs.

    def collected_by_driver(self, sketched: "DataFrame") -> "DataFrame":
        """Returns the documents in components, which the driver finds from all blocks."""
        found = self.linked_by_driver(sketched)
        self.unpersist()
        links, repeats = ([block for of, block in found if of == kind] for kind in (_steps.LINKS, _steps.REPEATS))
        members = _engine.members(links, repeats)
        return self.source.mapInArrow(_steps.collect(self.job, members), _COLLECTED)

    def linked_by_driver(self, sketched: "DataFrame") -> list[tuple[int, bytes]]:
        """Returns links and other findings from blocks that the driver collects."""

        def again(crowded: bytes) -> list[Any]:
            blocks = self.source.mapInArrow(_steps.scatter(self.job, crowded), BLOCKS)
            batches: list[Any] = collect_arrow(blocks).to_batches()
            return batches

        blocks = collect_arrow(sketched).to_batches()
        rows = [row for batch in blocks for row in _steps.rows_of(batch)]
        self.reject([block for kind, block in rows if kind == _steps.REJECTED])
        self.read_counts = lambda: [block for kind, block in rows if kind == _steps.COUNT]
        found = _steps.linked(self.job, blocks, again)
        for kind, whose in ((_steps.REPEATED_ID, ""), (_steps.REPEATED_GIVEN_ID, " of against")):
            repeated = [block for of, block in found if of == kind]
            refuse_repeated(len(repeated), repeated, whose)
        return found

    # All others: links, components and repeated texts are in tables.

    def resolved_by_tables(self, linked: Linked, schema: str) -> "DataFrame":
        """Returns removed documents or pairs."""
        repeats, names = None, 0
        if linked.repeats is not None:
            repeats = self.keep(linked.repeats.mapInArrow(_steps.unpack_repeats(self.job), REPEATS))
            names = repeats.count()
        if not linked.link_bytes and (repeats is None or schema == PAIRS):
            return self.spark.createDataFrame([], schema)
        labels, nodes, is_on_driver = self.labels_of(linked)
        selection = Selection(self, self.job, labels, nodes, is_on_driver, repeats, names, schema == PAIRS)
        collected, whole = selection.collected(self.limits.filter_memory)
        return self.settle(collected, schema, whole)

    def labels_of(self, linked: Linked) -> tuple["DataFrame", int, bool]:
        """Returns the component of every node with a link, the number of these nodes, and whether the driver has them."""
        if linked.link_bytes <= _LINK * self.limits.links_on_driver:
            links = collect_arrow(linked.links.select("block")).column("block").to_pylist()
            labels = _steps.labels_of(links)
            return frame_of(self.spark, labels, LABELS), labels.num_rows, True
        labels = connect_links(self, linked.links)
        return labels, labels.count(), False
