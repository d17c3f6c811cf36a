"""Runs over tables and files: dedup, pairs and learn_forms."""

from __future__ import annotations

import datetime
import json
import numbers
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, Generic, Literal, Optional, Sequence, TypeVar, Union, cast, overload

import numpy as np
from numpy.typing import NDArray

from . import _arguments as arguments
from . import _engine, _notebook
from ._choices import Candidates, IdField, Measure, Method, Unit
from ._data import Names, make_rereadable, refuse_added, refuse_repeated, select, stream_of, with_added
from ._errors import InputError, SettingError
from ._ids import IdColumn, located, name_by_ids, named_ids
from ._keywords import suggest_keywords
from ._messages import with_remedies
from ._paths import FilePath, read_source
from ._progress import Progress, teller
from ._recipe import RecipeLike, recipe_of
from ._result_tables import RejectedRow, ResultTable, pandas_of, polars_of, rejected_rows
from ._rows import Rows, RowsT
from ._table_spool import fields_of_settings
from ._words import counted, omissions

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from ._options import DedupOptions, PairsOptions, Unpack
else:
    from ._type_modules import pa, pd, pl

_D = TypeVar("_D", bound="Deduplicated[Any]")
_Row = TypeVar("_Row")

Window = Union[str, float, datetime.timedelta]
#: A rule by its name, a table by its path, or weights by numbers of copies.
WeightBy = Union[str, "os.PathLike[str]", Mapping[int, float]]
Features = Union[str, Callable[[str], Iterable[str]], None]
#: Files in place of data.
Source = Union[FilePath, Sequence[FilePath], None]

#: Name of the column that a function for features fills.
_FEATURES = "features of a function"

#: Values of ``weight_by``, for messages.
_WEIGHTS = '"log", "sqrt", a dictionary or the path of a table'

