"""What the accessors of frames have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._run import Deduplicated, Pairs, dedup, pairs
from ._sketch import minhash, simhash


class FrameAccessor:
    """The calls of this package on a frame, as ``frame.lookalike``."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def dedup(self, **options: Any) -> Deduplicated:
        """Keeps one row of each cluster of near-duplicates; see :func:`lookalike.dedup`."""
        return dedup(self._frame, **options)

    def unique(self, **options: Any) -> Any:
        """Returns the kept rows of :meth:`dedup`, as a frame."""
        return self.dedup(**options).kept

    def is_duplicate(self, **options: Any) -> np.ndarray:
        """Returns for each row True if :meth:`dedup` removes it. Rows that are not valid are not duplicates."""
        removed = np.zeros(len(self._frame), dtype=bool)
        removed[self.dedup(**options).removed["position"].to_numpy()] = True
        return removed

    def pairs(self, **options: Any) -> Pairs:
        """Finds all pairs of near-duplicates; see :func:`lookalike.pairs`."""
        return pairs(self._frame, **options)

    def simhash(self, text: str = "text", **options: Any) -> np.ndarray:
        """Returns the fingerprint of each text of a column; see :func:`lookalike.simhash`."""
        return simhash(self._frame[text], **options)

    def minhash(self, text: str = "text", **options: Any) -> np.ndarray:
        """Returns the signature of each text of a column; see :func:`lookalike.minhash`."""
        return minhash(self._frame[text], **options)
