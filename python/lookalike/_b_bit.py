"""The b-bit MinHash of ``datasketch``.

Li and König, "b-Bit Minwise Hashing", WWW 2010.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

#: Code of each scheme in pickles; the legacy scheme has none.
_CODES = {"affine32": 1, "affine64": 2}
_SCHEMES = {code: scheme for scheme, code in _CODES.items()}

#: Seed, b, r and number of values; a negative number says that the code of the scheme follows.
_HEAD = "<qBdi"

#: Bytes of a block of values.
_BLOCK = 8


class bBitMinHash:
    """The lowest ``b`` bits of each value of a MinHash, from 0 to 32.

    ``r`` is the share of all possible values that the set has, if it is known. The pickle has the bytes of
    datasketch's.

    >>> from lookalike.compat.datasketch import MinHash, bBitMinHash
    >>> a, b = MinHash(), MinHash()
    >>> a.update_batch([b"the", b"ferry", b"leaves", b"at", b"seven"])
    >>> b.update_batch([b"the", b"ferry", b"leaves", b"at", b"eight"])
    >>> bBitMinHash(a, b=2).jaccard(bBitMinHash(b, b=2))
    0.7083333333333334
    """

    __slots__ = ("b", "hashvalues", "r", "scheme", "seed")

    b: int
    r: float
    seed: int
    scheme: str
    hashvalues: np.ndarray

    def __init__(self, minhash: Any, b: int = 1, r: float = 0.0) -> None:
        b, r = int(b), float(r)
        if not 0 <= b <= 32:
            raise ValueError(f"b must be an integer in [0, 32], got {b}")
        if r > 1.0:
            raise ValueError(f"r must be a float in [0.0, 1.0], got {r}")
        if minhash.scheme not in (*_CODES, "legacy"):
            raise ValueError(f"scheme must be one of affine32, affine64, legacy, got {minhash.scheme!r}")
        self.b, self.r = b, r
        self.seed, self.scheme = minhash.seed, minhash.scheme
        values = np.asarray(minhash.hashvalues).astype(np.uint64)
        self.hashvalues = (values & np.uint64((1 << b) - 1)).astype(np.uint32)

    def jaccard(self, other: "bBitMinHash") -> float:
        """Estimates the Jaccard index from the share of equal values, without those that are equal by chance."""
        for name, what in (
            ("b", "b values"),
            ("scheme", "permutation schemes"),
            ("seed", "set of permutations"),
        ):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(f"Cannot compare two b-bit MinHashes with different {what}")
        equal = float(np.count_nonzero(self.hashvalues == other.hashvalues)) / float(self.hashvalues.size)
        by_chance, unlike = _chances(self.b, self.r, other.r)
        return (equal - by_chance) / (1 - unlike)

    def bytesize(self) -> int:
        """Returns the number of bytes of the pickled state."""
        _, blocks = self._layout()
        return struct.calcsize(_HEAD) + (self.scheme in _CODES) + _BLOCK * blocks

    def _layout(self) -> tuple[int, int]:
        """Returns the bits of a value in a block, and the number of blocks."""
        # No bits take the place of four, as in datasketch.
        width = next(width for width in (1, 2, 4, 8, 16, 32) if (self.b or 4) <= width)
        return width, -(-self.hashvalues.size // (8 * _BLOCK // width))

    def __getstate__(self) -> bytearray:
        width, blocks = self._layout()
        padded = np.zeros(blocks * (8 * _BLOCK // width), dtype=np.uint64)
        padded[: self.hashvalues.size] = self.hashvalues
        rows = padded.reshape(blocks, -1)
        shifts = np.arange(rows.shape[1] - 1, -1, -1, dtype=np.uint64) * np.uint64(width)
        packed = np.bitwise_or.reduce(rows << shifts, axis=1)
        count = int(self.hashvalues.size)
        if self.scheme in _CODES:
            head = struct.pack(f"{_HEAD}B", self.seed, self.b, self.r, -count, _CODES[self.scheme])
        else:
            head = struct.pack(_HEAD, self.seed, self.b, self.r, count)
        return bytearray(head + packed.astype("<u8").tobytes())

    def __setstate__(self, state: Any) -> None:
        view = memoryview(state)
        self.seed, self.b, self.r, count = struct.unpack_from(_HEAD, view, 0)
        start, self.scheme = struct.calcsize(_HEAD), "legacy"
        if count < 0:
            code = view[start]
            if code not in _SCHEMES:
                raise ValueError(f"Unknown permutation scheme code: {code}")
            self.scheme, start, count = _SCHEMES[code], start + 1, -count
        self.hashvalues = np.zeros(count, dtype=np.uint32)
        width, blocks = self._layout()
        packed = np.frombuffer(view, dtype="<u8", count=blocks, offset=start).astype(np.uint64)
        shifts = np.arange(8 * _BLOCK // width - 1, -1, -1, dtype=np.uint64) * np.uint64(width)
        values = packed[:, None] >> shifts & np.uint64((1 << width) - 1)
        self.hashvalues = values.reshape(-1)[:count].astype(np.uint32)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, bBitMinHash)
            and type(self) is type(other)
            and (self.scheme, self.seed, self.b, self.r) == (other.scheme, other.seed, other.b, other.r)
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<bBitMinHash of {self.hashvalues.size} values of {self.b} bits>"


def _chances(b: int, r1: float, r2: float) -> tuple[float, float]:
    """Returns the constants C1 and C2 of the estimator."""
    a1, a2 = _chance(b, r1), _chance(b, r2)
    if r1 == 0.0 and r2 == 0.0:
        # Their limits for small sets.
        return a1, a2
    share = 1 / (r1 + r2)
    return (a1 * r2 + a2 * r1) * share, (a1 * r1 + a2 * r2) * share


def _chance(b: int, r: float) -> float:
    """Returns the constant A of the estimator, as datasketch computes it."""
    if r == 0.0:
        return 1.0 / (1 << b)
    return float(r * (1 - r) ** (2**b - 1) / (1 - (1 - r) ** (2 * b)))
