"""Indexes of fingerprints and signatures."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

from . import _arguments as arguments
from . import _engine
from ._errors import SettingError
from ._recipe import RecipeLike, recipe_of
from ._words import counted


class Near(NamedTuple):
    """Matches of a search by distance: three arrays of equal length, for query positions, ids and distances.

    >>> import lookalike as la
    >>> index = la.HammingIndex(distance=3)
    >>> index.add([0b1010, 0b1011])
    >>> near = index.search([0b1011])
    >>> list(zip(near.query.tolist(), near.id.tolist(), near.distance.tolist()))
    [(0, 0, 1), (0, 1, 0)]
    """

    query: np.ndarray
    id: np.ndarray
    distance: np.ndarray


class Alike(NamedTuple):
    """Matches of a search by bands: three arrays of equal length, for query positions, ids and shares of equal
    slots.

    >>> import lookalike as la
    >>> index = la.LshIndex()
    >>> signatures = la.minhash(["the ferry leaves at seven", "a bridge over the river"])
    >>> index.add(signatures, ids=[7, 8])
    >>> index.search(signatures[1:])
    Alike(query=array([0], dtype=uint64), id=array([8], dtype=uint64), similarity=array([1.]))
    """

    query: np.ndarray
    id: np.ndarray
    similarity: np.ndarray


class HammingIndex(_engine.HammingIndexBase):
    """An index of fingerprints that finds all within a Hamming distance exactly, while ids are added and
    removed.

    ``distance`` is the largest distance of a search (≤ 16), ``bits`` the width of the codes. Codes of up
    to 64 bits are arrays of uint64; wider codes are rows of two words, the lower word first, as
    :func:`simhash` returns them. Masked codes (texts without a fingerprint) are skipped.

    >>> import lookalike as la
    >>> index = la.HammingIndex(distance=3)
    >>> index.add([0b1010, 0b11110000], ids=[7, 8])
    >>> index.search([0b1000])
    Near(query=array([0], dtype=uint64), id=array([7], dtype=uint64), distance=array([1], dtype=uint32))
    """

    def __new__(cls, distance: int = 3, bits: int = 64):
        arguments.needed("distance", distance, "a whole number")
        arguments.needed("bits", bits, "a whole number")
        distance = arguments.whole("distance", distance)
        return super().__new__(cls, arguments.whole("bits", bits, 1, 128), distance)

    def add(self, codes: Any, ids: Any = None) -> None:
        """Adds codes under ids (whole numbers from 0). Without ids, codes are numbered from the end of the
        previous calls without ids. An id that the index already has is refused; after a refusal or Ctrl-C,
        none of the codes is added."""
        rows, kept = _codes(codes, -(-self.bits // 64))
        super().add(rows[kept], _ids(ids, kept, self, "code"))

    def remove(self, ids: Any) -> int:
        """Removes ids and returns the number of removed ones. After Ctrl-C, some can still be present."""
        return super().remove(_numbers(ids))

    def search(self, codes: Any, distance: Optional[int] = None) -> Near:
        """Returns all codes within ``distance`` (≤; by default that of the index) of each query, sorted by
        query and then by time of insertion."""
        rows, kept = _codes(codes, -(-self.bits // 64))
        query, found, far = super().search(rows[kept], arguments.whole("distance", distance))
        return Near(np.flatnonzero(kept).astype(np.uint64)[query], found, far)

    def __repr__(self) -> str:
        return f"<HammingIndex of {counted(len(self), 'code')} of {self.bits} bits, distance {self.distance}>"


class LshIndex(_engine.LshIndexBase):
    """An index of MinHash signatures that finds those sharing a band.

    The bands follow from the recipe and the threshold as in :func:`dedup`, or are given as
    ``params=(bands, rows)``.

    >>> import lookalike as la
    >>> index = la.LshIndex(threshold=0.8)
    >>> index.bands, index.rows
    (21, 6)
    >>> index.add(la.minhash(["the ferry leaves at seven", "a bridge over the river"]))
    >>> index.search(la.minhash(["The ferry leaves at seven!"]), least=0.8).id
    array([0], dtype=uint64)
    """

    def __new__(
        cls,
        threshold: Optional[float] = None,
        *,
        recipe: RecipeLike = "default",
        params: Optional[tuple[int, int]] = None,
    ):
        asked = arguments.rule(method="minhash", threshold=threshold)
        return super().__new__(cls, recipe_of(recipe), asked, arguments.bands(params))

    def add(self, signatures: Any, ids: Any = None) -> None:
        """Adds signatures, one in each row, under ids as :meth:`HammingIndex.add` does."""
        rows, kept = _signatures(signatures, self.slots)
        super().add(np.ascontiguousarray(rows[kept]), _ids(ids, kept, self, "signature"))

    def remove(self, ids: Any) -> int:
        """Removes ids and returns the number of removed ones."""
        return super().remove(_numbers(ids))

    def search(self, signatures: Any, least: float = 0.0) -> Alike:
        """Returns all signatures that share a band, and at least the share ``least`` of slots, with a query."""
        rows, kept = _signatures(signatures, self.slots)
        if not arguments.number("least", arguments.needed("least", least, "a share from 0 to 1")) >= 0:
            arguments.refuse("least", least, "a share from 0 to 1")
        query, found, share = super().search(np.ascontiguousarray(rows[kept]), least)
        return Alike(np.flatnonzero(kept).astype(np.uint64)[query], found, share)

    def __repr__(self) -> str:
        return (
            f"<LshIndex of {counted(len(self), 'signature')}, {counted(self.bands, 'band')} of "
            f"{counted(self.rows, 'row')}>"
        )


def _codes(codes: Any, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows of words, and a mask of the rows that hold a code."""
    rows = np.ma.atleast_1d(arguments.array("codes", codes))
    if rows.ndim == 1:
        rows = rows[:, None]
    if not rows.size:
        rows = rows.reshape(0, words)
    if rows.ndim != 2:
        raise SettingError(f"codes has {rows.ndim} dimensions: give a list of numbers, or rows of two words")
    kept = ~np.ma.getmaskarray(rows).any(axis=1)
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
    kept = ~np.ma.getmaskarray(rows).any(axis=1)
    return np.ma.getdata(rows).astype(np.uint32, copy=False), kept


def _numbers(ids: Any) -> np.ndarray:
    return np.atleast_1d(arguments.array("ids", ids)).astype(np.uint64, copy=False)


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
        return numbers[kept]
    start = index.take_ids(len(kept))
    return np.arange(start, start + len(kept), dtype=np.uint64)[kept]
