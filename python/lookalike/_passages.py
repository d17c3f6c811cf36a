"""Shared passages: those of two texts, and those of all documents of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Union, overload

from . import _arguments as arguments
from . import _engine, _notebook
from ._choices import IdField, Offsets, PassageOrder
from ._data import Names, refuse_repeated, stream_of
from ._errors import ArgumentTypeError, SettingError
from ._ids import cast_ids, named_ids
from ._keywords import suggest_keywords
from ._messages import with_remedies
from ._progress import Progress, teller
from ._recipe import RecipeLike, recipe_of
from ._result_tables import RejectedRow, ResultTable, rejected_rows
from ._run import Window, window_of
from ._texts import text_of
from ._words import counted, omissions

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from ._type_modules import pa

#: Passages that a notebook shows.
_SHOWN_PASSAGES = 10

#: Text that all documents were given: one, or several.
BaseTexts = Union[str, Iterable[str], None]

#: Largest value of ``min_length``, as on the command line.
MOST_WORDS = 10_000


class PassagePlace(NamedTuple):
    """The place of a passage in one text: in characters, as Python slices strings, and in bytes of UTF-8.
    ``line`` is the line in which it begins, from 1.

    >>> import lookalike as la
    >>> text = "渡船七点离开岛上。"
    >>> found = la.passages(text, "他说：" + text, min_length=2)[0]
    >>> found.b
    PassagePlace(start=3, end=11, start_byte=9, end_byte=33, line=1)
    """

    start: int
    end: int
    start_byte: int
    end_byte: int
    line: int


class SharedPassage(NamedTuple):
    """A passage that two texts share: its place in both, the number of words (and of characters of scripts
    without spaces) of its part of ``b``, the share of equal ones, and its kind: verbatim, edited, reordered or reworded.

    >>> import lookalike as la
    >>> found = la.passages("the ferry leaves at seven", "The FERRY leaves at seven!", min_length=4)[0]
    >>> found.length, found.similarity, found.kind
    (5, 1.0, 'verbatim')
    """

    a: PassagePlace
    b: PassagePlace
    length: int
    similarity: float
    kind: str


class SharedPassages(ResultTable):
    """What two texts share, a sequence of :class:`SharedPassage`, ascending by the place in ``b``.

    ``share_of_a`` and ``share_of_b`` are the shares of the words of either text that lie in passages, from 0 to 1.
    ``directed`` is ``False``, because nothing says which of two texts took from the other.

    >>> import lookalike as la
    >>> found = la.passages("the ferry leaves at seven", "he says the ferry leaves at seven", min_length=4)
    >>> found
    <SharedPassages: 1 passage, 1.0 of a and 0.7143 of b>
    >>> [passage.length for passage in found]
    [5]
    """

    #: ``True`` if it is known which text is the source, which it never is of two strings.
    directed: bool = False

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._passages = [
            SharedPassage(PassagePlace(*a), PassagePlace(*b), length, similarity, kind)
            for a, b, length, similarity, kind in found["passages"]
        ]
        self.share_of_a: float = found["share_of_a"]
        self.share_of_b: float = found["share_of_b"]

    def to_arrow(self) -> pa.Table:
        """Returns a table ``a_start, a_end, b_start, b_end, length, similarity, kind``, in characters from 0."""
        import pyarrow as pa

        rows = [(*one.a[:2], *one.b[:2], *one[2:]) for one in self._passages]
        whole = pa.int64()
        fields = {"a_start": whole, "a_end": whole, "b_start": whole, "b_end": whole, "length": whole}
        fields.update(similarity=pa.float64(), kind=pa.string())
        columns = zip(*rows) if rows else ((),) * len(fields)
        return pa.table([pa.array(values, kind) for values, kind in zip(columns, fields.values())], list(fields))

    def __len__(self) -> int:
        return len(self._passages)

    def __iter__(self) -> Iterator[SharedPassage]:
        return iter(self._passages)

    def __getitem__(self, at: Any) -> Any:
        return self._passages[at]

    def __repr__(self) -> str:
        shares = f"{self.share_of_a} of a and {self.share_of_b} of b"
        return f"<SharedPassages: {counted(len(self), 'passage')}, {shares}>"


@dataclass(frozen=True, eq=False, repr=False)
class Passages(ResultTable):
    """The passages of the documents of a table. Its fields:

    - ``passages``: a table of every passage: ``document``, ``source`` (ids), ``start``, ``end``, ``source_start``,
      ``source_end`` (places in both texts, from 0), ``length`` (in words), ``similarity`` (float64), ``kind``. Places and
      lengths are uint64; ids are whole numbers if all ids of the data are, or else strings. Unless the passages are
      directed, the source is the document that comes first in the data, which says nothing about who wrote it.
    - ``rejected``: a list of the rows that are not valid, as :class:`RejectedRow`.
    - ``summary``: the summary of the run, a dictionary as ``lookalike passages --json`` prints it; ``missing_ids`` counts
      the rows of the data that have no id, whose id is ``data:row``.

    >>> import lookalike as la
    >>> found = la.passages(["the ferry leaves at seven", "so the ferry leaves at seven", None], min_length=4)
    >>> found
    <Passages: 1 passage that 2 of 2 documents share, 1 row rejected>
    >>> found.directed
    False
    >>> found.rejected
    [RejectedRow(position=2, reason='the field `text` is null, not a string')]
    """

    passages: pa.Table
    rejected: list[RejectedRow]
    summary: dict[str, Any]

    def to_arrow(self) -> pa.Table:
        """Returns the passages as a table of pyarrow."""
        return self.passages

    @property
    def directed(self) -> bool:
        """``True`` if it is known which of two documents is the source: by ``time``, or because ``against`` was given."""
        return bool(self.summary["directed"])

    def __repr__(self) -> str:
        told = self.summary
        found = counted(told["passages"], "passage")
        documents = counted(told["documents"], "document")
        if not told["passages"]:
            place = f"in {documents}"
        elif self.directed:
            place = f"in {told['sharing']} of {documents}"
        else:
            place = f"that {told['sharing']} of {documents} share"
        return f"<Passages: {found} {place}{omissions(self.rejected, told['missing_ids'])}>"

    def _repr_html_(self) -> str:
        shown = self.passages.slice(0, _SHOWN_PASSAGES).to_pylist()
        rows = [[row["document"], row["source"], row["length"], f"{row['similarity']:.2f}", row["kind"]] for row in shown]
        names = ["document", "source"] if self.directed else ["document", "other document"]
        return _notebook.page(repr(self)[1:-1], _notebook.table([*names, "length", "similarity", "kind"], rows))


@overload
def passages(
    a: str,
    b: str,
    /,
    *,
    min_length: int = 12,
    reworded: bool = False,
    base: BaseTexts = None,
    recipe: RecipeLike = "default",
) -> SharedPassages: ...
@overload
def passages(
    data: Any,
    /,
    *,
    min_length: int = 12,
    reworded: bool = False,
    base: BaseTexts = None,
    recipe: RecipeLike = "default",
    against: Any = None,
    text: Names = "text",
    id: IdField = None,
    max_documents: Union[int, str, None] = None,
    time: Optional[str] = None,
    window: Optional[Window] = None,
    within: Optional[str] = None,
    offsets: Offsets = "characters",
    order: PassageOrder = "position",
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Passages: ...
@suggest_keywords
def passages(
    a: Any,
    b: Optional[str] = None,
    /,
    *,
    min_length: int = 12,
    reworded: bool = False,
    base: BaseTexts = None,
    recipe: RecipeLike = "default",
    against: Any = None,
    text: Names = "text",
    id: IdField = None,
    max_documents: Union[int, str, None] = None,
    time: Optional[str] = None,
    window: Optional[Window] = None,
    within: Optional[str] = None,
    offsets: Offsets = "characters",
    order: PassageOrder = "position",
    strict: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Union[SharedPassages, Passages]:
    """Finds shared passages: those of two texts, or those that the documents of a table share with one another, as
    ``lookalike passages`` does.

    Parameters
    ----------
    a : str or table
        The first text, or data as in :func:`dedup`, given alone.
    b : str
        The second text. Two texts take only the four arguments after it.
    min_length : int, default 12
        Shortest passage in words, from 2; a word counts as two characters of a script without spaces.
    reworded : bool
        Also finds passages that have many of the same rarer words close together, in whatever order, but few runs of equal
        words. They have at least 30 words, and some copies are missed.
    base : str or list of str
        Text that all were given, such as the question or a form: what stands in it is no part of any passage. A run of five
        words (ten characters) of it counts for nothing in every document.
    recipe : str, path, Recipe or dict
        Its normalisation says which words are equal.
    against : as data
        Only what documents share with these is found.
    text, id
        As in :func:`dedup`.
    max_documents : int or str
        Number of documents (or their percentage, such as "0.5%", or "none") in which a run of five words may be before it
        is boilerplate, for which alone no two documents are compared; by default 20, or 0.1% if that is more.
    time : str
        Field with the time. The source of a passage is then the earlier document, not the one that comes first.
    window, within
        As in :func:`dedup`: which documents are compared.
    offsets : {"characters", "bytes"}
        Unit of positions, which count from 0.
    order : {"position", "longest", "copied"}
        With "copied", documents that have most text of one source come first.
    strict, threads, progress
        As in :func:`dedup`.

    Returns
    -------
    SharedPassages or Passages
        The passages of two texts, or of a table.

    Raises
    ------
    SettingError, InputError, BadRowError
        As in :func:`dedup`.

    >>> import lookalike as la
    >>> source = "The ferry leaves at seven. Nobody misses it, because the next one leaves at noon."
    >>> essay = "As they say, nobody misses it because the next one leaves at noon."
    >>> found = la.passages(source, essay, min_length=6)[0]
    >>> essay[found.b.start : found.b.end]
    'nobody misses it because the next one leaves at noon'
    >>> la.passages([essay], against=[source], min_length=6).passages.select(["start", "end", "kind"]).to_pylist()
    [{'start': 13, 'end': 65, 'kind': 'verbatim'}]
    """
    least = arguments.given_whole("min_length", min_length, 2, MOST_WORDS)
    finds_reworded = arguments.truth("reworded", reworded)
    base_texts = _list_base_texts(base)
    if isinstance(b, str) and not isinstance(a, (str, bytes)):
        raise ArgumentTypeError(
            f"a is of the type {type(a).__name__} and b is {b!r}: give two strings, or a table alone; for a table text names "
            "its column, and against=[…] takes the other documents"
        )
    if isinstance(a, str) or isinstance(b, (str, bytes)):
        for_tables = {
            "against": against, "id": id, "max_documents": max_documents, "time": time, "window": window,
            "within": within, "threads": threads, "progress": progress,
        }
        _refuse_arguments_of_tables(for_tables, text, offsets, order, strict)
        return SharedPassages(
            _engine.shared_passages(
                text_of("a", a), text_of("b", b), recipe_of(recipe), least, finds_reworded, base_texts
            )
        )
    if b is not None:
        raise ArgumentTypeError(
            f"b is of the type {type(b).__name__}: give two strings, or a table and a second one as against"
        )
    options = {
        "recipe": recipe_of(recipe),
        "reading": arguments.reading(text, id),
        "min_length": least,
        "reworded": finds_reworded,
        "max_documents": document_limit(max_documents),
        "base": base_texts,
        "time": arguments.word("time", time),
        "window": window_of(window),
        "within": arguments.word("within", within),
        "offsets": arguments.needed("offsets", arguments.word("offsets", offsets), "characters or bytes"),
        "order": arguments.needed("order", arguments.word("order", order), "position, longest or copied"),
        "threads": arguments.threads(threads),
        "strict": arguments.truth("strict", strict),
    }
    names = options["reading"]["text"]
    used = [field for field in (time, within) if field is not None]
    others, ids = None, {}
    if against is not None:
        others, ids["against"] = named_ids(stream_of(against, names, "against"), id, "against", strict)
        refuse_repeated(others, used, "against")
    stream, ids["data"] = named_ids(stream_of(a, names), id, "data", strict)
    refuse_repeated(stream, used, "data")
    with teller(progress) as told, with_remedies(a):
        found = _engine.passages(stream, others, options, told)
    summary = {**json.loads(found["summary"]), "missing_ids": ids["data"].missing}
    return Passages(cast_ids(found["passages"], ["document", "source"], ids), rejected_rows(found["rejected"]), summary)


def _list_base_texts(base: BaseTexts) -> list[str]:
    """Returns the texts that all documents were given."""
    if base is None:
        return []
    if isinstance(base, (bytes, Mapping)) or not isinstance(base, Iterable):
        arguments.refuse_type("base", base, "a text, or a list of texts, that all documents were given")
    return [base] if isinstance(base, str) else [text_of("base", text) for text in base]


def _refuse_arguments_of_tables(
    optional: Mapping[str, Any], text: Any, offsets: Any, order: Any, strict: Any
) -> None:
    """Raises a SettingError if an argument was given that has no effect on two texts."""
    given = [name for name, value in optional.items() if value is not None]
    usual = {"text": (text, "text"), "offsets": (offsets, "characters"), "order": (order, "position")}
    given += [name for name, (value, default) in usual.items() if value != default]
    given += ["strict"] if strict is not False else []
    if given:
        raise SettingError(f"{given[0]} is for tables, and has no effect on two texts: leave it out")


def document_limit(value: Any) -> Union[int, str, None]:
    """Returns the number of documents that may share a run of words, as a number or as text."""
    if value is None or isinstance(value, str):
        return value
    wanted = 'a number of documents from 1, a percentage such as "0.5%", or "none"'
    if isinstance(value, float):
        arguments.refuse_type("max_documents", value, wanted)
    return arguments.whole("max_documents", value, 1)


#: Former names, under which pickles of the version before have these classes.
Spot = PassagePlace
