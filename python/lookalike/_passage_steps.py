"""The steps of a passages run on many machines, as functions over record batches; see :mod:`lookalike._steps`.

The engine implements the steps and releases the interpreter while it works.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Iterator, Optional, Union

from . import _arguments as arguments
from . import _engine
from ._passages import MOST_WORDS, document_limit
from ._recipe import RecipeLike, recipe_of
from ._steps import Batches, Step

#: Contents of the rows, by their column ``kind``.
GRAMS, IDS, MEMBERS, REJECTED, COUNTS, BOILERPLATE, DOCUMENT, REPEATED_ID, REPEATED_KNOWN_ID = range(9)


@dataclass(frozen=True)
class PassageJob:
    """The settings that all steps of a run share; they are pickled with the steps."""

    recipe: str
    min_length: int
    offsets: str
    max_documents: Union[int, str, None]
    #: True if documents are compared only within equal parts, and if some documents are the only sources.
    within: bool = False
    against: bool = False

    @classmethod
    def of(
        cls, recipe: RecipeLike, min_length: Any, offsets: Any, max_documents: Any, *, within: bool, against: bool
    ) -> "PassageJob":
        """Returns a job; refuses settings that are not valid."""
        least = arguments.given_whole("min_length", min_length, 2, MOST_WORDS)
        unit = arguments.needed("offsets", arguments.word("offsets", offsets), "characters or bytes")
        job = cls(recipe_of(recipe).toml, least, unit, document_limit(max_documents), within, against)
        job.open()
        job.limit(0)
        return job

    def open(self) -> _engine.DistributedPassages:
        """Returns the job of the engine, made once in each process."""
        return _open(self)

    def limit(self, documents: int) -> Optional[int]:
        """Returns how many of this number of documents may share a run of words; None for no limit."""
        return _engine.document_limit(self.max_documents, documents)


@lru_cache(maxsize=8)
def _open(job: PassageJob) -> _engine.DistributedPassages:
    recipe = recipe_of(job.recipe)
    return _engine.DistributedPassages(recipe, job.min_length, job.offsets, job.within, job.against)


def scatter(job: PassageJob, parts: int) -> Step:
    """Turns rows of documents into blocks of selected grams and of ids, for each of ``parts`` parts."""

    def step(batches: Batches) -> Iterator[Any]:
        scatter = _engine.ScatterGrams(job.open(), parts)
        for batch in batches:
            blocks = scatter.add(batch)
            if blocks is not None:
                yield blocks
        yield scatter.finish()

    return step


def candidates(job: PassageJob, limit: Optional[int], parts: int) -> Step:
    """Turns all grams of some parts into members of groups, for each of ``parts`` parts."""

    def step(batches: Batches) -> Iterator[Any]:
        gather = _engine.GatherCandidates(job.open(), limit, parts)
        for batch in batches:
            gather.add(batch)
        while (found := gather.next()) is not None:
            yield found

    return step


def members() -> Step:
    """Turns all ids and members of some parts into documents with their groups, repeated ids and numbers."""

    def step(batches: Batches) -> Iterator[Any]:
        gather = _engine.GatherMembers()
        for batch in batches:
            gather.add(batch)
        yield from gather.finish()

    return step


def compare(job: PassageJob) -> Step:
    """Turns texts by group, first that of the group's document, into passages."""

    def step(batches: Batches) -> Iterator[Any]:
        compare = _engine.CompareGroups(job.open())
        for batch in batches:
            yield compare.add(batch)

    return step
