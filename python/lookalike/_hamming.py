"""Indexes of fingerprints and signatures."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union

import numpy as np

from . import _arguments as arguments
from . import _engine
from ._errors import InputError, MissingFileError, SettingError, as_missing_file
from ._files import atomic_file, save_fingerprints
from ._keywords import suggest_keywords
from ._messages import in_words_of_python
from ._recipe import Recipe, RecipeLike, recipe_of
from ._result_tables import ResultTable
from ._words import counted

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from ._type_modules import pa, pd, pl


class _Matches(ResultTable):
    """Matches of a search as arrays of equal length, one for each field. Their number is the length, so that a search
    without a match is false."""

    def __len__(self) -> int:
        return len(self.id)  # type: ignore[attr-defined]

    def to_arrow(self) -> pa.Table:
        """Returns the matches as a table of pyarrow."""
        import pyarrow as pa

        return pa.table({field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class HammingMatches(_Matches):
    """Matches of a search by distance, as three arrays of equal length. ``len`` is the number of matches, and a search
    without a match is false.

    - ``query``: positions of the queries from 0, as uint64, ascending.
    - ``id``: ids of the matching codes, as uint64.
    - ``distance``: numbers of bits in which they differ, as uint32.

    >>> import lookalike as la
    >>> index = la.HammingIndex(distance=3)
    >>> index.add([0b1010, 0b1011])
    >>> near = index.search([0b1011])
    >>> list(zip(near.query.tolist(), near.id.tolist(), near.distance.tolist()))
    [(0, 0, 1), (0, 1, 0)]
    >>> len(near), bool(index.search([0b11110000]))
    (2, False)
    """

    query: np.ndarray
    id: np.ndarray
    distance: np.ndarray


@dataclass(frozen=True, eq=False)
class SignatureMatches(_Matches):
    """Matches of a search by bands, as three arrays of equal length. ``len`` is the number of matches, and a search
    without a match is false.

    - ``query``: positions of the queries from 0, as uint64, ascending.
    - ``id``: ids of the matching signatures, as uint64.
    - ``similarity``: shares of equal slots, as float64.

    >>> import lookalike as la
    >>> index = la.LshIndex()
    >>> signatures = la.minhash(["the ferry leaves at seven", "a bridge over the river"])
    >>> index.add(signatures, ids=[7, 8])
    >>> index.search(signatures[1:])
    SignatureMatches(query=array([0], dtype=uint64), id=array([8], dtype=uint64), similarity=array([1.]))
    """

    query: np.ndarray
    id: np.ndarray
    similarity: np.ndarray


#: Largest distance of an index.
_MOST_DISTANCE = 16


class HammingIndex(_engine.HammingIndexBase):
    """An index of fingerprints that finds all within a Hamming distance exactly, while ids are added and
    removed.

    ``distance`` is the largest distance of a search (≤ 16), ``bits`` the width of the codes. Codes of up
    to 64 bits are arrays of uint64; wider codes are rows of two words, the lower word first, as
    :func:`simhash` returns them. Masked codes (texts without a fingerprint) are skipped. Threads can share an index;
    a search beside a long :meth:`add` can see a part of its codes.

    >>> import lookalike as la
    >>> index = la.HammingIndex(distance=3)
    >>> index.add([0b1010, 0b11110000], ids=[7, 8])
    >>> index.search([0b1000])
    HammingMatches(query=array([0], dtype=uint64), id=array([7], dtype=uint64), distance=array([1], dtype=uint32))
    """

    @suggest_keywords
    def __new__(cls, distance: int = 3, bits: int = 64) -> "HammingIndex":
        arguments.needed("distance", distance, "a whole number")
        arguments.needed("bits", bits, "a whole number")
        given = arguments.whole("distance", distance), arguments.whole("bits", bits, 1, 128)
        if given[0] is not None and given[0] > _MOST_DISTANCE:
            wanted = f"a whole number from 0 to {_MOST_DISTANCE}; numpy.bitwise_count(codes ^ code) has distances of any size"
            arguments.refuse("distance", distance, wanted)
        return super().__new__(cls, given[1], given[0])  # type: ignore[arg-type, return-value]

    def add(self, codes: Any, ids: Any = None) -> None:
        """Adds codes under ids (whole numbers from 0). Without ids, codes are numbered from the end of the
        previous calls without ids. An id that the index already has is refused; after a refusal or Ctrl-C,
        none of the codes is added."""
        rows, kept = _codes(codes, -(-self.bits // 64))
        numbers = _ids(ids, kept, self, "code")
        with _explained_ids(ids, numbers):
            super().add(rows[kept], numbers)

    def remove(self, ids: Any) -> int:
        """Removes ids and returns the number of removed ones. After Ctrl-C, some can still be present."""
        return super().remove(_numbers(ids))

    def search(self, codes: Any, distance: Optional[int] = None) -> HammingMatches:  # type: ignore[override]
        """Returns all codes within ``distance`` (≤; by default that of the index) of each query, sorted by
        query and then by time of insertion."""
        rows, kept = _codes(codes, -(-self.bits // 64))
        query, found, far = super().search(rows[kept], arguments.whole("distance", distance))
        return HammingMatches(np.flatnonzero(kept).astype(np.uint64)[query], found, far)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the index as a directory, which ``lookalike search`` and :class:`Index` open too.

        The directory must be new or hold an index, which is replaced when the new one is complete."""
        codes, ids = self.codes()
        save_fingerprints(path, codes, ids, self.bits, self.distance)

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"]) -> "HammingIndex":
        """Reads an index that :meth:`save` or ``lookalike index build`` wrote into memory.

        Its ids must be whole numbers. Documents without a fingerprint are left out. Raises :class:`InputError` if the
        directory is not an index or is damaged. An :class:`Index` searches the directory itself, without reading it.
        """
        with as_missing_file(path), in_words_of_python():
            codes, named, bits, distance = _engine.index_fingerprints(os.fspath(path))
        index = cls(distance, bits)
        index.add(codes, whole_ids(path, named))
        return index

    def copy(self) -> "HammingIndex":
        """Returns a copy."""
        return _restored_hamming(*self.__reduce__()[1])

    __copy__ = copy

    def __deepcopy__(self, _: Any) -> "HammingIndex":
        return self.copy()

    def __reduce__(self) -> Any:
        codes, ids = self.codes()
        return _restored_hamming, (type(self), self.distance, self.bits, codes, ids, self.take_ids(0))

    def __repr__(self) -> str:
        return f"<HammingIndex of {counted(len(self), 'code')} of {self.bits} bits, distance {self.distance}>"


