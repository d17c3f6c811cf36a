"""Indexes of fingerprints and signatures."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

from . import _engine
from ._errors import SettingError
from ._recipe import RecipeLike, recipe_of
from ._run import rule


class Near(NamedTuple):
    """Matches: the positions of queries, ids, and how far each is; arrays of one length."""

    query: np.ndarray
    id: np.ndarray
    distance: np.ndarray


class Alike(NamedTuple):
    """Matches: the positions of queries, ids, and shares of equal slots; arrays of one length."""

    query: np.ndarray
    id: np.ndarray
    similarity: np.ndarray


class HammingIndex(_engine.HammingIndexBase):
    """Fingerprints that come and go, found within a distance exactly.

    ``distance`` is the greatest that will be asked for (≤ 16), ``bits`` the width of the codes. Codes
    of up to 64 bits are arrays of uint64, wider ones rows of two words, the lower one first, as
    :func:`simhash` makes them. Masked codes (texts without a fingerprint) are passed over.

    >>> import lookalike as la
    >>> index = la.HammingIndex(distance=3)
    >>> index.add([0b1010, 0b11110000], ids=[7, 8])
    >>> index.search([0b1000])
    Near(query=array([0], dtype=uint64), id=array([7], dtype=uint64), distance=array([1], dtype=uint32))
    """

    def __new__(cls, distance: int = 3, bits: int = 64):
        return super().__new__(cls, bits, distance)

    def add(self, codes: Any, ids: Any = None) -> None:
        """Adds codes under ids (whole numbers from 0 on); without ids, under the numbers that follow
        those of all that was ever added so. An id that is there already is refused."""
        rows, kept = _codes(codes)
        super().add(rows[kept], _ids(ids, kept, self))

    def remove(self, ids: Any) -> int:
        """Removes ids; returns how many were there."""
        return super().remove(_numbers(ids))

    def search(self, codes: Any, distance: Optional[int] = None) -> Near:
        """All within ``distance`` (of the index unless given, ≤) of each code, by query and then in
        the order of adding."""
        rows, kept = _codes(codes)
        query, found, far = super().search(rows[kept], distance)
        return Near(np.flatnonzero(kept).astype(np.uint64)[query], found, far)


class LshIndex(_engine.LshIndexBase):
    """MinHash signatures by their bands.

    Bands follow from the recipe and the threshold as in :func:`dedup`, or are given as
    ``params=(bands, rows)``.

    >>> import lookalike as la
    >>> index = la.LshIndex(threshold=0.8)
    >>> index.bands, index.rows
    (21, 6)
    """

    def __new__(
        cls,
        threshold: Optional[float] = None,
        *,
        recipe: RecipeLike = "default",
        params: Optional[tuple[int, int]] = None,
    ):
        asked = rule(method="minhash", threshold=threshold)
        return super().__new__(cls, recipe_of(recipe), asked, params)

    def add(self, signatures: Any, ids: Any = None) -> None:
        """Adds signatures, a row each, under ids as :meth:`HammingIndex.add` does."""
        rows, kept = _signatures(signatures)
        super().add(np.ascontiguousarray(rows[kept]), _ids(ids, kept, self))

    def remove(self, ids: Any) -> int:
        """Removes ids; returns how many were there."""
        return super().remove(_numbers(ids))

    def search(self, signatures: Any, least: float = 0.0) -> Alike:
        """All that share a band with a signature and at least the share ``least`` of its slots."""
        rows, kept = _signatures(signatures)
        query, found, share = super().search(np.ascontiguousarray(rows[kept]), least)
        return Alike(np.flatnonzero(kept).astype(np.uint64)[query], found, share)


def _codes(codes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows of words, and which of them are codes."""
    rows = codes if isinstance(codes, np.ndarray) else np.asarray(codes, dtype=np.uint64)
    if rows.ndim == 0:
        rows = rows.reshape(1)
    if rows.dtype.kind not in "iu" or (rows.dtype.kind == "i" and rows.size and rows.min() < 0):
        raise SettingError(f"the codes are of {rows.dtype}: give whole numbers from 0 on, as uint64")
    if rows.ndim == 1:
        rows = rows[:, None]
    kept = ~np.ma.getmaskarray(rows).any(axis=1)
    return np.ma.getdata(rows).astype(np.uint64, copy=False), kept


def _signatures(signatures: Any) -> tuple[np.ndarray, np.ndarray]:
    rows = signatures if isinstance(signatures, np.ndarray) else np.asarray(signatures)
    if rows.ndim == 1:
        rows = rows[None, :]
    kept = ~np.ma.getmaskarray(rows).any(axis=1)
    return np.ma.getdata(rows).astype(np.uint32, copy=False), kept


def _numbers(ids: Any) -> np.ndarray:
    numbers = np.atleast_1d(np.asarray(ids))
    if numbers.size == 0:
        return np.empty(0, dtype=np.uint64)
    if numbers.dtype.kind not in "iu" or (numbers.dtype.kind == "i" and numbers.min() < 0):
        raise SettingError(f"the ids are of {numbers.dtype}: give whole numbers from 0 on")
    return numbers.astype(np.uint64, copy=False)


def _ids(ids: Any, kept: np.ndarray, index: Any) -> np.ndarray:
    """The ids of what is kept; without any, numbers that go on where those before ended."""
    if ids is not None:
        numbers = _numbers(ids)
        if len(numbers) != len(kept):
            raise SettingError(f"there are {len(kept)} codes and {len(numbers)} ids")
        return numbers[kept]
    start = getattr(index, "_next", 0)
    index._next = start + len(kept)
    return np.arange(start, start + len(kept), dtype=np.uint64)[kept]