#: Rejected rows that a notebook shows.
_SHOWN_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Deduplicated(Generic[RowsT]):
    """The result of :func:`dedup`. Its fields:

    - ``kept_rows``: positions of the kept rows from 0, ascending, as an array of int64.
    - ``removed``: a table of every removed row beside its most similar kept row: ``id``, ``kept`` (id of the kept row),
      ``similarity`` (float64), ``method`` (the route that found it), ``threshold`` (float64), ``cluster``, ``source``,
      ``row``, ``kept_source``, ``kept_row``, ``form`` (the form of both documents, or null), ``position``,
      ``kept_position``.
    - ``clusters``: a table of all rows in clusters of two or more: ``id``, ``cluster``, ``representative``,
      ``similarity`` (float64), ``kept`` (bool), ``source``, ``row``, ``component`` (with ``components=True``),
      ``position``. A document that is alone is not in it.
    - ``rejected``: a list of the rows that are not valid, as :class:`RejectedRow`.
    - ``summary``: the summary of the run, a dictionary as ``lookalike dedup --json`` prints it; ``missing_ids`` counts
      the rows of the data that have no id.

    ``source`` is ``data`` or ``against``. Rows (uint64) count from 1 within it, positions (int64) from 0. The other
    columns are strings. Ids, and names of clusters by ids, have the type of their column; a row without an id has None,
    or ``data:ROW`` in a column of strings.

    >>> import lookalike as la
    >>> result = la.dedup(["one and the same text", "something else", "One and the same text!"])
    >>> result.kept
    ['one and the same text', 'something else']
    >>> result.removed.select(["kept", "position", "kept_position"]).to_pylist()
    [{'kept': '1', 'position': 2, 'kept_position': 0}]
    """

    kept_rows: NDArray[np.int64]
    removed: pa.Table
    clusters: pa.Table
    rejected: list[RejectedRow]
    summary: dict[str, Any]
    _data: Any = field(init=False, default=None)
    _added: Optional[dict[str, list[Any]]] = field(init=False, default=None)

    @classmethod
    def _of_data(cls: type[_D], data: Any, added: Optional[dict[str, list[Any]]], **fields: Any) -> _D:
        """Returns a result with the data of the run, from which ``kept`` is made, and the fields that its rows get."""
        result = cls(**fields)
        vars(result).update(_data=data, _added=added)
        return result

    @cached_property
    def kept(self) -> RowsT:
        """The kept rows, with the type of the data: a table, a frame, a data set or a list. They have the fields of
        ``copies``, ``sources`` and ``weight``.

        They are taken from the data when this is first read, so do not change the data before."""
        kept = select(self._data, self.kept_rows)
        return cast(RowsT, with_added(kept, self._added) if self._added else kept)

    @property
    def pairs(self) -> pa.Table:
        """A table ``a, b, similarity``: each removed document ``b`` with its kept document ``a``."""
        renamed = self.removed.select(["kept", "id", "similarity"])
        return renamed.rename_columns(["a", "b", "similarity"])

    def to_arrow(self, table: Literal["removed", "clusters", "pairs"] = "removed") -> pa.Table:
        """Returns the removed rows, or the clusters or the pairs, as a table of pyarrow."""
        arguments.one_of("table", table, ("removed", "clusters", "pairs"))
        found: pa.Table = getattr(self, table)
        return found

    def to_pandas(self, table: Literal["removed", "clusters", "pairs"] = "removed") -> pd.DataFrame:
        """Returns the columns of :meth:`to_arrow` as a frame of pandas."""
        return pandas_of(self.to_arrow(table))

    def to_polars(self, table: Literal["removed", "clusters", "pairs"] = "removed") -> pl.DataFrame:
        """Returns the columns of :meth:`to_arrow` as a frame of polars."""
        return polars_of(self.to_arrow(table))

    @property
    def missing_ids(self) -> int:
        """Number of rows that have no id. In results they are known by their positions; where ids are strings, their
        id is ``data:row``."""
        return int(self.summary["missing_ids"])

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"<Deduplicated {counted(summary['documents'], 'document')}: {summary['kept']} kept, {summary['removed']} removed "
            f"in {counted(summary['clusters'], 'cluster')}{self._kept_apart()}"
            f"{omissions(self.rejected, self.missing_ids)}>"
        )

    def _kept_apart(self) -> str:
        """Returns how many kept documents a run without forms removes, if it is known and not 0."""
        number = (self.summary.get("forms") or {}).get("kept_apart")
        return f", {number} kept apart by forms" if number else ""

    def _repr_html_(self) -> str:
        return _notebook.page(
            repr(self)[1:-1],
            _notebook.histogram(self.removed["similarity"].to_pylist()),
            _notebook.largest_clusters(self.clusters),
            _rejected_html(self.rejected),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(ResultTable):
    """The result of :func:`pairs`. Its fields:

    - ``pairs``: a table of every pair, sorted by position: ``a``, ``b`` (ids, in the type of their column),
      ``similarity`` (float64), ``a_source``, ``a_row``, ``b_source``, ``b_row``, ``form`` (the form of both documents, or
      null), ``apart`` (with ``apart=True``: why they are kept apart, or null), ``a_position``, ``b_position``. A source is
      ``data`` or ``against``. Rows (uint64) count from 1 within it, positions (int64) from 0. The others are strings.
    - ``rejected``: a list of the rows that are not valid, as :class:`RejectedRow`.
    - ``summary``: the summary of the run, a dictionary as ``lookalike pairs --json`` prints it; ``missing_ids`` counts
      the rows of the data that have no id.

    >>> import lookalike as la
    >>> found = la.pairs(["the ferry leaves at seven", "the ferry leaves at eight", None], threshold=0.5)
    >>> found
    <Pairs: 1 pair of 2 documents, 1 row rejected>
    >>> found.rejected
    [RejectedRow(position=2, reason='the field `text` is null, not a string')]
    """

    pairs: pa.Table
    rejected: list[RejectedRow]
    summary: dict[str, Any]

    def to_arrow(self) -> pa.Table:
        """Returns the pairs as a table of pyarrow."""
        return self.pairs

    @property
    def missing_ids(self) -> int:
        """Number of rows that have no id."""
        return int(self.summary["missing_ids"])

    def __repr__(self) -> str:
        pairs = f"{counted(self.summary['pairs'], 'pair')} of {counted(self.summary['documents'], 'document')}"
        return f"<Pairs: {pairs}{omissions(self.rejected, self.missing_ids)}>"

    def _repr_html_(self) -> str:
        return _notebook.page(
            repr(self)[1:-1],
            _notebook.histogram(self.pairs["similarity"].to_pylist()),
            _rejected_html(self.rejected),
        )


def _rejected_html(rejected: list[RejectedRow]) -> str:
    return _notebook.table(["rejected row", "reason"], rejected[:_SHOWN_ROWS])


@overload
def dedup(data: "os.PathLike[str]", **options: Unpack[DedupOptions]) -> Deduplicated[pa.Table]: ...
@overload
def dedup(data: None = None, *, source: Source, **options: Unpack[DedupOptions]) -> Deduplicated[pa.Table]: ...
@overload
def dedup(data: Iterator[_Row], **options: Unpack[DedupOptions]) -> Deduplicated[list[_Row]]: ...
@overload
def dedup(data: RowsT, **options: Unpack[DedupOptions]) -> Deduplicated[RowsT]: ...
@suggest_keywords
def dedup(
    data: Any = None,
    *,
    source: Source = None,
    text: Names = "text",
    id: IdField = None,
    threshold: Optional[float] = None,
    method: Optional[Method] = None,
    distance: Optional[int] = None,
    candidates: Optional[Candidates] = None,
    sentences: Optional[int] = None,
    recipe: RecipeLike = "default",
    forms: Union[str, "os.PathLike[str]", None] = None,
    verify: Optional[Measure] = None,
    unit: Optional[Unit] = None,
    keep: Optional[str] = None,
    within: Optional[str] = None,
    window: Optional[Window] = None,
    time: Optional[str] = None,
    against: Any = None,
    features: Features = None,
    components: bool = False,
    keep_count: Optional[int] = None,
    drop_all: Union[int, bool, None] = None,
    copies: Optional[str] = None,
    sources: Optional[str] = None,
    most_sources: int = 10,
    weight: Optional[str] = None,
    weight_by: WeightBy = "log",
    audit: Union[int, bool, None] = None,
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Deduplicated[Any]:
    """Keeps one document of each cluster of near-duplicates, as ``lookalike dedup`` does.

    Parameters
    ----------
    **What is compared**

    data : table, frame, column, list, dict or path
        A table or frame of pyarrow, polars, pandas or datasets, anything with ``__arrow_c_stream__``, a dictionary of
        columns, or a list of strings or of dictionaries. Arrow strings are read without a copy. A string is never data:
        a ``pathlib.Path`` or a URL names files.
    source : path, URL or list of these
        Files in place of ``data``, also as a pattern or a directory. The result then is a table of pyarrow.
    text : str or list of str
        Field with the text, or several, which are joined by a line feed.
    id : str or False
        Field with the ids; by default ``id`` if present, else the number of the row from 1, as always with False.
    features : str or callable
        Field with lists of features (tokens, say) that replace the text, or a function from a text to such a list.
    recipe : str, path, Recipe or dict
        It turns texts into features.

    **How a pair matches**

    threshold : float, default 0.75
        Smallest similarity that matches (≥).
    verify : str, default "jaccard"
        The measure. A name that does not exist is refused with the list of all, here and below.
    method : str, default "auto"
        The way to find candidates.
    distance, candidates, sentences, unit
        As on the command line; ``distance`` is in bits (≤).
    forms : {"learn", "off"} or path
        Keeps filled forms apart that say different things: "learn" learns the forms from the data, a path is the table of
        :func:`learn_forms`, and "off" compares by similarity alone. By default they are those of ``recipe``, or are
        learned if the data have texts.

    **Which rows may match**

    within : str
        Field whose values must be equal.
    window : str, float or timedelta
        Largest distance in ``time``, for example "2d", or in seconds.
    time : str
        Field with the time.
    against : as data
        Documents that precede the data and are kept.

    **Which rows are kept**

    keep : str, default "first"
        first, last, longest, max:FIELD or min:FIELD, or several of these, separated by commas.
    keep_count : int
        Number of kept documents of each cluster: the first ones in the order of ``keep``.
    drop_all : bool or int
        Keeps none of a cluster of two or more (True), or of so many.

    **What is added**

    components : bool
        Adds the column ``component`` to ``clusters``.
    copies : str
        Name of a field of kept rows: the number of documents that a row stands for, itself and the removed ones that name
        it.
    sources : str
        A field of the data, or ``"FIELD=NAME"``: the added field, by default ``sources``, lists its values in these
        documents, the most frequent first.
    most_sources : int, default 10
        Largest number of these values.
    weight : str
        Name of a field of kept rows that follows from the copies.
    weight_by : {"log", "sqrt"}, dict or path
        1 + the natural logarithm, the square root, weights by numbers of copies from which they count, or the path of such
        a table.

    **How the run goes**

    audit : bool or int
        Estimates the missed matches, from so many sampled documents; see ``summary["audit"]``.
    strict : bool
        Refuses repeated ids and rows that are not valid. Without it, such rows are listed in ``rejected``, and repeated ids
        are counted in ``summary["repeated_ids"]``.
    threads : int
        Number of threads; by default one for each core.
    progress : bool or callable
        True for a bar (needs tqdm; the default on a terminal), False for none, or a function of stage, done and total.

    Returns
    -------
    Deduplicated
        The kept rows, with the type of the data, and tables of the others. Ctrl-C ends a run.

    Raises
    ------
    SettingError
        Settings contradict each other.
    InputError
        A column is missing, or with ``strict`` an id is repeated.
    BadRowError
        With ``strict``, a row is not valid.

    >>> import lookalike as la
    >>> rows = [
    ...     {"url": "a.org/1", "text": "seven and nine", "length": 3},
    ...     {"url": "b.org/7", "text": "Seven and nine!", "length": 4},
    ...     {"url": "a.org/2", "text": "from monday on", "length": 3},
    ... ]
    >>> result = la.dedup(rows, id="url", keep="max:length")
    >>> [row["url"] for row in result.kept]
    ['b.org/7', 'a.org/2']
    >>> result.removed.select(["id", "kept", "similarity"]).to_pylist()
    [{'id': 'a.org/1', 'kept': 'b.org/7', 'similarity': 1.0}]
    >>> [row["copies"] for row in la.dedup(rows, id="url", copies="copies").kept]
    [2, 1]
    """
    options = _run_options(
        text=text, id=id, features=features, recipe=recipe, forms=forms, method=method, threshold=threshold,
        distance=distance, candidates=candidates, sentences=sentences, verify=verify, unit=unit, keep=keep, within=within,
        window=window, time=time, audit=audit, strict=strict, threads=threads,
    )  # fmt: skip
    arguments.truth("components", components)
    members = member_settings(keep_count, drop_all, copies, sources, most_sources, weight, weight_by)
    fields = _added_names(members)
    data = make_rereadable(read_source(data, source))
    refuse_added(data, fields)
    counted_field = members["sources"][0] if members["sources"] else None
    used = fields_of_settings(options["keep"], within, time, counted_field)
    inputs = _Inputs(data, against, options["reading"]["text"], id, features, strict, used)
    with teller(progress) as report_progress, with_remedies(data):
        found = _engine.dedup(inputs.data, inputs.against, options, components, members, report_progress)
    added = None
    if fields:
        columns = found["added"].columns
        found["kept"] = np.asarray(columns[0].to_numpy(), np.int64)
        added = {name: column.to_pylist() for name, column in zip(fields, columns[1:])}
        if members["sources"]:
            name = members["sources"][1]
            added[name] = [json.loads(values) for values in added[name]]
    removed = located(found["removed"], [("id", ""), ("kept", "kept_")], inputs.ids)
    clusters = located(found["clusters"], [("id", "")], inputs.ids)
    engine_ids = found["clusters"]["id"]
    return Deduplicated._of_data(
        data,
        added,
        kept_rows=found["kept"],
        removed=name_by_ids(removed, ["cluster"], engine_ids, clusters["id"]),
        clusters=name_by_ids(clusters, ["cluster", "representative", "component"], engine_ids, clusters["id"]),
        rejected=rejected_rows(found["rejected"]),
        summary=inputs.counted_summary(found["summary"]),
    )


@overload
def pairs(data: Union[Rows, "os.PathLike[str]"], **options: Unpack[PairsOptions]) -> Pairs: ...
@overload
def pairs(data: None = None, *, source: Source, **options: Unpack[PairsOptions]) -> Pairs: ...
@suggest_keywords
def pairs(
    data: Any = None,
    *,
    source: Source = None,
    text: Names = "text",
    id: IdField = None,
    threshold: Optional[float] = None,
    method: Optional[Method] = None,
    distance: Optional[int] = None,
    candidates: Optional[Candidates] = None,
    sentences: Optional[int] = None,
    recipe: RecipeLike = "default",
    forms: Union[str, "os.PathLike[str]", None] = None,
    verify: Optional[Measure] = None,
    unit: Optional[Unit] = None,
    within: Optional[str] = None,
    window: Optional[Window] = None,
    time: Optional[str] = None,
    against: Any = None,
    features: Features = None,
    all: bool = False,
    distinct: bool = False,
    apart: bool = False,
    audit: Union[int, bool, None] = None,
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Pairs:
    """Finds every pair of near-duplicates with its similarity, as ``lookalike pairs`` does.

    Each copy of a text is paired with its earliest copy at similarity 1, and other pairs name the earliest copy.

    Parameters
    ----------
    data, source, text, id, features, recipe, threshold, verify, method, forms, within, window, time, audit, strict
        As in :func:`dedup`, like the further arguments that are not listed here.
    against : as data
        A pair is then one document of these and one of the data.
    all : bool
        Lists every combination of copies.
    distinct : bool
        Leaves copies out.
    apart : bool
        Also lists similar pairs that ``forms`` keep apart, with the reason in the column ``apart``.

    Returns
    -------
    Pairs
        A table of the pairs, sorted by position.

    Raises
    ------
    SettingError, InputError, BadRowError
        As in :func:`dedup`.

    >>> import lookalike as la
    >>> texts = ["the ferry leaves at seven", "the ferry leaves at eight", "a bridge", "the ferry leaves at seven!"]
    >>> la.pairs(texts, threshold=0.5).pairs.select(["a", "b", "similarity"]).to_pylist()
    [{'a': '1', 'b': '2', 'similarity': 0.6}, {'a': '1', 'b': '4', 'similarity': 1.0}]
    >>> la.pairs(texts, threshold=0.5, distinct=True).pairs.num_rows
    1
    >>> la.pairs(texts, threshold=0.5, all=True).pairs.num_rows
    3
    """
    options = _run_options(
        text=text, id=id, features=features, recipe=recipe, forms=forms, method=method, threshold=threshold,
        distance=distance, candidates=candidates, sentences=sentences, verify=verify, unit=unit, within=within,
        window=window, time=time, audit=audit, strict=strict, threads=threads,
    )  # fmt: skip
    listed_copies = _name_listed_copies(arguments.truth("all", all), arguments.truth("distinct", distinct))
    arguments.truth("apart", apart)
    data = read_source(data, source)
    inputs = _Inputs(data, against, options["reading"]["text"], id, features, strict, [within, time])
    with teller(progress) as report_progress, with_remedies(data):
        found = _engine.pairs(inputs.data, inputs.against, options, listed_copies, apart, report_progress)
    return Pairs(
        pairs=located(found["pairs"], [("a", "a_"), ("b", "b_")], inputs.ids),
        rejected=rejected_rows(found["rejected"]),
        summary=inputs.counted_summary(found["summary"]),
    )


@suggest_keywords
def learn_forms(
    data: Any,
    path: Union[str, "os.PathLike[str]"],
    *,
    source: Source = None,
    text: Names = "text",
    threshold: Optional[float] = None,
    recipe: RecipeLike = "default",
    within: Optional[str] = None,
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Learns the forms of the data and writes them as a table, as ``lookalike forms learn`` does.

    The table is for ``forms`` of :func:`dedup` and :func:`pairs`, and for the field ``forms`` of a recipe. Returns the
    summary of the command. The other arguments are a part of those of :func:`dedup`; with ``source``, ``data`` is None.

    >>> import pathlib, tempfile
    >>> import lookalike as la
    >>> table = pathlib.Path(tempfile.mkdtemp(), "notices.toml")
    >>> notice = "On {} the ferry to the islands leaves at {} from the northern quay, and tickets are sold on board."
    >>> times = [notice.format(day, f"{hour}.40") for hour, day in enumerate(["May 2", "June 3", "July 4"] * 4)]
    >>> la.learn_forms(times, table, threshold=0.5)["forms"]
    1
    >>> len(la.dedup(times, forms=table, threshold=0.5).kept)
    12
    """
    options = _run_options(text=text, recipe=recipe, threshold=threshold, within=within, strict=strict, threads=threads)
    data = read_source(data, source)
    inputs = _Inputs(data, None, options["reading"]["text"], None, None, strict, [within])
    with teller(progress) as report_progress, with_remedies(data):
        summary = _engine.learn_forms(inputs.data, options, os.fspath(path), report_progress)
    learned: dict[str, Any] = json.loads(summary)
    return learned


class _Inputs:
    """The streams of a run, whose rows all have an id, and their ids."""

    def __init__(
        self,
        data: Any,
        against: Any,
        names: list[str],
        id: IdField,
        features: Features,
        strict: bool,
        fields: Iterable[Optional[str]] = (),
    ) -> None:
        used = [field for field in (*fields, features) if isinstance(field, str)]
        self.against = None
        self.ids: dict[str, IdColumn] = {}
        if against is not None:
            stream = stream_of(against, names, "against")
            refuse_repeated(stream, used, "against")
            stream = with_features(stream, names, features)
            self.against, self.ids["against"] = named_ids(stream, id, "against", strict)
        stream = stream_of(data, names)
        refuse_repeated(stream, used, "data")
        stream = with_features(stream, names, features)
        self.data, self.ids["data"] = named_ids(stream, id, "data", strict)

    def counted_summary(self, summary_json: str) -> dict[str, Any]:
        """Returns the summary of the run, with the number of rows of the data that have no id."""
        summary: dict[str, Any] = json.loads(summary_json)
        summary["missing_ids"] = self.ids["data"].missing
        return summary


def with_features(stream: Any, names: list[str], features: Features) -> Any:
    """Returns a table with the features that a function makes of each text; other streams as they are."""
    if not callable(features):
        return stream
    import pyarrow as pa

    table = stream.read_all() if isinstance(stream, pa.RecordBatchReader) else stream
    columns = [table[name].to_pylist() for name in names]
    lists = [
        None if None in row else _features_of(features, "\n".join(row), at) for at, row in enumerate(zip(*columns))
    ]
    return table.append_column(_FEATURES, pa.array(lists, pa.list_(pa.large_string())))


def _features_of(features: Callable[[str], Iterable[str]], text: str, at: int) -> list[str]:
    """Returns the features of a text, and refuses what is no list of strings."""
    given = features(text)
    several = given if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)) else None
    listed = None if several is None else list(several)
    if listed is None or not all(isinstance(one, str) for one in listed):
        wrong = given if listed is None else next(one for one in listed if not isinstance(one, str))
        place = f"for the text at position {at}"
        found = f"{wrong!r}, of the type {type(wrong).__name__}" if listed is None else f"a list with {wrong!r}"
        raise InputError(f"the function features gave {found}, {place}: it must give a list of strings")
    return listed


def _name_listed_copies(all: bool, distinct: bool) -> str:
    """Returns the engine's name for the listed pairs of equal texts."""
    if all and distinct:
        raise SettingError(
            "all=True lists every pair of equal texts and distinct=True lists none: give only one of them"
        )
    return "all" if all else "none" if distinct else "earliest"


def member_settings(
    keep_count: Any, drop_all: Any, copies: Any, sources: Any, most_sources: Any, weight: Any, weight_by: Any
) -> dict[str, Any]:
    """Returns how many documents of a cluster are kept, and the fields that are added to kept rows."""
    keep_count = arguments.whole("keep_count", keep_count, 1)
    drop_all = {True: 2, False: None}[drop_all] if isinstance(drop_all, bool) else arguments.whole("drop_all", drop_all, 2)
    if keep_count is not None and drop_all is not None:
        raise SettingError("keep_count keeps documents of each cluster and drop_all keeps none: give only one of them")
    field, named, name = (arguments.word("sources", sources, '"FIELD" or "FIELD=NAME"') or "").rpartition("=")
    if sources is not None and (not name or bool(named) and not field):
        arguments.refuse("sources", sources, '"FIELD" or "FIELD=NAME"')
    if isinstance(weight_by, Mapping):
        try:
            weight_by = sorted((int(count), float(value)) for count, value in weight_by.items())
        except (TypeError, ValueError):
            arguments.refuse("weight_by", weight_by, "numbers of copies with their weights")
    else:
        weight_by = arguments.choice_or_path("weight_by", weight_by, ("log", "sqrt"), _WEIGHTS)
    return {
        "keep_count": keep_count,
        "drop_all": drop_all,
        "copies": arguments.word("copies", copies, 'the name of the added field, such as "copies"'),
        "sources": None if sources is None else (field, name) if named else (name, "sources"),
        "most_sources": arguments.given_whole("most_sources", most_sources, 1, 1000),
        "weight": arguments.word("weight", weight, 'the name of the added field, such as "weight"'),
        "weight_by": arguments.needed("weight_by", weight_by, _WEIGHTS),
    }


def _added_names(members: dict[str, Any]) -> list[str]:
    """Returns the names of the fields that are added to kept rows, in the order of the engine."""
    sources = members["sources"]
    names = [members["copies"], sources and sources[1], members["weight"]]
    return [name for name in names if name is not None]


def _run_options(
    *, text: Any, recipe: Any, threshold: Any, within: Any, strict: Any, threads: Any, id: Any = None, features: Any = None,
    forms: Any = None, method: Any = None, distance: Any = None, candidates: Any = None, sentences: Any = None,
    verify: Any = None, unit: Any = None, keep: Any = None, window: Any = None, time: Any = None, audit: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Returns the checked settings of a run, as the engine takes them. Those without a value are settings that some runs
    do not have."""
    return {
        "recipe": recipe_of(recipe),
        "forms": arguments.choice_or_path("forms", forms, ("learn", "off"), '"learn", "off" or the path of a table'),
        "rule": arguments.rule(method, threshold, distance, candidates, sentences, verify, unit),
        "reading": arguments.reading(text, id, _FEATURES if callable(features) else features),
        "keep": arguments.word("keep", keep, "first, last, longest, max:FIELD or min:FIELD"),
        "within": arguments.word("within", within),
        "window": window_of(window),
        "time": arguments.word("time", time),
        "audit": arguments.audit(audit),
        "threads": arguments.threads(threads),
        "strict": arguments.truth("strict", strict),
    }


def window_of(window: Any) -> Union[str, float, None]:
    """Returns a duration as text or in seconds."""
    if isinstance(window, datetime.timedelta):
        return window.total_seconds()
    if isinstance(window, str):
        return window
    if isinstance(window, bool) or not isinstance(window, (numbers.Real, type(None))):
        arguments.refuse_type("window", window, 'a text such as "2d", seconds or a timedelta')
    return window  # type: ignore[return-value]
