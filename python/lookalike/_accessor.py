"""What the accessors of frames and columns have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._options import DedupOptions, PairsOptions, SketchOptions, Unpack
from ._run import Deduplicated, Pairs, dedup, pairs
from ._sketch import minhash, simhash


class RowsAccessor:
    """The calls of this package on rows: a frame, or a column of texts."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def dedup(self, **options: Unpack[DedupOptions]) -> Deduplicated[Any]:
        """Keeps one row of each cluster of near-duplicates; see :func:`lookalike.dedup`."""
        return dedup(self._rows, **options)

    def unique(self, **options: Unpack[DedupOptions]) -> Any:
        """Returns the kept rows of :meth:`dedup`, with their type. Rows without a text are left out."""
        return self.dedup(**options).kept

    def is_duplicate(self, **options: Unpack[DedupOptions]) -> Any:
        """Returns a column with True for each row that :meth:`dedup` removes, and False for a row without a text."""
        removed = np.zeros(len(self._rows), dtype=bool)
        removed[self.dedup(**options).removed["position"].to_numpy()] = True
        return self._column(removed)

    def pairs(self, **options: Unpack[PairsOptions]) -> Pairs:
        """Finds all pairs of near-duplicates; see :func:`lookalike.pairs`."""
        return pairs(self._rows, **options)

    def _column(self, values: np.ndarray) -> Any:
        """Returns values as a column that belongs to the rows."""
        raise NotImplementedError

    def _fingerprints(self, values: np.ndarray) -> Any:
        """Returns fingerprints of up to 64 bits as a column in which masked ones are missing, and wider ones as they are."""
        if values.ndim > 1:
            return values
        return self._nullable_column(np.ma.getdata(values), np.ma.getmaskarray(values))

    def _nullable_column(self, values: np.ndarray, missing: np.ndarray) -> Any:
        """Returns values as a column that belongs to the rows, without the missing ones."""
        raise NotImplementedError


class FrameAccessor(RowsAccessor):
    """The calls of this package on a frame, as ``frame.lookalike``."""

    def simhash(self, text: str = "text", **options: Unpack[SketchOptions]) -> Any:
        """Returns the fingerprint of each text of a column as a column of uint64 that belongs to the rows, missing for a
        text without one. Fingerprints of more than 64 bits are an array of two words; see :func:`lookalike.simhash`."""
        return self._fingerprints(simhash(self._rows[text], **options))

    def minhash(self, text: str = "text", **options: Unpack[SketchOptions]) -> np.ndarray:
        """Returns the signature of each text of a column as an array; see :func:`lookalike.minhash`."""
        return minhash(self._rows[text], **options)


class SeriesAccessor(RowsAccessor):
    """The calls of this package on a column of texts, as ``series.lookalike``."""

    def simhash(self, **options: Unpack[SketchOptions]) -> Any:
        """Returns the fingerprint of each text as a column of uint64 that belongs to the rows, missing for a text without
        one. Fingerprints of more than 64 bits are an array of two words; see :func:`lookalike.simhash`."""
        return self._fingerprints(simhash(self._rows, **options))

    def minhash(self, **options: Unpack[SketchOptions]) -> np.ndarray:
        """Returns the signature of each text as an array; see :func:`lookalike.minhash`."""
        return minhash(self._rows, **options)
