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
    """Matches: the positions of queries, ids, and how far each is; arrays of one length.

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
    """Matches: the positions of queries, ids, and shares of equal slots; arrays of one length.

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
        arguments.needed("distance", distance, "a whole number")
        arguments.needed("bits", bits, "a whole number")
        distance = arguments.whole("distance", distance)
        return super().__new__(cls, arguments.whole("bits", bits, 1, 128), distance)

    def add(self, codes: Any, ids: Any = None) -> None:
        """Adds codes under ids (whole numbers from 0 on); without ids, under the numbers that follow
        those of all that was ever added so. An id that is there already is refused; after a refusal, as
        after Ctrl-C, none of them was added."""
        rows, kept = _codes(codes, -(-self.bits // 64))
        super().add(rows[kept], _ids(ids, kept, self, "code"))

    def remove(self, ids: Any) -> int:
        """Removes ids; returns how many were there. After Ctrl-C some of them are still there."""
        return super().remove(_numbers(ids))

    def search(self, codes: Any, distance: Optional[int] = None) -> Near:
        """All within ``distance`` (of the index unless given, ≤) of each code, by query and then in
        the order of adding."""
        rows, kept = _codes(codes, -(-self.bits // 64))
        query, found, far = super().search(rows[kept], arguments.whole("distance", distance))
        return Near(np.flatnonzero(kept).astype(np.uint64)[query], found, far)

    def __repr__(self) -> str:
        return f"<HammingIndex of {counted(len(self), 'code')} of {self.bits} bits, distance {self.distance}>"


class LshIndex(_engine.LshIndexBase):
    """MinHash signatures by their bands.

    Bands follow from the recipe and the threshold as in :func:`dedup`, or are given as
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
        """Adds signatures, a row each, under ids as :meth:`HammingIndex.add` does."""
        rows, kept = _signatures(signatures, self.slots)
        super().add(np.ascontiguousarray(rows[kept]), _ids(ids, kept, self, "signature"))

    def remove(self, ids: Any) -> int:
        """Removes ids; returns how many were there."""
        return super().remove(_numbers(ids))

    def search(self, signatures: Any, least: float = 0.0) -> Alike:
        """All that share a band with a signature and at least the share ``least`` of its slots."""
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
    """Rows of words, and which of them are codes."""
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
    """The ids of what is kept; without any, numbers that go on where those before ended."""
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
