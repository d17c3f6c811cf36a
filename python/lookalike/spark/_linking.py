"""Links between documents, found part by part by the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from .. import _steps
from ._key_filters import build_filter
from ._session import collect_arrow
from ._tables import BLOCKS, RunTables, refuse_repeated, union_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .._steps import Job

#: Largest number of frequency tables (4 MiB each) that the driver adds up; tasks add up more of them.
_TABLES = 16


@dataclass
class Linked:
    """The findings of all parts, in tables."""

    #: Blocks of links, and their bytes.
    links: "DataFrame"
    link_bytes: int
    #: Blocks of repeated texts; None if no text is repeated.
    repeats: Optional["DataFrame"]


class Linking:
    """Finds the links of a run from blocks of keys and features."""

    def __init__(self, run: RunTables, job: "Job", filter_memory: int) -> None:
        self.run = run
        self.job = job
        self.filter_memory = filter_memory

    def link(self, sketched: "DataFrame", tables: int) -> Linked:
        """Returns the findings. ``tables`` is the number of frequency tables."""
        found = [self.gather(self.spread(sketched, tables))]
        sizes = self.sizes_of(found[0])
        self.refuse_ids(found[0], sizes)
        if _steps.CROWDED in sizes:
            found.append(self.refine(found[0], sizes[_steps.CROWDED][1]))
            _add(sizes, self.sizes_of(found[1]))
        if _steps.SPLIT in sizes:
            found.append(self.gather(union_of([_of_kind(table, _steps.SPLIT) for table in found])))
            _add(sizes, self.sizes_of(found[-1]))
        repeats = _of_kind(found[0], _steps.REPEATS) if _steps.REPEATS in sizes else None
        links = union_of([_of_kind(table, _steps.LINKS) for table in found])
        return Linked(links, sizes.get(_steps.LINKS, (0, 0))[1], repeats)

    def refine(self, found: "DataFrame", node_bytes: int) -> "DataFrame":
        """Links the members of dense buckets by their rarest features."""
        nodes = _of_kind(found, _steps.CROWDED).mapInArrow(_steps.unpack_nodes(), "key bigint")
        wanted = build_filter(nodes, node_bytes // 8, self.filter_memory)
        features = self.run.keep(self.run.source.mapInArrow(_steps.scatter_dense(self.job, wanted), BLOCKS))
        return self.gather(self.spread(features, None))

    def spread(self, sketched: "DataFrame", tables: Optional[int]) -> "DataFrame":
        """Splits blocks by parts. ``tables`` is the number of frequency tables, if it is known."""
        table = None if tables == 0 else self.add_tables(_of_kind(sketched, _steps.TABLE), tables)
        kinds = f"kind = {_steps.PART} OR kind = {_steps.FEATURES}"
        return sketched.where(kinds).mapInArrow(_steps.spread(self.job, table, self.run.parts), BLOCKS)

    def add_tables(self, tables: "DataFrame", count: Optional[int]) -> Optional[bytes]:
        """Returns the sum of frequency tables, which has 4 MiB before compression however many there are."""
        if count is not None and count <= _TABLES:
            summed = list(_steps.add_tables(self.job)(collect_arrow(tables).to_batches()))
            return _steps.rows_of(summed[0])[0][1] if summed else None
        slices = tables.mapInArrow(_steps.slice_tables(), BLOCKS).repartition("part")
        added = collect_arrow(slices.mapInArrow(_steps.add_slices(), BLOCKS))
        rows = list(zip(added.column("part").to_pylist(), added.column("block").to_pylist()))
        return _steps.join_slices(rows) if rows else None

    def gather(self, keyed: "DataFrame") -> "DataFrame":
        """Returns the links and repeats that the parts find."""
        whole = keyed.repartition("part")
        return self.run.keep(whole.mapInArrow(_steps.gather(self.job, self.run.parts), BLOCKS))

    def sizes_of(self, found: "DataFrame") -> dict[int, tuple[int, int]]:
        """Returns the number of rows and of bytes of each kind."""
        return sizes_of(found)

    def refuse_ids(self, found: "DataFrame", sizes: dict[int, tuple[int, int]]) -> None:
        """Refuses ids that occur in several rows."""
        for kind, whose in ((_steps.REPEATED_ID, ""), (_steps.REPEATED_GIVEN_ID, " of against")):
            if kind in sizes:
                some = _of_kind(found, kind).select("block").orderBy("block").limit(3).collect()
                refuse_repeated(sizes[kind][0], [bytes(row.block) for row in some], whose)


def sizes_of(blocks: "DataFrame") -> dict[int, tuple[int, int]]:
    """Returns the number of rows and of bytes of each kind of blocks."""
    from pyspark.sql import functions as F

    told = collect_arrow(blocks.select("kind", F.length("block").alias("bytes")))
    sizes: dict[int, tuple[int, int]] = {}
    for kind, size in zip(told.column("kind").to_pylist(), told.column("bytes").to_pylist()):
        _add(sizes, {kind: (1, size)})
    return sizes


def _add(sizes: dict[int, tuple[int, int]], more: dict[int, tuple[int, int]]) -> None:
    for kind, (rows, size) in more.items():
        others = sizes.get(kind, (0, 0))
        sizes[kind] = (others[0] + rows, others[1] + size)


def _of_kind(blocks: "DataFrame", kind: int) -> "DataFrame":
    return blocks.where(f"kind = {kind}")
