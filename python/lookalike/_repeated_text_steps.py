"""The steps of a search for repeated text on many machines, as functions over record batches; see
:mod:`lookalike._steps`.

The engine implements the steps and releases the interpreter while it works. A record has the cuts of a document as bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Iterator

import numpy as np

from . import _arguments as arguments
from . import _engine
from ._passages import MOST_WORDS
from ._recipe import RecipeLike, recipe_of
from ._steps import Batches, Step

#: Contents of the rows of the last step, by their column ``kind``.
PIECE, REST = range(2)

#: Texts whose runs are in one batch, because a text has as many as it has words.
_TEXTS_AT_ONCE = 64


@dataclass(frozen=True)
class RepeatedTextJob:
    """The settings that all steps of a run share; they are pickled with the steps."""

    recipe: str
    min_length: int
    within: bool = False

    @classmethod
    def of(cls, recipe: RecipeLike, min_length: Any, *, within: bool) -> "RepeatedTextJob":
        """Returns a job; refuses settings that are not valid."""
        least = arguments.given_whole("min_length", min_length, 2, MOST_WORDS)
        job = cls(recipe_of(recipe).toml, least, within)
        job.open()
        return job

    def open(self) -> _engine.RepeatedTextSteps:
        """Returns the steps of the engine, made once in each process."""
        return _open(self)


@lru_cache(maxsize=8)
def _open(job: RepeatedTextJob) -> _engine.RepeatedTextSteps:
    return _engine.RepeatedTextSteps(recipe_of(job.recipe), job.min_length)


def hash_runs(job: RepeatedTextJob) -> Step:
    """Turns ``number, text`` and, within equal parts, ``part`` into a row for each run: ``hash, number, start``."""

    def step(batches: Batches) -> Iterator[Any]:
        steps = job.open()
        for batch in batches:
            for first in range(0, batch.num_rows, _TEXTS_AT_ONCE):
                yield _runs_of(steps, job, batch.slice(first, _TEXTS_AT_ONCE))

    return step


def _runs_of(steps: _engine.RepeatedTextSteps, job: RepeatedTextJob, batch: Any) -> Any:
    import pyarrow as pa

    numbers, texts = (batch.column(name).to_pylist() for name in ("number", "text"))
    parts = batch.column("part").to_pylist() if job.within else [None] * len(texts)
    hashes = [np.frombuffer(steps.hash_runs(text, part), "<i8") for text, part in zip(texts, parts)]
    counts = [len(of_text) for of_text in hashes]
    starts = [np.arange(count, dtype=np.int64) for count in counts]
    nothing = np.empty(0, np.int64)
    return pa.RecordBatch.from_pydict(
        {
            "hash": pa.array(np.concatenate([nothing, *hashes]), pa.int64()),
            "number": pa.array(np.repeat(np.asarray(numbers, np.int64), counts), pa.int64()),
            "start": pa.array(np.concatenate([nothing, *starts]), pa.int64()),
        }
    )


def choose_cuts(job: RepeatedTextJob) -> Step:
    """Turns ``number, text, starts, first_numbers, first_starts`` into the records of documents with cuts: ``number,
    cuts``."""

    def step(batches: Batches) -> Iterator[Any]:
        steps = job.open()
        names = ("number", "text", "starts", "first_numbers", "first_starts")
        for batch in batches:
            rows = zip(*(batch.column(name).to_pylist() for name in names))
            chosen = ((number, steps.choose_cuts(text, list(zip(*places)))) for number, text, *places in rows)
            yield _records([(number, record) for number, record in chosen if record])

    return step


def name_places() -> Step:
    """Turns all records, ascending by their numbers, into records that name what stays."""

    def step(batches: Batches) -> Iterator[Any]:
        naming = _engine.PlaceNaming()
        for batch in batches:
            rows = zip(batch.column("number").to_pylist(), batch.column("cuts").to_pylist())
            yield _records([(number, naming.name_places(number, record)) for number, record in rows])

    return step


def _records(rows: list[tuple[int, bytes]]) -> Any:
    import pyarrow as pa

    numbers, records = zip(*rows) if rows else ((), ())
    return pa.RecordBatch.from_pydict(
        {"number": pa.array(numbers, pa.int64()), "cuts": pa.array(records, pa.binary())}
    )


def list_places() -> Step:
    """Turns records into the places that their pieces name: ``number, piece, source, start, length``."""

    def step(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            rows = zip(batch.column("number").to_pylist(), batch.column("cuts").to_pylist())
            places = [
                (number, piece, *place)
                for number, record in rows
                for piece, place in enumerate(_engine.places_of_cuts(record))
            ]
            yield _table(("number", "piece", "source", "start", "length"), places)

    return step


def _table(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Any:
    """Returns a batch of whole numbers."""
    import pyarrow as pa

    columns = list(zip(*rows)) if rows else [()] * len(names)
    return pa.RecordBatch.from_pydict({name: pa.array(column, pa.int64()) for name, column in zip(names, columns)})


def describe_places(job: RepeatedTextJob) -> Step:
    """Turns ``source, id, text, starts, lengths`` into described places: ``source, start, length, first, first_start,
    first_end, tokens``."""

    def step(batches: Batches) -> Iterator[Any]:
        import pyarrow as pa

        steps = job.open()
        for batch in batches:
            names = ("source", "id", "text", "starts", "lengths")
            numbers: list[tuple[int, ...]] = []
            described: list[tuple[str, bytes]] = []
            for source, id, text, starts, lengths in zip(*(batch.column(name).to_pylist() for name in names)):
                ranges = list(zip(starts, lengths))
                for (start, length), place in zip(ranges, steps.describe_places(text, ranges)):
                    if place is not None:
                        first_start, first_end, tokens = place
                        numbers.append((source, start, length, first_start, first_end))
                        described.append((id, bytes(tokens)))
            table = _table(("source", "start", "length", "first_start", "first_end"), numbers)
            ids, tokens_of = zip(*described) if described else ((), ())
            columns = {name: table.column(name) for name in ("source", "start", "length")}
            columns["first"] = pa.array(ids, pa.string())
            columns.update({name: table.column(name) for name in ("first_start", "first_end")})
            columns["tokens"] = pa.array(tokens_of, pa.binary())
            yield pa.RecordBatch.from_pydict(columns)

    return step


def describe_cuts(job: RepeatedTextJob) -> Step:
    """Turns ``id, text, cuts, firsts, first_starts, first_ends, tokens`` into rows of the table of cuts and, of each
    document, the text that is left: ``kind, id, first, start, end, first_start, first_end, length, text``.

    The lists have the place of each piece; of one that has none, the values are null. The length of the text that is left
    is 0 if nothing but blanks is.
    """

    def step(batches: Batches) -> Iterator[Any]:
        steps = job.open()
        names = ("id", "text", "cuts", "firsts", "first_starts", "first_ends", "tokens")
        for batch in batches:
            rows: list[tuple[Any, ...]] = []
            for id, text, record, firsts, *places in zip(*(batch.column(name).to_pylist() for name in names)):
                known = [None if place[0] is None else place for place in zip(*places)]
                pieces, rest, is_emptied = steps.describe_cuts(text, record, known)
                for place, (start, end, first_start, first_end, length, piece) in pieces:
                    rows.append((PIECE, id, firsts[place], start, end, first_start, first_end, length, piece))
                if pieces:
                    rows.append((REST, id, None, None, None, None, None, int(not is_emptied), rest))
            yield _described(rows)

    return step


def _described(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    whole = pa.int64()
    types = {
        "kind": pa.int32(), "id": pa.string(), "first": pa.string(), "start": whole, "end": whole,
        "first_start": whole, "first_end": whole, "length": whole, "text": pa.string(),
    }
    columns = list(zip(*rows)) if rows else [()] * len(types)
    return pa.RecordBatch.from_pydict(
        {name: pa.array(column, type) for (name, type), column in zip(types.items(), columns)}
    )
