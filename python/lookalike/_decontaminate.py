"""Items of evaluation benchmarks in the documents of a table."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _arguments as arguments
from . import _engine, _notebook
from ._benchmarks import benchmark_paths, named_fields
from ._choices import Cut, IdField
from ._data import Names, make_rereadable, select, stream_of, with_texts
from ._errors import SettingError
from ._ids import located, named_ids
from ._keywords import suggest_keywords
from ._messages import in_words_of_python
from ._progress import Progress, teller
from ._result_tables import RejectedRow, pandas_of, polars_of, rejected_rows
from ._words import counted, omissions

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
else:
    from ._type_modules import pa, pd, pl

#: Fields of benchmarks by their roles, or as the command takes them.
ItemFields = Union[str, Mapping[str, Union[str, Sequence[str]]], None]

#: A path, a table, several of these, or tables by their names.
Benchmarks = Union[str, "os.PathLike[str]", Sequence[Any], Mapping[str, Any], Any]

#: Findings that a notebook shows.
_SHOWN_FINDINGS = 10

#: Parts of documents that can be cut, for messages.
CUTS = "document, passage or sentence"


@dataclass(frozen=True, eq=False, repr=False)
class Decontaminated:
    """The result of :func:`decontaminate`. Its fields:

    - ``kept_rows``: positions of the rows that stay, whole or in part, from 0, ascending, as an array of int64.
    - ``findings``: a table of every item that stands in a document, the one with the largest score first for each
      document: ``id`` (in the type of its column), ``benchmark``, ``item``, ``found`` (question, answer or both),
      ``score`` (float64), ``start``, ``end``, ``item_start``, ``item_end``, ``source``, ``row``, ``position``. Places
      (uint64) count characters from 0, rows (uint64) from 1, positions (int64) from 0. The others are strings.
    - ``items``: a table of the items that were found: ``benchmark``, ``item``, ``found``, ``score``, ``documents`` (their
      number, uint64).
    - ``rejected``: a list of the rows that are not valid, as :class:`RejectedRow`.
    - ``summary``: the summary of the run, a dictionary as ``lookalike decontaminate --json`` prints it; ``missing_ids``
      counts the rows of the data that have no id.

    >>> import lookalike as la
    >>> quiz = [{"question": "In which year did the first ferry reach the northern lighthouse?", "answer": "1907"}]
    >>> pages = ["Nothing of it.", "Q: in which year did the first ferry reach the NORTHERN lighthouse? 1907.", None]
    >>> result = la.decontaminate(pages, quiz)
    >>> result
    <Decontaminated 2 documents: 1 kept, 1 removed, 1 of 1 item found, 1 row rejected>
    >>> result.kept
    ['Nothing of it.']
    >>> result.items.to_pylist()
    [{'benchmark': 'benchmark', 'item': '1', 'found': 'both', 'score': 1.0, 'documents': 1}]
    """

    kept_rows: NDArray[np.int64]
    findings: pa.Table
    items: pa.Table
    rejected: list[RejectedRow]
    summary: dict[str, Any]
    _data: Any = field(init=False, default=None)
    _text: str = field(init=False, default="text")
    _left_out: dict[int, list[int]] = field(init=False, default_factory=dict)

    @classmethod
    def _of_data(cls, data: Any, text: str, left_out: dict[int, list[int]], **fields: Any) -> "Decontaminated":
        """Returns a result with the data of the run, from which ``kept`` is made, and the parts that its texts lack."""
        result = cls(**fields)
        vars(result).update(_data=data, _text=text, _left_out=left_out)
        return result

    @cached_property
    def kept(self) -> Any:
        """The rows that stay, with the type of the data: a table, a frame, a data set or a list. With ``cut`` passage or
        sentence, their texts lack what was cut.

        They are taken from the data when this is first read, so do not change the data before."""
        kept = select(self._data, self.kept_rows)
        return with_texts(kept, self._text, self._left_out) if self._left_out else kept

    def to_arrow(self, table: Literal["findings", "items"] = "findings") -> pa.Table:
        """Returns the findings, or the items that were found, as a table of pyarrow."""
        arguments.one_of("table", table, ("findings", "items"))
        found: pa.Table = getattr(self, table)
        return found

    def to_pandas(self, table: Literal["findings", "items"] = "findings") -> pd.DataFrame:
        """Returns the columns of :meth:`to_arrow` as a frame of pandas."""
        return pandas_of(self.to_arrow(table))

    def to_polars(self, table: Literal["findings", "items"] = "findings") -> pl.DataFrame:
        """Returns the columns of :meth:`to_arrow` as a frame of polars."""
        return polars_of(self.to_arrow(table))

    @property
    def missing_ids(self) -> int:
        """Number of rows that have no id. In results they are known by their positions; where ids are strings, their
        id is ``data:row``."""
        return int(self.summary["missing_ids"])

    def __repr__(self) -> str:
        told = self.summary
        cut = f", {told['cut']} cut" if told["cut"] else ""
        found = f"{told['items_found']} of {counted(told['items'], 'item')} found"
        return (
            f"<Decontaminated {counted(told['documents'], 'document')}: {told['kept']} kept, {told['removed']} removed{cut}, "
            f"{found}{omissions(self.rejected, self.missing_ids)}>"
        )

    def _repr_html_(self) -> str:
        columns = ["id", "benchmark", "item", "found", "score"]
        shown = self.findings.slice(0, _SHOWN_FINDINGS).select(columns).to_pylist()
        benchmarks = [
            [one["name"], one["found"], one["items"], one["documents"]] for one in self.summary["benchmarks"]
        ]
        return _notebook.page(
            repr(self)[1:-1],
            _notebook.table(["benchmark", "items found", "items", "documents"], benchmarks),
            _notebook.table(columns, [list(row.values()) for row in shown]),
        )


@suggest_keywords
def decontaminate(
    data: Any,
    benchmarks: Benchmarks,
    *,
    text: Names = "text",
    id: IdField = None,
    fields: ItemFields = None,
    cut: Cut = "document",
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Decontaminated:
    """Takes items of evaluation benchmarks out of documents, as ``lookalike decontaminate`` does.

    An item is found where its question stands in a document: as it is or in other case and punctuation, over lines and
    cells of a table, between HTML tags and LaTeX commands, in the other Chinese script, or with some words replaced. A
    short or common question is found only with its answer or its choices nearby. How much a word tells follows from how
    rare it is in the data. Questions in very many documents are boilerplate and find nothing alone; see
    ``summary["boilerplate_questions"]``.

    Parameters
    ----------
    data, text, id, strict, threads, progress
        As in :func:`dedup`.
    benchmarks : path, URL, table, list or dict
        Files, directories, patterns and URLs, one or a list: JSONL, JSON lists, CSV, Parquet and Arrow of well-known
        benchmarks are recognised by their fields. Tables and frames, data sets and lists of dictionaries are benchmarks,
        too, also in a list; a dictionary of these gives each its name.
    fields : dict
        Fields of other benchmarks, for example ``{"question": "ask", "choices": ["a", "b"], "answer": "key"}``;
        ``passage`` and ``id`` are the others that can be named.
    cut : {"document", "passage", "sentence"}
        What is taken out of a document with findings: the whole, the question with its answer and choices if they stand
        nearby, or the same with the rest of their sentences. Parts are cut from one field.

    Returns
    -------
    Decontaminated
        The kept rows, with the type of the data, and tables of the findings and of the items.

    Raises
    ------
    SettingError, InputError, BadRowError
        As in :func:`dedup`.

    >>> import lookalike as la
    >>> quiz = [
    ...     {
    ...         "id": "moon-1",
    ...         "question": "哪一座灯塔在一九零七年第一次看见渡船靠岸？",
    ...         "choices": ["北方灯塔", "南方灯塔", "东海灯塔"],
    ...         "answer": 0,
    ...     }
    ... ]
    >>> pages = [
    ...     {"url": "a.org/1", "text": "练习题。哪一座灯塔在一九零七年第一次看见渡船靠岸？A. 北方灯塔 B. 南方灯塔 C. 东海灯塔。完。"},
    ...     {"url": "a.org/2", "text": "The ferry leaves at seven."},
    ... ]
    >>> result = la.decontaminate(pages, {"lights": quiz}, id="url", cut="passage")
    >>> result.findings.select(["id", "benchmark", "item", "found", "start", "end"]).to_pylist()
    [{'id': 'a.org/1', 'benchmark': 'lights', 'item': 'moon-1', 'found': 'both', 'start': 4, 'end': 24}]
    >>> result.kept[0]["text"]
    '练习题。完。'
    """
    options = {
        "reading": arguments.reading(text, id),
        "fields": named_fields(fields),
        "cut": arguments.needed("cut", arguments.word("cut", cut), CUTS),
        "threads": arguments.threads(threads),
        "strict": arguments.truth("strict", strict),
    }
    names = options["reading"]["text"]
    data = make_rereadable(data)
    stream = stream_of(data, names)
    if cut != "document":
        _refuse_uncuttable(stream, names)
    stream, ids = named_ids(stream, id, "data", strict)
    with benchmark_paths(benchmarks) as opened, in_words_of_python(), teller(progress) as told:
        found = _engine.decontaminate(stream, opened.paths, options, told)
        summary = {**opened.shown_summary(found["summary"]), "missing_ids": ids.missing}
    kept = found["kept"]
    left_out = {}
    if "left_out" in kept.column_names:
        ranges = kept["left_out"].to_pylist()
        left_out = {at: parts for at, parts in enumerate(ranges) if parts is not None}
    return Decontaminated._of_data(
        data,
        names[0],
        left_out,
        kept_rows=np.asarray(kept["row"].to_numpy(), np.int64),
        findings=located(found["findings"], [("id", "")], {"data": ids}),
        items=found["items"],
        rejected=rejected_rows(found["rejected"]),
        summary=summary,
    )


def refuse_nested_text(name: str) -> None:
    """Refuses to cut parts from a text that is a field of a column."""
    raise SettingError(f"the text `{name}` is within a column: parts can be cut from a column of its own")


def _refuse_uncuttable(stream: Any, names: Sequence[str]) -> None:
    """Refuses a text of which no parts can be cut. The engine refuses several fields, and missing ones."""
    import pyarrow as pa

    if len(names) != 1 or not isinstance(stream, pa.Table):
        return
    at = stream.schema.get_field_index(names[0])
    if at < 0 and "." in names[0]:
        refuse_nested_text(names[0])
    kind = stream.schema.field(at).type if at >= 0 else pa.null()
    views = getattr(pa.types, "is_string_view", lambda _: False)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind) or pa.types.is_null(kind)):
        raise SettingError(f"the text `{names[0]}` is of the type {kind}: parts can be cut from strings")