class LshIndex(_engine.LshIndexBase):
    """An index of MinHash signatures that finds those sharing a band.

    The bands follow from the recipe and the threshold as in :func:`dedup`, or are given as
    ``params=(bands, rows)``. Threads can share an index; a search beside a long :meth:`add` can see a part of
    its signatures.

    >>> import lookalike as la
    >>> index = la.LshIndex(threshold=0.8)
    >>> index.bands, index.rows
    (21, 6)
    >>> index.add(la.minhash(["the ferry leaves at seven", "a bridge over the river"]))
    >>> index.search(la.minhash(["The ferry leaves at seven!"]), least=0.8).id
    array([0], dtype=uint64)
    """

    _recipe: Recipe

    @suggest_keywords
    def __new__(
        cls,
        threshold: Optional[float] = None,
        *,
        recipe: RecipeLike = "default",
        params: Optional[tuple[int, int]] = None,
    ) -> "LshIndex":
        asked = arguments.rule(method="minhash", threshold=threshold)
        known = recipe_of(recipe)
        made = super().__new__(cls, known, asked, arguments.bands(params))
        assert isinstance(made, LshIndex)
        made._recipe = known
        return made

    def add(self, signatures: Any, ids: Any = None) -> None:
        """Adds signatures, one in each row, under ids as :meth:`HammingIndex.add` does."""
        rows, kept = _signatures(signatures, self.slots)
        numbers = _ids(ids, kept, self, "signature")
        with _explained_ids(ids, numbers):
            super().add(np.ascontiguousarray(rows[kept]), numbers)

    def remove(self, ids: Any) -> int:
        """Removes ids and returns the number of removed ones."""
        return super().remove(_numbers(ids))

    def search(self, signatures: Any, least: float = 0.0) -> SignatureMatches:  # type: ignore[override]
        """Returns all signatures that share a band, and at least the share ``least`` of slots, with a query."""
        rows, kept = _signatures(signatures, self.slots)
        if not 0 <= float(arguments.number("least", arguments.needed("least", least, "a share from 0 to 1")) or 0) <= 1:
            arguments.refuse("least", least, "a share from 0 to 1")
        query, found, share = super().search(np.ascontiguousarray(rows[kept]), least)
        return SignatureMatches(np.flatnonzero(kept).astype(np.uint64)[query], found, share)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the index to a file of NumPy (``.npz``), which appears when it is complete."""
        signatures, ids = self.signatures()
        with atomic_file(path) as file:
            np.savez(
                file,
                format=np.array("lookalike LshIndex 1"),
                recipe=np.array(self._recipe.toml),
                params=np.array([self.bands, self.rows, self.take_ids(0)], dtype=np.uint64),
                signatures=signatures,
                ids=ids,
            )

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"]) -> "LshIndex":
        """Reads an index that :meth:`save` wrote."""
        from zipfile import BadZipFile

        try:
            with as_missing_file(path), np.load(path, allow_pickle=False) as saved:
                if str(saved["format"]) != "lookalike LshIndex 1":
                    raise KeyError("format")
                bands, rows, following = (int(number) for number in saved["params"])
                recipe = Recipe(str(saved["recipe"]))
                return _restored_lsh(cls, recipe, (bands, rows), saved["signatures"], saved["ids"], following)
        except MissingFileError:
            raise
        except (KeyError, ValueError, EOFError, BadZipFile) as error:
            raise InputError(f"{os.fspath(path)} is not an LshIndex that was saved: {error}") from error

    def copy(self) -> "LshIndex":
        """Returns a copy."""
        return _restored_lsh(*self.__reduce__()[1])

    __copy__ = copy

    def __deepcopy__(self, _: Any) -> "LshIndex":
        return self.copy()

    def __reduce__(self) -> Any:
        signatures, ids = self.signatures()
        told = (type(self), self._recipe, (self.bands, self.rows), signatures, ids, self.take_ids(0))
        return _restored_lsh, told

    def __repr__(self) -> str:
        return (
            f"<LshIndex of {counted(len(self), 'signature')}, {counted(self.bands, 'band')} of "
            f"{counted(self.rows, 'row')}>"
        )


def _restored_hamming(
    cls: type[HammingIndex], distance: int, bits: int, codes: np.ndarray, ids: np.ndarray, following: int
) -> HammingIndex:
    index = cls(distance, bits)
    index.add(codes, ids)
    index.take_ids(following)
    return index


def _restored_lsh(
    cls: type[LshIndex],
    recipe: Recipe,
    params: tuple[int, int],
    signatures: np.ndarray,
    ids: np.ndarray,
    following: int,
) -> LshIndex:
    index = cls(recipe=recipe, params=params)
    index.add(signatures, ids)
    index.take_ids(following)
    return index


def whole_ids(path: Any, named: list[str]) -> np.ndarray:
    """Returns the ids of an index directory as whole numbers."""
    try:
        return np.array([int(id) for id in named], dtype=np.uint64)
    except (ValueError, OverflowError):
        wrong = next(id for id in named if not id.isascii() or not id.isdigit() or int(id) >= 2**64)
        raise InputError(
            f"the index {os.fspath(path)} has the id {wrong!r}, and a HammingIndex has whole numbers: open it with "
            "lookalike.Index"
        ) from None


def _codes(codes: Any, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows of words, and a mask of the rows that hold a code."""
    rows = np.ma.atleast_1d(arguments.array("codes", codes))
    if rows.ndim == 1:
        rows = rows[:, None]
    if not rows.size:
        rows = rows.reshape(0, words)
    if rows.ndim != 2:
        raise SettingError(f"codes has {rows.ndim} dimensions: give a list of numbers, or rows of two words")
    kept = np.asarray(~np.ma.getmaskarray(rows).any(axis=1))
    return np.ma.getdata(rows).astype(np.uint64, copy=False), kept


