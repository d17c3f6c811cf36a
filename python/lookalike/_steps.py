"""The steps of a run on many machines, as functions over record batches.

Each step takes an iterator of record batches and yields record batches, as Spark's ``mapInArrow`` requires
and Ray's ``map_batches`` accepts. The engine implements the steps and releases the interpreter while it works.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, Optional

from . import _engine
from ._recipe import RecipeLike, recipe_of
from ._arguments import rule

Batches = Iterable[Any]
Step = Callable[[Batches], Iterator[Any]]

#: Contents of the rows of blocks, by their column ``kind``.
PART, FEATURES, LINKS, REPEATS, REPEATED_ID, CROWDED, SPLIT, TABLE, REPEATED_GIVEN_ID, REJECTED = range(10)


@dataclass(frozen=True)
class Job:
    """The settings that all steps of a run share; they are pickled with the steps."""

    recipe: str
    rule: tuple[tuple[str, Any], ...]
    keep: str
    id: str
    #: True if documents match only within equal parts, if some documents are known already, and if texts
    #: are features.
    within: bool = False
    against: bool = False
    features: bool = False

    @classmethod
    def of(
        cls, recipe: RecipeLike, keep: Optional[str], id: str, *, within: bool = False,
        against: bool = False, features: bool = False, **given: Any,
    ) -> "Job":
        """Returns a job; refuses settings that contradict each other."""
        chosen = tuple(rule(**{name: given.get(name) for name in RULE}).items())
        job = cls(recipe_of(recipe).toml, chosen, keep or "first", id, within, against, features)
        job.open()
        return job

    def open(self) -> _engine.Distributed:
        """Returns the job of the engine, made once in each process."""
        return _open(self)

    @property
    def field(self) -> Optional[str]:
        """The field with the value that orders documents, if any."""
        return self.open().field

    @property
    def threshold(self) -> float:
        """The smallest similarity that matches."""
        return self.open().threshold


#: Arguments that are match options.
RULE = ("method", "threshold", "distance", "candidates", "sentences", "verify", "unit")


@lru_cache(maxsize=8)
def _open(job: Job) -> _engine.Distributed:
    recipe = recipe_of(job.recipe)
    return _engine.Distributed(
        recipe, dict(job.rule), job.keep, job.id, job.within, job.against, job.features
    )


def scatter(job: Job, crowded: Optional[bytes] = None) -> Step:
    """Turns rows of documents into blocks of keys and features, or of features alone.

    The last block is a table of feature frequencies, if there are features.
    """

    def step(batches: Batches) -> Iterator[Any]:
        scatter = _engine.Scatter(job.open(), crowded)
        for batch in batches:
            blocks = scatter.add(batch)
            if blocks is not None:
                yield blocks
        yield scatter.finish()
        table = scatter.table()
        if table is not None:
            yield _packed(table)

    return step


def _packed(table: Any) -> Any:
    """Returns a table of frequencies, compressed, because with few features it is nearly empty."""
    import pyarrow as pa

    kind, part, block = (column[0].as_py() for column in table.columns)
    columns = {
        "kind": pa.array([kind], pa.int32()),
        "part": pa.array([part], pa.int32()),
        "block": pa.array([zlib.compress(block, 1)], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def add_tables(job: Job) -> Step:
    """Adds up tables of feature frequencies."""

    def step(batches: Batches) -> Iterator[Any]:
        features = _engine.Features(job.open())
        rows = 0
        for batch in batches:
            for block in batch.column("block"):
                features.add(zlib.decompress(block.as_py()))
                rows += 1
        if rows:
            yield _packed(features.table())

    return step


def spread(job: Job, table: Optional[bytes], parts: int) -> Step:
    """Splits blocks by the parts that receive all equal keys, with the rarest features as keys.

    ``table`` has the feature frequencies; None if there are no features.
    """

    def step(batches: Batches) -> Iterator[Any]:
        features = _engine.Features(job.open(), None if table is None else zlib.decompress(table))
        for batch in batches:
            yield features.keys(batch, parts)

    return step


def gather(job: Job, parts: int) -> Step:
    """Turns all blocks of some parts into links, repeated texts and ids, and buckets to divide."""

    def step(batches: Batches) -> Iterator[Any]:
        gather = _engine.Gather(job.open())
        for batch in batches:
            gather.add(batch)
        yield gather.finish(parts)

    return step


def linked(job: Job, blocks: list[Any], again: Callable[[bytes], list[Any]]) -> list[tuple[int, bytes]]:
    """Finds the links between all blocks of a run in this process; returns rows as `gather` does.

    ``again`` returns the features of the nodes in dense buckets.
    """

    def gathered(batches: list[Any]) -> list[tuple[int, bytes]]:
        return [row for batch in gather(job, 1)(batches) for row in rows_of(batch)]

    def spread_out(blocks: list[Any]) -> list[Any]:
        (table,) = list(add_tables(job)(_of_kind(blocks, TABLE))) or (None,)
        return list(spread(job, None if table is None else rows_of(table)[0][1], 1)(blocks))

    found = gathered(spread_out(blocks))
    crowded = b"".join(block for kind, block in found if kind == CROWDED)
    if crowded:
        found += gathered(spread_out(again(crowded)))
    split = [block for kind, block in found if kind == SPLIT]
    return found + gathered([_batch_of(split)]) if split else found


def rows_of(batch: Any) -> list[tuple[int, bytes]]:
    """Returns the kinds and blocks of a batch."""
    return list(zip(batch.column("kind").to_pylist(), batch.column("block").to_pylist()))


def _of_kind(blocks: list[Any], kind: int) -> list[Any]:
    import pyarrow.compute as pc

    return [batch.filter(pc.equal(batch.column("kind"), kind)) for batch in blocks]


def _batch_of(blocks: list[bytes]) -> Any:
    import pyarrow as pa

    return pa.record_batch({"block": pa.array(blocks, pa.binary())})


def collect(job: Job, members: bytes) -> Step:
    """Turns rows of documents into the rows of documents in components."""

    def step(batches: Batches) -> Iterator[Any]:
        collect = _engine.Collect(job.open(), members)
        for batch in batches:
            yield collect.add(batch)

    return step


def name_texts(job: Job) -> Step:
    """Turns rows of documents into rows of node, name, position, id and text."""

    def step(batches: Batches) -> Iterator[Any]:
        collect = _engine.Collect(job.open(), _engine.members([], []))
        for batch in batches:
            yield collect.names(batch)

    return step


def unpack_links() -> Step:
    """Turns blocks of links into rows of two nodes."""

    def step(batches: Batches) -> Iterator[Any]:
        import numpy
        import pyarrow as pa

        for batch in batches:
            for block in batch.column("block"):
                links = numpy.frombuffer(block.as_py(), "<i8").reshape(-1, 2)
                columns = [pa.array(links[:, 0]), pa.array(links[:, 1])]
                yield pa.RecordBatch.from_arrays(columns, ["a", "b"])

    return step


def unpack_repeats(job: Job) -> Step:
    """Turns blocks of repeated texts into rows of name, position and id."""

    def step(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            yield _engine.repeats(job.open(), batch)

    return step


#: Largest size of a component in bytes.
COMPONENT_MEMORY = 4 << 30


def settle(job: Job, pairs: bool = False, limit: int = COMPONENT_MEMORY) -> Step:
    """Turns rows of whole components, sorted by component and rank, into removed documents or pairs.

    A component that takes more than ``limit`` bytes is refused.
    """

    def step(batches: Batches) -> Iterator[Any]:
        settle = _engine.Settle(job.open(), pairs, limit)
        for batch in batches:
            yield settle.add(batch)
        yield settle.finish()

    return step


def fingerprint(recipe: str) -> Step:
    """Turns rows of id and text into rows of id and fingerprint, ``-`` for a text without one."""

    def step(batches: Batches) -> Iterator[Any]:
        import pyarrow as pa

        loaded = recipe_of(recipe)
        digits = loaded.bits // 4
        for batch in batches:
            texts = pa.table({"text": batch.column(1)})
            rows, missing = _engine.simhash(texts, loaded, 1)
            prints = [
                "-" if without else f"{sum(int(word) << 64 * at for at, word in enumerate(row)):0{digits}x}"
                for row, without in zip(rows, missing)
            ]
            columns = [batch.column(0), pa.array(prints, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, ["id", "fingerprint"])

    return step
