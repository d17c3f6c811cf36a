"""The steps of a run on many machines, as functions over record batches.

Each step takes an iterator of record batches and yields record batches, as Spark's ``mapInArrow`` requires
and Ray's ``map_batches`` accepts. The engine implements the steps and releases the interpreter while it works.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, Optional, Union

from . import _engine
from ._arguments import choice_or_path, rule
from ._destination_table import DestinationLayout, DestinationTable
from ._errors import SettingError
from ._files import FilePath
from ._key_filter import FilterLayout, KeyFilter
from ._recipe import RecipeLike, recipe_of

Batches = Iterable[Any]
Step = Callable[[Batches], Iterator[Any]]

#: Contents of the rows of blocks, by their column ``kind``.
PART, FEATURES, LINKS, REPEATS, REPEATED_ID, CROWDED, SPLIT, TABLE, REPEATED_GIVEN_ID, REJECTED, COUNT = range(11)


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
    #: The table of forms of the recipe as TOML, so that tasks need no file.
    forms: Optional[str] = None

    @classmethod
    def of(
        cls, recipe: RecipeLike, keep: Optional[str], id: str, *, within: bool = False,
        against: bool = False, features: bool = False, forms: Optional[FilePath] = None, **given: Any,
    ) -> "Job":
        """Returns a job; refuses settings that contradict each other."""
        chosen = tuple(rule(**{name: given.get(name) for name in RULE}).items())
        compared = _with_forms(recipe_of(recipe), forms)
        table = compared.form_table
        if features and table is not None:
            raise SettingError(
                "a comparison of forms needs texts, and features has no texts: leave one of them out"
            )
        plain = compared if table is None else compared.without_forms()
        job = cls(plain.toml, chosen, keep or "first", id, within, against, features, table)
        job.open()
        return job

    def open(self) -> _engine.Distributed:
        """Returns the job of the engine, made once in each process."""
        return _open(self)

    @property
    def order_fields(self) -> list[str]:
        """The fields with the values that order documents, in the order in which they decide."""
        return self.open().order_fields

    @property
    def threshold(self) -> float:
        """The smallest similarity that matches."""
        return self.open().threshold


#: Arguments that are match options.
RULE = ("method", "threshold", "distance", "candidates", "sentences", "verify", "unit")


def _with_forms(recipe: _engine.RecipeBase, forms: Optional[FilePath]) -> _engine.RecipeBase:
    """The recipe with a table of forms in place of its own, or without forms."""
    choice = choice_or_path("forms", forms, ("learn", "off"), '"off" or the path of a table')
    if choice is None:
        return recipe
    if choice == "learn":
        raise SettingError(
            "forms='learn' is for one machine: write a table with la.learn_forms, of all documents or of a part of them, "
            "and give its file"
        )
    return recipe.choose_forms(choice)


@lru_cache(maxsize=8)
def _open(job: Job) -> _engine.Distributed:
    recipe: _engine.RecipeBase = recipe_of(job.recipe)
    if job.forms is not None:
        recipe = recipe.with_form_table(job.forms)
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


#: Number of slices of a table of frequencies.
_SLICES = 64


def slice_tables() -> Step:
    """Divides each table of feature frequencies into slices, which are numbered as parts, without those of zeros."""

    def step(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            for block in batch.column("block"):
                table = zlib.decompress(block.as_py())
                size = len(table) // _SLICES
                slices = ((at, table[at * size :][:size]) for at in range(_SLICES))
                yield _rows_of_slices((at, part) for at, part in slices if any(part))

    return step


def add_slices() -> Step:
    """Adds up all slices of the same number."""

    def step(batches: Batches) -> Iterator[Any]:
        import numpy

        sums: dict[int, Any] = {}
        for batch in batches:
            for at, block in zip(batch.column("part").to_pylist(), batch.column("block")):
                counts = numpy.frombuffer(zlib.decompress(block.as_py()), "<u4").astype(numpy.uint64)
                sums[at] = sums[at] + counts if at in sums else counts
        most = numpy.uint64(0xFFFFFFFF)
        yield _rows_of_slices((at, numpy.minimum(sums[at], most).astype("<u4").tobytes()) for at in sorted(sums))

    return step


def join_slices(slices: list[tuple[int, bytes]]) -> bytes:
    """Returns the compressed table of frequencies that consists of some slices, and zeros elsewhere."""
    blocks = {at: zlib.decompress(block) for at, block in slices}
    empty = bytes(max(map(len, blocks.values())))
    return zlib.compress(b"".join(blocks.get(at, empty) for at in range(_SLICES)), 1)


def _rows_of_slices(slices: Iterable[tuple[int, bytes]]) -> Any:
    import pyarrow as pa

    rows = [(TABLE, at, zlib.compress(block, 1)) for at, block in slices]
    kinds, parts, blocks = zip(*rows) if rows else ((), (), ())
    columns = [pa.array(kinds, pa.int32()), pa.array(parts, pa.int32()), pa.array(blocks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["kind", "part", "block"])


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


def add_counts(blocks: Iterable[bytes]) -> tuple[int, int]:
    """Returns the number of documents and the bytes of their texts, from blocks with these counts."""
    counts = [(int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")) for block in blocks]
    return sum(documents for documents, _ in counts), sum(size for _, size in counts)


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


def candidate_texts(job: Job, linked: Union[KeyFilter, DestinationTable], repeated: Optional[KeyFilter]) -> Step:
    """Turns rows of documents into rows of the columns of `CANDIDATES`.

    ``linked`` has the nodes of texts with a link, ``repeated`` is a filter of the nodes of texts that several documents
    have. Rows that are in neither are left out. A row has its text if that may have a link, unless a smaller position
    with the same text came before: such a document cannot be the first with its text, and only that needs the text.
    """

    def step(batches: Batches) -> Iterator[Any]:
        import numpy
        import pyarrow as pa

        collect = _engine.Collect(job.open(), _engine.members([], []))
        smallest: dict[bytes, bytes] = {}
        for batch in batches:
            named = collect.names(batch)
            nodes = named.column("node").to_numpy()
            destinations, is_linked = _destinations(linked, nodes)
            is_repeated = numpy.zeros(len(nodes), bool) if repeated is None else repeated.has(nodes)
            chosen = is_linked | is_repeated
            named, is_linked, is_repeated = named.filter(pa.array(chosen)), is_linked[chosen], is_repeated[chosen]
            is_first = is_linked.copy()
            names, positions = named.column("name"), named.column("position")
            for row in numpy.flatnonzero(is_linked & is_repeated):
                name, position = names[int(row)].as_py(), positions[int(row)].as_py()
                is_first[row] = position < smallest.get(name, position + b"\0")
                if is_first[row]:
                    smallest[name] = position
            texts = pa.compute.if_else(pa.array(is_first), named.column("text"), None)
            columns = [named.column(name) for name in ("node", "name", "position", "id", "given", "of_part")]
            columns += [texts, pa.array(is_repeated), destinations.filter(pa.array(chosen))]
            yield pa.RecordBatch.from_arrays(columns, list(CANDIDATES))

    return step


def _destinations(linked: Union[KeyFilter, DestinationTable], nodes: Any) -> tuple[Any, Any]:
    """Returns the destinations of nodes, null without a table, and True for each node that may have a link."""
    import pyarrow as pa

    if isinstance(linked, KeyFilter):
        return pa.nulls(len(nodes), pa.int32()), linked.has(nodes)
    destinations, is_linked = linked.destinations(nodes)
    return pa.array(destinations, pa.int32()), is_linked


#: Columns of the rows of `candidate_texts`, with their types in Spark. ``destination`` is where the text is compared,
#: ``may_repeat`` is True if other documents may have the text.
CANDIDATES = {
    "node": "bigint", "name": "binary", "position": "binary", "id": "string", "given": "boolean", "of_part": "bigint",
    "text": "string", "may_repeat": "boolean", "destination": "int",
}


def address_repeats(table: DestinationTable) -> Step:
    """Adds to repeated texts their destinations, which are those of their documents in `candidate_texts`."""

    def step(batches: Batches) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            destinations, _ = table.destinations(batch.column("node").to_numpy())
            columns = [*batch.columns, pa.array(destinations, pa.int32())]
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, "destination"])

    return step


def scatter_dense(job: Job, wanted: KeyFilter) -> Step:
    """Turns rows of documents into blocks of features of those whose nodes are in a filter; see `scatter`."""

    def step(batches: Batches) -> Iterator[Any]:
        collect = _engine.Collect(job.open(), _engine.members([], []))
        features = _engine.Features(job.open())
        found = False
        for batch in batches:
            nodes = collect.names(batch).column("node").to_numpy()
            nodes = nodes[wanted.has(nodes)]
            if not len(nodes):
                continue
            scatter = _engine.Scatter(job.open(), nodes.tobytes())
            blocks = scatter.add(batch)
            if blocks is not None:
                yield blocks
            yield scatter.finish()
            table = scatter.table()
            if table is not None:
                features.add(table.column("block")[0].as_py())
                found = True
        if found:
            yield _packed(features.table())

    return step


def hash_slices(layout: Union[FilterLayout, DestinationLayout]) -> Step:
    """Adds to rows with a key the number of its slice, as the first column."""

    def step(batches: Batches) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            numbers = pa.array(layout.slice_numbers(batch.column("key").to_numpy()), pa.int32())
            yield pa.RecordBatch.from_arrays([numbers, *batch.columns], ["slice", *batch.schema.names])

    return step


def build_slices(layout: Union[FilterLayout, DestinationLayout]) -> Step:
    """Turns rows of slice, key and what belongs to it, with all keys of a slice, into slices."""

    def step(batches: Batches) -> Iterator[Any]:
        import numpy
        import pyarrow as pa

        of_slices: dict[int, list[Any]] = {}
        for batch in batches:
            numbers, *columns = (column.to_numpy() for column in batch.columns)
            order = numpy.argsort(numbers, kind="stable")
            distinct, starts = numpy.unique(numbers[order], return_index=True)
            divided = zip(*(numpy.split(column[order], starts[1:]) for column in columns))
            for number, of_slice in zip(distinct, divided):
                of_slices.setdefault(int(number), []).append(of_slice)
        built = [layout.build_slice(*map(numpy.concatenate, zip(*rows))) for rows in of_slices.values()]
        columns = [pa.array(list(of_slices), pa.int32()), pa.array(built, pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["slice", "block"])

    return step


def unpack_nodes() -> Step:
    """Turns blocks of nodes into rows of keys."""

    def step(batches: Batches) -> Iterator[Any]:
        import numpy
        import pyarrow as pa

        for batch in batches:
            for block in batch.column("block"):
                keys = pa.array(numpy.frombuffer(block.as_py(), "<i8"), pa.int64())
                yield pa.RecordBatch.from_arrays([keys], ["key"])

    return step


def labels_of(links: list[bytes]) -> Any:
    """Returns a table of node and component from blocks of links."""
    import numpy
    import pyarrow as pa

    members = _engine.members(links, [])
    nodes = int.from_bytes(members[:8], "little")
    pairs = numpy.frombuffer(members, "<i8", 2 * nodes, 16).reshape(-1, 2)
    return pa.table({"node": pa.array(pairs[:, 0]), "component": pa.array(pairs[:, 1])})


def unpack_repeats(job: Job) -> Step:
    """Turns blocks of repeated texts into rows of node, name, position of the first document, and its id."""

    def step(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            yield _engine.repeats(job.open(), batch)

    return step


#: Largest size in bytes of a component in memory.
COMPONENT_MEMORY = 4 << 30


def settle(job: Job, pairs: bool = False, limit: int = COMPONENT_MEMORY) -> Step:
    """Turns rows of whole components, sorted by component and rank, into removed documents or pairs.

    The texts of a component that takes more than ``limit`` bytes go to a temporary file. If it takes more without
    them, it is refused.
    """

    def step(batches: Batches) -> Iterator[Any]:
        settle = _engine.Settle(job.open(), pairs, limit, _temporary_directory())
        for batch in batches:
            yield settle.add(batch)
        yield settle.finish()

    return step


def _temporary_directory() -> Optional[str]:
    """Returns a directory that Spark gives its tasks for temporary files; None outside of Spark."""
    directories = [path for path in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(path)]
    # They are on different disks, so the tasks of a machine take turns.
    return directories[os.getpid() % len(directories)] if directories else None


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
