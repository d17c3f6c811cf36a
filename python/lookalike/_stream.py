"""A stream of documents in the process: the engine of the service, without a service."""

from __future__ import annotations

import datetime
import json
import numbers
from dataclasses import dataclass
from typing import Any, Iterable, Literal, Mapping, Optional, Union

import numpy as np

from . import _arguments as arguments
from . import _engine
from ._choices import Candidates, Measure, Method, Unit
from ._data import is_missing
from ._errors import InputError, as_missing_file
from ._files import FilePath
from ._keywords import suggest_keywords
from ._recipe import Recipe, RecipeLike, recipe_of
from ._run import Window, window_of
from ._words import counted

#: Time of a document: seconds since 1970, or a time in UTC if it has no zone.
Time = Union[float, datetime.datetime, np.datetime64, None]


@dataclass(frozen=True, repr=False)
class StreamVerdict:
    """The answer to a document. Two verdicts are equal if all their fields are; a comparison with a string is always
    False, so compare :attr:`verdict`, or use :attr:`is_kept`.

    >>> import lookalike as la
    >>> stream = la.Stream()
    >>> stream.insert("The ferry leaves at seven.", "a").is_kept
    True
    >>> answer = stream.insert("the FERRY leaves at seven!", "b")
    >>> answer.verdict, answer.of, answer.similarity, answer.seq
    ('duplicate', 'a', 1.0, 1)

    ``id`` is the id of the document and ``verdict`` "kept" or "duplicate". A duplicate names in ``of`` the kept document that
    it repeats, in ``similarity`` the similarity to it, and in ``method`` how the pair was found. ``seq`` is the number of
    the document in the stream, from 0, and None for one that was not stored. ``late`` is True for a document that is older
    than the window; it matched nothing and was not stored.
    """

    id: Union[int, str]
    verdict: Literal["kept", "duplicate"]
    of: Union[int, str, None] = None
    similarity: Optional[float] = None
    method: Optional[str] = None
    seq: Optional[int] = None
    late: bool = False

    @property
    def is_kept(self) -> bool:
        """True if the document was kept."""
        return self.verdict == "kept"

    def __bool__(self) -> bool:
        # Without it every verdict would be true, also that of a duplicate.
        raise TypeError("a verdict has no truth value: use its is_kept, or compare its verdict with 'duplicate'")

    def __repr__(self) -> str:
        if self.of is not None and self.similarity is not None:
            return f"<StreamVerdict {self.id!r}: duplicate of {self.of!r}, {self.similarity}>"
        return f"<StreamVerdict {self.id!r}: kept{', late and not stored' if self.late else ''}>"


def _verdict_of(answer: _engine.StreamVerdict) -> StreamVerdict:
    verdict: Any = answer.verdict
    return StreamVerdict(answer.id, verdict, answer.of, answer.similarity, answer.method, answer.seq, answer.late)


