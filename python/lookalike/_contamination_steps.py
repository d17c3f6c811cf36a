"""The steps of a run on many machines that finds items of benchmarks, as functions over record batches; see
:mod:`lookalike._steps`.

The engine implements the steps and releases the interpreter while it works.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Iterable, Iterator

import numpy as np

from . import _engine
from ._benchmarks import benchmark_paths, named_fields
from ._steps import Batches, Step

#: Contents of the rows, by their column ``kind``.
CANDIDATES, TERMS, REJECTED, COUNTS = range(4)


@dataclass(frozen=True)
class ContaminationJob:
    """The items that all steps of a run share; they are pickled with the steps."""

    #: The items, compressed.
    items: bytes

    def open(self) -> _engine.DistributedContamination:
        """Returns the items and their index, made once in each process."""
        return _open(self)


@lru_cache(maxsize=2)
def _open(job: ContaminationJob) -> _engine.DistributedContamination:
    return _engine.DistributedContamination(zlib.decompress(job.items))


def read_job(benchmarks: Any, fields: Any) -> tuple[ContaminationJob, dict[str, Any]]:
    """Reads benchmarks. Returns the job, and the numbers of items as a summary has them."""
    named = named_fields(fields)
    with benchmark_paths(benchmarks) as opened:
        items, told = _engine.read_items(opened.paths, named)
        summary = opened.shown_summary(told)
    return ContaminationJob(zlib.compress(items, 6)), summary


@dataclass(frozen=True)
class CorpusCounts:
    """The counts of words of all documents, from which weights follow; they are pickled with the steps."""

    #: Numbers of 8 bytes, compressed.
    packed: bytes

    @classmethod
    def summed(cls, blocks: Iterable[bytes]) -> "CorpusCounts":
        """Returns the sums of counts."""
        return cls(zlib.compress(_summed(blocks), 6))

    def numbers(self) -> bytes:
        """Returns the numbers as bytes."""
        return zlib.decompress(self.packed)


def _summed(blocks: Iterable[bytes]) -> bytes:
    total: Any = 0
    for block in blocks:
        total = total + np.frombuffer(block, "<u8")
    return np.asarray(total, "<u8").tobytes()


def search(job: ContaminationJob) -> Step:
    """Turns rows of documents into blocks of candidates, and counts."""

    def step(batches: Batches) -> Iterator[Any]:
        search = _engine.SearchItems(job.open())
        for batch in batches:
            found = search.add(batch)
            if found is not None:
                yield found
        yield search.finish()

    return step


def add_counts() -> Step:
    """Turns blocks of counts into one."""

    def step(batches: Batches) -> Iterator[Any]:
        import pyarrow as pa

        blocks = (block for batch in batches for block in batch.column("block").to_pylist())
        total = _summed(blocks)
        # A sum of nothing is a single number.
        yield pa.RecordBatch.from_pydict({"block": pa.array([total] if len(total) > 8 else [], pa.binary())})

    return step


def lone_questions(job: ContaminationJob, counts: CorpusCounts) -> Step:
    """Turns candidates into the questions that stand alone in documents."""

    def step(batches: Batches) -> Iterator[Any]:
        decide = None
        # A run without documents has no counts.
        for batch in filter(len, batches):
            decide = decide or _engine.DecideFindings(job.open(), counts.numbers(), set())
            yield decide.questions(batch)

    return step


def findings(job: ContaminationJob, counts: CorpusCounts, boilerplate: Iterable[int]) -> Step:
    """Turns candidates into findings, without those that only questions in too many documents make."""
    left_out = frozenset(boilerplate)

    def step(batches: Batches) -> Iterator[Any]:
        decide = None
        for batch in filter(len, batches):
            decide = decide or _engine.DecideFindings(job.open(), counts.numbers(), set(left_out))
            yield decide.findings(batch)

    return step


def cuts(job: ContaminationJob, counts: CorpusCounts, boilerplate: Iterable[int], cut: str) -> Step:
    """Turns candidates into the parts that are cut from each document with findings."""
    left_out = frozenset(boilerplate)

    def step(batches: Batches) -> Iterator[Any]:
        decide = None
        for batch in filter(len, batches):
            decide = decide or _engine.DecideFindings(job.open(), counts.numbers(), set(left_out))
            yield decide.cuts(batch, cut)

    return step


def boilerplate_question(job: ContaminationJob, first_item: int, documents: int, candidates: int) -> dict[str, Any]:
    """Returns a question in too many documents, as a summary describes it."""
    told: dict[str, Any] = json.loads(job.open().boilerplate_question(first_item, documents, candidates))
    return told
