"""What the MinHash of the engine leaves to Python."""

from __future__ import annotations

import hashlib
import struct
from typing import Any, Iterable, Iterator

import numpy as np


def sha1_hash32(data: bytes) -> int:
    """The first four bytes of SHA-1, little-endian."""
    return struct.unpack("<I", hashlib.sha1(data).digest()[:4])[0]


def sha1_hash64(data: bytes) -> int:
    """The first eight bytes of SHA-1, little-endian."""
    return struct.unpack("<Q", hashlib.sha1(data).digest()[:8])[0]


def each(empty: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """A copy of an empty MinHash for each batch of values."""
    for values in batches:
        one = empty.copy()
        one.update_batch(values)
        yield one


def as_wide(values: Any, dimensions: int) -> np.ndarray:
    """Whole numbers from 0 on as uint64; ValueError for what is none."""
    if not isinstance(values, np.ndarray):
        try:
            values = np.array(values, dtype=np.uint64)
        except (OverflowError, TypeError) as error:
            raise ValueError(f"the values are no whole numbers of 64 bits: {error}") from error
    if values.dtype.kind not in "iu" or values.ndim != dimensions:
        raise ValueError(f"the values are {values.ndim} dimensions of {values.dtype}")
    if values.dtype.kind == "i" and values.size and values.min() < 0:
        raise ValueError(f"the value {values.min()} is negative")
    return values.astype(np.uint64)
