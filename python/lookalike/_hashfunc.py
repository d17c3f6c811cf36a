"""Helpers of the MinHash that run in Python."""

from __future__ import annotations

import hashlib
from typing import Any, Iterable, Iterator

import numpy as np

from ._arguments import array


def sha1_hash32(data: bytes) -> int:
    """Returns the first four bytes of SHA-1, little-endian.

    >>> from lookalike.compat.datasketch import sha1_hash32
    >>> sha1_hash32(b"ferry")
    4147464362
    """
    return int.from_bytes(hashlib.sha1(data).digest()[:4], "little")


def sha1_hash64(data: bytes) -> int:
    """Returns the first eight bytes of SHA-1, little-endian.

    >>> from lookalike.compat.datasketch import sha1_hash64
    >>> sha1_hash64(b"ferry")
    3274053668377544874
    """
    return int.from_bytes(hashlib.sha1(data).digest()[:8], "little")


def each(empty: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Yields a copy of an empty MinHash for each batch, updated with its values."""
    for values in batches:
        one = empty.copy()
        one.update_batch(values)
        yield one


def as_wide(values: Any, dimensions: int) -> np.ndarray:
    """Returns whole numbers from 0 as uint64. Raises ValueError for other values."""
    wide = array("values", values)
    if wide.ndim != dimensions:
        raise ValueError(f"values has {wide.ndim} dimensions, but must have {dimensions}")
    return wide.astype(np.uint64)