class Stream(_engine.StreamBase):
    """Checks documents one after another and keeps those that are new, as a collection of the service does.

    A document is kept if no kept one before it, within the ``window``, matches it; matches are verified. The other
    arguments are those of :func:`dedup`. A stream learns no forms; a table of forms is a part of its ``recipe``. Times are
    seconds since 1970, or datetimes, also those of NumPy, of which those without a zone are UTC; a document without a time has that of the clock. The window moves with the newest time of a document, which is
    held back to the clock plus ``skew`` seconds. With ``refresh``, a duplicate renews the window of its original. With
    ``window_documents`` in place of ``window``, a document is compared with the kept ones among so many before it.

    A stream is in memory: :meth:`save` writes the kept documents to a file and :meth:`open` reads it. Several threads
    can insert at the same time. An id is a string or a whole number; the stream does not check whether ids repeat.

    >>> import lookalike as la
    >>> stream = la.Stream(threshold=0.6, window="2d")
    >>> stream.insert("The ferry leaves at seven.", "a", time=0)
    <StreamVerdict 'a': kept>
    >>> stream.insert("the FERRY leaves at eight", "b", time=3600)
    <StreamVerdict 'b': duplicate of 'a', 0.6>
    >>> stream.insert("The ferry leaves at seven.", "c", time=3 * 24 * 3600).verdict
    'kept'
    """

    @suggest_keywords
    def __new__(
        cls,
        *,
        threshold: Optional[float] = None,
        window: Optional[Window] = None,
        window_documents: Optional[int] = None,
        skew: float = 0.0,
        refresh: bool = False,
        recipe: RecipeLike = "default",
        method: Optional[Method] = None,
        distance: Optional[int] = None,
        candidates: Optional[Candidates] = None,
        sentences: Optional[int] = None,
        verify: Optional[Measure] = None,
        unit: Optional[Unit] = None,
    ) -> "Stream":
        rule = arguments.rule(method, threshold, distance, candidates, sentences, verify, unit)
        known, span = recipe_of(recipe), window_of(window)
        seconds = arguments.number("skew", arguments.needed("skew", skew, "a number of seconds"))
        documents = arguments.whole("window_documents", window_documents, 1)
        made = super().__new__(cls, known, rule, span, documents, seconds, arguments.truth("refresh", refresh))
        assert isinstance(made, Stream)
        made.recipe = known
        made._settings = {"window": span, "window_documents": documents, "skew": skew, "refresh": refresh, **rule}
        return made

    recipe: Recipe
    _settings: dict[str, Any]

    def insert(self, text: str, id: Union[int, str, None] = None, time: Time = None) -> StreamVerdict:  # type: ignore[override]
        """Checks a document and inserts it, in one atomic step. Without an id its id is its seq."""
        time = _checked_time(id, time)
        try:
            return _verdict_of(super().insert(text, id, time))
        except TypeError:
            _check_document(text, id, time)
            raise

    def query(self, text: str, id: Union[int, str, None] = None, time: Time = None) -> StreamVerdict:  # type: ignore[override]
        """Checks a document without inserting it."""
        time = _checked_time(id, time)
        try:
            return _verdict_of(super().query(text, id, time))
        except TypeError:
            _check_document(text, id, time)
            raise

    def insert_many(
        self, documents: Iterable[Union[str, Mapping[str, Any]]]
    ) -> list[StreamVerdict]:
        """Inserts texts, or dictionaries ``{"text", "id", "time"}``, in order, and returns their verdicts.

        All documents are checked before the first one is inserted.
        """
        if isinstance(documents, (str, bytes, Mapping)):
            arguments.refuse_type("documents", documents, "a list of texts or of dictionaries; insert takes a single text")
        fields = [_fields_of(one, f"documents[{position}]") for position, one in enumerate(documents)]
        return [self.insert(*document) for document in fields]

    def save(self, path: FilePath) -> None:
        """Writes the kept documents with all settings to a file (Arrow IPC), which appears when it is complete."""
        self.write_file(path, json.dumps({**self._settings, "recipe": self.recipe.toml}))

    @classmethod
    def open(cls, path: FilePath) -> "Stream":
        """Reads a stream that :meth:`save` wrote. It decides on further documents as the saved one does."""
        with as_missing_file(path):
            told, rows, following = _engine.read_saved_stream(path)
        settings = json.loads(told)
        return _restored(cls, {**settings, "recipe": Recipe(settings["recipe"])}, rows, following)

    def __reduce__(self) -> Any:
        settings = {**self._settings, "recipe": self.recipe}
        return _restored, (type(self), settings, self.kept_rows(), self.seq)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Stream of {counted(len(self), 'kept document')} of {self.seq}>"


def _fields_of(document: Any, place: str) -> tuple[str, Any, Any]:
    """Returns the text, the id and the time of a document, and refuses what `Stream.insert` cannot take."""
    if not isinstance(document, Mapping):
        _check_document(document, None, None, f"{place}: ")
        return document, None, None
    unknown = [name for name in document if name not in ("text", "id", "time")]
    if unknown:
        raise InputError(f"{place} has the unknown field {unknown[0]!r}: give \"text\", \"id\" and \"time\"")
    if "text" not in document:
        raise InputError(f"{place} has no \"text\": give it, or leave the document out")
    fields = document["text"], document.get("id"), document.get("time")
    _check_document(*fields, f"{place}: ")
    return fields


def _check_document(text: Any, id: Any, time: Any, place: str = "") -> None:
    """Refuses a text, an id or a time of a wrong type."""
    if not isinstance(text, str):
        arguments.refuse_type(f"{place}text", text, "a string")
    is_number = isinstance(id, numbers.Integral) and not isinstance(id, bool) and -(2**63) <= int(id) < 2**63
    if not (id is None or isinstance(id, str) or is_number):
        arguments.refuse_type(f"{place}id", id, "a string, for example with str(id), or a whole number of 64 bits")
    if not (time is None or type(time) in (int, float)):
        seconds_of(time, f"{place}time")


def _checked_time(id: Any, time: Any) -> Any:
    """Returns a time that the engine takes, and refuses an id that is True or False."""
    if isinstance(id, (bool, np.bool_)):
        _check_document("", bool(id), None)
    return time if time is None or type(time) in (int, float) else seconds_of(time)


def _restored(cls: type[Stream], settings: dict[str, Any], rows: Any, following: int) -> Stream:
    stream = cls(**settings)
    stream.restore(rows, following)
    return stream


def seconds_of(time: Any, name: str = "time") -> float:
    """Returns the seconds since 1970 of a number or a datetime; one without a zone is UTC."""
    if isinstance(time, np.datetime64) and not np.isnat(time):
        return float(time.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(time, numbers.Real) and not isinstance(time, bool):
        return float(time)
    if isinstance(time, np.datetime64) or is_missing(time):
        arguments.refuse(name, time, "seconds since 1970, a datetime, or None for the time of the clock")
    if not isinstance(time, datetime.datetime):
        arguments.refuse_type(name, time, "seconds since 1970, or a datetime")
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return float(time.timestamp())
