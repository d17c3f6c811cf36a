"""Index directories, as ``lookalike index`` and ``lookalike search`` have them."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _arguments as arguments
from . import _engine
from ._choices import Candidates, IdField, Measure, Unit
from ._data import Names, stream_of
from ._errors import LookalikeError, as_missing_file
from ._files import FilePath, fingerprint_reading, parquet_input, whole_codes
from ._ids import IdColumn, named_ids
from ._keywords import suggest_keywords
from ._messages import in_words_of_python
from ._recipe import Recipe, RecipeLike, recipe_of
from ._words import counted

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from ._type_modules import pa


class Index:
    """A directory of documents or fingerprints that is searched without reading it into memory.

    It is the same directory as that of the command: ``lookalike search`` opens what :meth:`build` made, and the other
    way round. Its files are memory-mapped. Changes are on disk when a call returns; one process changes an index at a
    time, and searches always see a complete state. ``path`` is the directory, and ``summary`` the summary of the last change
    or search, a dictionary as the command prints it with ``--json``.

    Threads can share an index, because its state is on disk; only ``summary`` is that of the call that ended last in any
    thread, so threads take the summary that :meth:`add` and :meth:`remove` return.

    >>> import tempfile, lookalike as la
    >>> path = tempfile.mkdtemp() + "/news.lib"
    >>> news = [{"id": "a", "text": "The ferry leaves at seven."}, {"id": "b", "text": "A bridge over the river."}]
    >>> index = la.Index.build(path, news)
    >>> index
    <Index of 2 rows of 64 bits, distance 3>
    >>> index.search(["the FERRY leaves at seven!"]).to_pylist()
    [{'query': '1', 'match': 'a', 'distance': 0, 'query_position': 0}]
    >>> index.search(["the ferry leaves at eight"], threshold=0.6).to_pylist()
    [{'query': '1', 'match': 'a', 'similarity': 0.6, 'query_position': 0}]
    >>> index.remove(["a"])["removed"], len(la.Index(path))
    (1, 1)
    """

    def __init__(self, path: FilePath) -> None:
        self.path = os.fspath(path)
        #: Summary of the last call of `build`, `add`, `remove` or `search`, as the command prints it with ``--json``.
        self.summary: dict[str, Any] = {}
        self.info()

    @classmethod
    def open(cls, path: FilePath) -> "Index":
        """Opens an index, as ``Index(path)`` does."""
        return cls(path)

    @classmethod
    @suggest_keywords
    def build(
        cls,
        path: FilePath,
        data: Any,
        *,
        text: Names = "text",
        id: IdField = None,
        recipe: RecipeLike = "default",
        distance: int = 3,
        plan: str = "auto",
        store_texts: bool = False,
        distance_only: bool = False,
        passages: Optional[int] = None,
        replace: bool = False,
        strict: bool = False,
        threads: Optional[int] = None,
    ) -> "Index":
        """Builds an index of documents, or of an array of fingerprints.

        ``data``, ``text`` and ``id`` are as in :func:`dedup`; an array of whole numbers, or of rows of two words, holds
        fingerprints, whose ids are their positions. ``distance`` is the largest of a search (bits, ≤), and ``plan`` how it is
        found: "auto", "blocks" (which ``candidates="blocks"`` of a search needs), "scan" or another plan of the command. With
        ``store_texts``, searches can verify by edit distances; with ``distance_only``, the index takes less space and
        answers with distances alone. ``passages`` is the shortest passage, in words, that can be found.
        """
        is_codes = _is_codes(data)
        known = None if is_codes else recipe_of(recipe)
        settings = {
            "recipe": known,
            "bits": (64 if np.ndim(data) == 1 else 128) if known is None else known.bits,
            "distance": arguments.whole("distance", arguments.needed("distance", distance, "a whole number")),
            "plan": arguments.word("plan", plan),
            "texts": arguments.truth("store_texts", store_texts),
            "distance_only": arguments.truth("distance_only", distance_only) or is_codes,
            "passages": arguments.whole("passages", passages, 2),
            "replace": arguments.truth("replace", replace),
        }
        table, reading, _ = _rows(data, text, id, strict, threads)
        with parquet_input(table) as inputs, in_words_of_python():
            done, _ = _engine.index_build(os.fspath(path), inputs, settings, reading)
        index = cls(path)
        index.summary = json.loads(done)
        return index

    def add(
        self,
        data: Any,
        *,
        text: Names = "text",
        id: IdField = None,
        strict: bool = False,
        threads: Optional[int] = None,
    ) -> dict[str, Any]:
        """Adds documents, or an array of fingerprints, and returns a summary."""
        table, reading, _ = _rows(data, text, id, strict, threads)
        with parquet_input(table) as inputs, in_words_of_python():
            done, rejected = _engine.index_add(self.path, inputs, reading)
        self.summary = {**json.loads(done), "rejected_rows": rejected}
        return self.summary

    def remove(self, ids: Union[str, int, Iterable[Any]], *, threads: Optional[int] = None) -> dict[str, Any]:
        """Removes all rows with these ids, or with one id, and returns a summary with those that are ``missing``."""
        listed = [ids] if isinstance(ids, (str, numbers.Integral)) else ids
        if not isinstance(listed, Iterable):
            arguments.refuse_type("ids", ids, "an id, or a list of ids")
        named = [str(one) for one in listed]
        with in_words_of_python():
            self.summary = json.loads(_engine.index_remove(self.path, named, arguments.threads(threads)))
        return self.summary

    @suggest_keywords
    def search(
        self,
        queries: Any,
        *,
        text: Names = "text",
        id: IdField = None,
        distance: Optional[int] = None,
        threshold: Optional[float] = None,
        verify: Optional[Measure] = None,
        unit: Optional[Unit] = None,
        candidates: Optional[Candidates] = None,
        nearest: Optional[int] = None,
        first: bool = False,
        limit: Optional[int] = None,
        threads: Optional[int] = None,
    ) -> pa.Table:
        """Returns a table ``query, match, distance, query_position``, or with ``similarity`` in place of the distance.

        ``query`` is the id of a query in the type of its column, or its number from 1, and ``query_position`` its place from
        0. ``match`` is the id of a row of the index as a string, because an index stores ids as strings: for a join
        with whole numbers, cast it first, for example with ``frame["match"].astype("int64")``.

        ``queries`` are documents as in :func:`dedup`, an array of fingerprints, or one text. By ``threshold`` or
        ``verify``, the matches are those that :func:`pairs` finds with the same recipe; only the forms of the recipe keep
        documents apart. ``nearest`` lists so many matches
        of a query, ``first`` the one that was added first, and ``limit`` at most so many, with a column ``truncated``.
        """
        listed = [queries] if isinstance(queries, str) else queries
        table, reading, ids = _rows(listed, text, id, False, threads)
        named = _QueryIds(table, reading["reading"], ids)
        query = {
            "rule": arguments.rule(None, threshold, distance, candidates, None, verify, unit),
            "nearest": arguments.whole("nearest", nearest, 1),
            "first": arguments.truth("first", first),
            "limit": arguments.whole("limit", limit, 1),
        }
        with parquet_input(table) as inputs, in_words_of_python():
            found, done = _engine.index_search(self.path, inputs, query, named.numbered(reading))
        self.summary = json.loads(done)
        return named.located(found)

    def info(self) -> dict[str, Any]:
        """Returns the description of the index, as ``lookalike index info --json`` prints it."""
        with as_missing_file(self.path), in_words_of_python():
            told, toml = _engine.index_info(self.path)
        self._recipe = None if toml is None else Recipe(toml)
        info: dict[str, Any] = json.loads(told)
        return info

    @property
    def recipe(self) -> Optional[Recipe]:
        """The recipe of the documents; None for bare fingerprints."""
        return self._recipe

    def verify(self, *, threads: Optional[int] = None) -> dict[str, Any]:
        """Verifies all files against their checksums. Raises :class:`InputError` if one is damaged."""
        verified: dict[str, Any] = json.loads(_engine.index_verify(self.path, arguments.threads(threads)))
        return verified

    def __len__(self) -> int:
        return int(self.info()["fingerprints"])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        try:
            info = self.info()
        except (LookalikeError, OSError):
            # The directory can be gone or damaged, and a representation must not fail because of it.
            return f"<Index {self.path!r}, which cannot be read>"
        return f"<Index of {counted(info['fingerprints'], 'row')} of {info['bits']} bits, distance {info['distance']}>"


class _QueryIds:
    """The ids of queries, which the engine is given by their numbers."""

    def __init__(self, table: Any, reading: dict[str, Any], ids: Optional[IdColumn]) -> None:
        self._has_own_numbers = ids is None
        name = None if reading["id_row"] else reading["id"] or "id"
        at = -1 if name is None else table.schema.get_field_index(name)
        self._ids = None if at < 0 or ids is None else table.column(at) if ids.typed is None else ids.typed

    def numbered(self, reading: dict[str, Any]) -> dict[str, Any]:
        """Returns how the engine reads the queries, so that their ids are their numbers."""
        if self._has_own_numbers:
            return reading
        return {**reading, "reading": {**reading["reading"], "id": None, "id_row": True}}

    def located(self, found: Any) -> Any:
        """Returns the matches with the ids and the positions of their queries."""
        import pyarrow as pa
        import pyarrow.compute as pc

        counted_from = 0 if self._has_own_numbers else 1
        positions = pc.subtract(pc.cast(found["query"], pa.int64()), counted_from)
        if self._ids is not None:
            found = found.set_column(found.schema.get_field_index("query"), "query", self._ids.take(positions))
        return found.append_column("query_position", positions)


def _is_codes(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.kind in "iu"


def _rows(data: Any, text: Names, id: Any, strict: bool, threads: Any) -> tuple[Any, dict[str, Any], Optional[IdColumn]]:
    """Returns the rows as a table, the settings of the engine for reading them, and the ids of documents."""
    import pyarrow as pa

    workers = arguments.threads(threads)
    if _is_codes(data):
        codes = arguments.array("codes", data)
        kept = ~np.ma.getmaskarray(codes).reshape(len(codes), -1).any(axis=1)
        positions = np.flatnonzero(kept).astype(str).tolist()
        texts = [f"{code:x}" for code in whole_codes(np.ma.getdata(codes)[kept])]
        table = pa.table({"id": pa.array(positions, pa.string()), "fingerprint": pa.array(texts, pa.string())})
        return table, fingerprint_reading(workers), None
    reading = arguments.reading(text, id)
    table, ids = named_ids(stream_of(data, reading["text"]), id, "data", strict)
    if isinstance(table, pa.RecordBatchReader):
        table = table.read_all()
    settings = {
        "reading": reading,
        "fingerprint": None,
        "strict": arguments.truth("strict", strict),
        "threads": workers,
    }
    return table, settings, ids
