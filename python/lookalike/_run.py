"""Runs over tables: dedup and pairs."""

from __future__ import annotations

import datetime
import json
import numbers
from functools import cached_property
from typing import Any, Mapping, Optional, Union

from . import _arguments as arguments
from . import _engine
from ._data import Names, held, select, stream_of
from ._errors import SettingError
from ._progress import teller
from ._recipe import RecipeLike, recipe_of
from ._words import counted

Window = Union[str, float, datetime.timedelta]


class Deduplicated:
    """The result of :func:`dedup`.

    >>> import lookalike as la
    >>> result = la.dedup(["one and the same text", "something else", "One and the same text!"])
    >>> result.kept
    ['one and the same text', 'something else']
    >>> result.removed.to_pylist()[0]["kept"]
    '1'
    """

    def __init__(self, data: Any, found: Mapping[str, Any]) -> None:
        self._data = data
        #: Numbers of the kept rows from 0, ascending, as a NumPy array of int64.
        self.kept_rows = found["kept"].column("row").to_numpy().astype("int64")
        #: A table ``id, kept, similarity, method, threshold, cluster, source, row, kept_source,
        #: kept_row``: every removed row with its most similar kept row. Rows are numbered from 1 in ``data``
        #: or ``against``.
        self.removed = found["removed"]
        #: A table ``id, cluster, representative, similarity, kept, source, row`` of all rows in clusters of
        #: two or more.
        self.clusters = found["clusters"]
        #: Rows that are not valid: pairs of a row number from 0 and a reason.
        self.rejected: list[tuple[int, str]] = found["rejected"]
        #: Summary of the run, as ``lookalike dedup --json`` prints it.
        self.summary: dict[str, Any] = json.loads(found["summary"])

    @cached_property
    def kept(self) -> Any:
        """The kept rows, with the type of the data: a table, a frame, a data set or a list."""
        return select(self._data, self.kept_rows)

    @property
    def pairs(self) -> Any:
        """A table ``a, b, similarity``: each removed document ``b`` with its kept document ``a``."""
        renamed = self.removed.select(["kept", "id", "similarity"])
        return renamed.rename_columns(["a", "b", "similarity"])

    def __repr__(self) -> str:
        told = self.summary
        return (
            f"<Deduplicated {counted(told['documents'], 'document')}: {told['kept']} kept, "
            f"{told['removed']} removed in {counted(told['clusters'], 'cluster')}>"
        )


class Pairs:
    """The result of :func:`pairs`.

    >>> import lookalike as la
    >>> found = la.pairs(["the ferry leaves at seven", "the ferry leaves at eight", None], threshold=0.5)
    >>> found
    <Pairs: 1 pair of 2 documents>
    >>> found.rejected
    [(2, 'the field `text` is null, not a string')]
    """

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: A table ``a, b, similarity, a_source, a_row, b_source, b_row``, sorted by position. Rows are
        #: numbered from 1 in ``data`` or ``against``.
        self.pairs = found["pairs"]
        #: Rows that are not valid: pairs of a row number from 0 and a reason.
        self.rejected: list[tuple[int, str]] = found["rejected"]
        #: Summary of the run, as ``lookalike pairs --json`` prints it.
        self.summary: dict[str, Any] = json.loads(found["summary"])

    def __repr__(self) -> str:
        told = self.summary
        return f"<Pairs: {counted(told['pairs'], 'pair')} of {counted(told['documents'], 'document')}>"