def _signatures(signatures: Any, slots: int) -> tuple[np.ndarray, np.ndarray]:
    rows = arguments.array("signatures", signatures)
    if not rows.size:
        rows = rows.reshape(0, slots)
    if rows.ndim == 1:
        rows = rows[None, :]
    if rows.ndim != 2:
        raise SettingError(f"signatures has {rows.ndim} dimensions: give one signature, or one in each row")
    if rows.dtype != np.uint32 and rows.size and rows.max() > 2**32 - 1:
        raise SettingError(f"signatures contains the slot {rows.max()}, which has more than 32 bits")
    kept = np.asarray(~np.ma.getmaskarray(rows).any(axis=1))
    return np.ma.getdata(rows).astype(np.uint32, copy=False), kept


def _numbers(ids: Any) -> np.ndarray:
    return np.asarray(np.atleast_1d(arguments.array("ids", ids)).astype(np.uint64, copy=False))


@contextmanager
def _explained_ids(given: Any, numbers: np.ndarray) -> Iterator[None]:
    """Raises the refusal of an id with where the id came from: it was given twice, or it was counted."""
    try:
        yield
    except SettingError as error:
        if not str(error).startswith("the index already has the id"):
            raise
        values, counts = np.unique(numbers, return_counts=True)
        if given is None:
            raise SettingError(f"{error}: ids that are not given count from 0: give ids") from None
        if counts.max() > 1:
            raise SettingError(f"ids repeats {values[counts > 1][0]}: give each id once") from None
        raise


def _ids(ids: Any, kept: np.ndarray, index: Any, noun: str) -> np.ndarray:
    """Returns the ids of the ``kept`` rows; without given ids, numbers that continue the previous ones."""
    if ids is not None:
        numbers = _numbers(ids)
        if numbers.ndim != 1:
            raise SettingError(f"ids has {numbers.ndim} dimensions: give one id for each {noun}")
        if len(numbers) != len(kept):
            raise SettingError(
                f"{counted(len(kept), noun)} and {counted(len(numbers), 'id')} were given: give one id for each {noun}"
            )
        return np.asarray(numbers[kept])
    start = index.take_ids(len(kept))
    return np.asarray(np.arange(start, start + len(kept), dtype=np.uint64)[kept])


#: Former names, under which pickles of the version before have these classes.
Near = HammingMatches
Alike = SignatureMatches