def dedup(
    data: Any,
    *,
    text: Names = "text",
    id: Union[str, bool, None] = None,
    threshold: Optional[float] = None,
    method: Optional[str] = None,
    distance: Optional[int] = None,
    candidates: Optional[str] = None,
    sentences: Optional[int] = None,
    recipe: RecipeLike = "default",
    verify: Optional[str] = None,
    unit: Optional[str] = None,
    keep: Optional[str] = None,
    within: Optional[str] = None,
    window: Optional[Window] = None,
    time: Optional[str] = None,
    against: Any = None,
    features: Optional[str] = None,
    components: bool = False,
    audit: Union[int, bool, None] = None,
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Union[bool, Any, None] = None,
) -> Deduplicated:
    """Keeps one document of each cluster of near-duplicates, as ``lookalike dedup`` does.

    ``data`` is a table or frame of pyarrow, polars, pandas or datasets, anything with
    ``__arrow_c_stream__``, or a list of strings or of dictionaries. Arrow strings are read without a copy.

    ``text`` names the field with the text, or several fields, which are joined by a line feed. ``id``
    names the field with the ids; by default it is the field ``id`` if present, else the number of the row
    from 1. ``id=False`` always takes the number of the row.

    ``threshold`` is the smallest similarity that matches (≥; by default 0.75). ``verify`` is the measure:
    jaccard, containment or cosine of the features of ``recipe``, or levenshtein, indel, lcs or none.
    ``method`` is auto, minhash, simhash, exact, join, sentences or bottomk. ``distance`` (bits, ≤),
    ``candidates``, ``sentences`` and ``unit`` are as on the command line.

    ``keep`` is first, last, longest, max:FIELD or min:FIELD. ``within`` restricts matches to equal values
    of a field, ``window`` (for example "2d", seconds or a timedelta) to rows near each other in ``time``.
    All documents of ``against`` precede the data and are kept.

    ``audit`` (True, or the number of documents to sample) estimates the missed matches; see
    ``summary["audit"]``. ``progress`` is True for a progress bar (needs tqdm; the default on a terminal),
    False for none, or a function of stage, done and total.

    Raises :class:`SettingError` for settings that contradict each other and :class:`InputError` for
    missing columns. With ``strict``, raises :class:`InputError` for repeated ids and :class:`BadRowError` at
    the first row that is not valid. Without it, such rows are listed in ``rejected``, and repeated ids are
    counted in ``summary["repeated_ids"]``. Ctrl-C ends a run.

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
    """
    options = _options(
        text, id, features, recipe, method, threshold, distance, candidates, sentences, verify, unit,
        keep, within, window, time, audit, strict, threads,
    )
    arguments.truth("components", components)
    names = options["reading"]["text"]
    others = None if against is None else stream_of(against, names, "against")
    data = held(data)
    stream = stream_of(data, names)
    with teller(progress) as told:
        found = _engine.dedup(stream, others, options, components, told)
    return Deduplicated(data, found)


def pairs(
    data: Any,
    *,
    text: Names = "text",
    id: Union[str, bool, None] = None,
    threshold: Optional[float] = None,
    method: Optional[str] = None,
    distance: Optional[int] = None,
    candidates: Optional[str] = None,
    sentences: Optional[int] = None,
    recipe: RecipeLike = "default",
    verify: Optional[str] = None,
    unit: Optional[str] = None,
    within: Optional[str] = None,
    window: Optional[Window] = None,
    time: Optional[str] = None,
    against: Any = None,
    features: Optional[str] = None,
    all: bool = False,
    distinct: bool = False,
    audit: Union[int, bool, None] = None,
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Union[bool, Any, None] = None,
) -> Pairs:
    """Finds every pair of near-duplicates with its similarity, as ``lookalike pairs`` does.

    Each copy of a text is paired with its earliest copy at similarity 1, and other pairs name the earliest
    copy. ``all`` lists every combination; ``distinct`` leaves copies out. With ``against``, a pair is one
    document of ``against`` and one of the data. The other arguments are those of :func:`dedup`.

    >>> import lookalike as la
    >>> texts = ["the ferry leaves at seven", "the ferry leaves at eight", "a bridge", "the ferry leaves at seven!"]
    >>> la.pairs(texts, threshold=0.5).pairs.select(["a", "b", "similarity"]).to_pylist()
    [{'a': '1', 'b': '2', 'similarity': 0.6}, {'a': '1', 'b': '4', 'similarity': 1.0}]
    >>> la.pairs(texts, threshold=0.5, distinct=True).pairs.num_rows
    1
    >>> la.pairs(texts, threshold=0.5, all=True).pairs.num_rows
    3
    """
    options = _options(
        text, id, features, recipe, method, threshold, distance, candidates, sentences, verify, unit,
        None, within, window, time, audit, strict, threads,
    )
    copies = _copies(arguments.truth("all", all), arguments.truth("distinct", distinct))
    names = options["reading"]["text"]
    others = None if against is None else stream_of(against, names, "against")
    stream = stream_of(data, names)
    with teller(progress) as told:
        found = _engine.pairs(stream, others, options, copies, told)
    return Pairs(found)


def _copies(all: bool, distinct: bool) -> str:
    """Returns the engine's name for the listed pairs of equal texts."""
    if all and distinct:
        raise SettingError(
            "all=True lists every pair of equal texts and distinct=True lists none: give only one of them"
        )
    return "all" if all else "none" if distinct else "earliest"


def _options(
    text, id, features, recipe, method, threshold, distance, candidates, sentences, verify, unit,
    keep, within, window, time, audit, strict, threads,
) -> dict[str, Any]:
    return {
        "recipe": recipe_of(recipe),
        "rule": arguments.rule(method, threshold, distance, candidates, sentences, verify, unit),
        "reading": arguments.reading(text, id, features),
        "keep": arguments.word("keep", keep),
        "within": arguments.word("within", within),
        "window": window_of(window),
        "time": arguments.word("time", time),
        "audit": _audit(audit),
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
        arguments.refuse("window", window, 'a text such as "2d", seconds or a timedelta')
    return window


def _audit(audit: Any) -> Optional[int]:
    """Returns the number of documents to sample; for 0 the run chooses it."""
    if isinstance(audit, bool):
        return 0 if audit else None
    return arguments.whole("audit", audit, 1)
