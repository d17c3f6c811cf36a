"""The HyperLogLog of ``datasketch``: the number of distinct values, in a few hundred bytes.

Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation
algorithm", 2007; Heule, Nunkesser and Hall, "HyperLogLog in Practice", 2013.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

import numpy as np

from ._hashfunc import sha1_hash32, sha1_hash64

_H = TypeVar("_H", bound="HyperLogLog")

#: Correction constants for precisions below 7.
_ALPHAS = {4: 0.673, 5: 0.697, 6: 0.709}


class HyperLogLog:
    """Counts distinct values with ``2 ** p`` registers, p from 4 to 16. The relative error is about 1.04 / 2 ** (p / 2).

    ``reg`` are the registers of another one. ``hashfunc`` takes what :meth:`update` gets and returns a whole number of
    32 bits.

    >>> from lookalike.compat.datasketch import HyperLogLog
    >>> counter = HyperLogLog(p=10)
    >>> for word in "the ferry leaves at seven and the ferry leaves at nine".split():
    ...     counter.update(word.encode())
    >>> round(counter.count())
    7
    """

    __slots__ = ("alpha", "hashfunc", "m", "max_rank", "p", "reg")

    _hash_range_bit = 32
    _hash_range_byte = 4
    _default_hash: Callable[[Any], int] = staticmethod(sha1_hash32)

    def __init__(
        self,
        p: int = 8,
        reg: Optional[np.ndarray] = None,
        hashfunc: Optional[Callable[[Any], int]] = None,
        hashobj: Any = None,
    ) -> None:
        if reg is None:
            self.p, self.m = p, 1 << p
        else:
            if not isinstance(reg, np.ndarray):
                raise ValueError("The imported register must be a numpy.ndarray.")
            self.m = reg.size
            self.p = self.m.bit_length() - 1
            if 1 << self.p != self.m:
                raise ValueError(f"The imported register has incorrect size. Expect a power of 2, got {self.m}")
        if not 4 <= self.p <= 16:
            raise ValueError(f"p={self.p} should be in range [4 : 16]")
        self.reg = np.zeros(self.m, dtype=np.int8) if reg is None else reg
        if hashfunc is not None and not callable(hashfunc):
            raise ValueError("The hashfunc must be a callable.")
        if hashobj is not None:
            warnings.warn("hashobj is deprecated, use hashfunc instead.", DeprecationWarning, stacklevel=2)
        self.hashfunc = self._default_hash if hashfunc is None else hashfunc
        self.alpha = _ALPHAS.get(self.p, 0.7213 / (1.0 + 1.079 / self.m))
        self.max_rank = self._hash_range_bit - self.p

    def update(self, b: Any) -> None:
        """Adds a value: bytes, or what ``hashfunc`` takes."""
        hashed = self.hashfunc(b)
        register = hashed & (self.m - 1)
        self.reg[register] = max(self.reg[register], self._get_rank(hashed >> self.p))

    def count(self) -> float:
        """Estimates the number of distinct values."""
        estimate = self._raw_estimate()
        small = 2.5 * self.m
        if abs(estimate - small) / small < 0.15:
            warnings.warn(
                "Warning: estimate is close to error correction threshold. "
                "Output may not satisfy HyperLogLog accuracy guarantee.",
                stacklevel=2,
            )
        if estimate <= small:
            return self._linearcounting(self.m - int(np.count_nonzero(self.reg)))
        if estimate <= (1.0 / 30.0) * (1 << 32):
            return estimate
        # Values collide in 32 bits.
        return float(-(1 << 32) * np.log(1.0 - estimate / (1 << 32)))

    def merge(self, other: "HyperLogLog") -> None:
        """Adds all values that were added to the other."""
        if self.m != other.m:
            raise ValueError(f"Cannot merge HyperLogLog with different precisions: {self.p} and {other.p}")
        self.reg = np.maximum(self.reg, other.reg)

    def digest(self) -> np.ndarray:
        """Returns a copy of the registers."""
        return self.reg.copy()

    def copy(self: _H) -> _H:
        """Returns a copy."""
        return self.__class__(reg=self.digest(), hashfunc=self.hashfunc)

    def is_empty(self) -> bool:
        """Returns True if nothing was added."""
        return not np.any(self.reg)

    def clear(self) -> None:
        """Removes everything that was added."""
        self.reg = np.zeros(self.m, dtype=np.int8)

    @classmethod
    def union(cls: type[_H], *hyperloglogs: "HyperLogLog") -> _H:
        """Returns the union of two or more."""
        if len(hyperloglogs) < 2:
            raise ValueError(f"Cannot union less than 2 HyperLogLog sketches, got {len(hyperloglogs)}")
        first = hyperloglogs[0]
        if any(one.m != first.m for one in hyperloglogs):
            raise ValueError("Cannot union HyperLogLog sketches with different precisions")
        return cls(reg=np.maximum.reduce([one.reg for one in hyperloglogs]), hashfunc=first.hashfunc)

    def bytesize(self) -> int:
        """Returns the number of bytes that :meth:`serialize` writes."""
        return 1 + self.m

    def serialize(self, buf: Any) -> None:
        """Writes the precision and the registers to the start of a buffer."""
        if len(buf) < self.bytesize():
            raise ValueError(
                "The buffer does not have enough space for holding this HyperLogLog: it has "
                f"{len(buf)} bytes, and {self.bytesize()} are needed"
            )
        buf[: self.bytesize()] = bytes([self.p]) + self.reg.astype(np.uint8).tobytes()

    @classmethod
    def deserialize(cls: type[_H], buf: Any) -> _H:
        """Reads the bytes that :meth:`serialize` wrote."""
        made = cls.__new__(cls)
        made.__setstate__(buf)
        return made

    def _raw_estimate(self) -> float:
        return float(self.alpha * float(self.m**2) / np.sum(2.0 ** (-self.reg)))

    def _linearcounting(self, num_zero: int) -> float:
        return float(self.m * np.log(self.m / float(num_zero)))

    def _get_rank(self, bits: int) -> int:
        rank = self.max_rank - int(bits).bit_length() + 1
        if rank <= 0:
            raise ValueError(f"Hash value overflow, maximum size is {self.max_rank} bits")
        return rank

    def __getstate__(self) -> bytearray:
        state = bytearray(self.bytesize())
        self.serialize(state)
        return state

    def __setstate__(self, state: Any) -> None:
        view = memoryview(state)
        registers = np.frombuffer(view, dtype=np.uint8, count=1 << view[0], offset=1)
        self.__init__(reg=registers.astype(np.int8))  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.reg)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HyperLogLog) and type(self) is type(other) and np.array_equal(self.reg, other.reg)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.m} registers>"


class HyperLogLogPlusPlus(HyperLogLog):
    """The same with hashes of 64 bits and a correction of small numbers; ``p`` is from 4 to 16.

    >>> from lookalike.compat.datasketch import HyperLogLogPlusPlus
    >>> counter = HyperLogLogPlusPlus(p=10)
    >>> counter.update(b"ferry")
    >>> counter.update(b"ferry")
    >>> round(counter.count())
    1
    """

    __slots__ = ()

    _hash_range_bit = 64
    _hash_range_byte = 8
    _default_hash: Callable[[Any], int] = staticmethod(sha1_hash64)

    def count(self) -> float:
        """Estimates the number of distinct values."""
        thresholds, estimates, biases = _bias_tables()
        zeros = self.m - int(np.count_nonzero(self.reg))
        if zeros:
            linear = self._linearcounting(zeros)
            if linear <= thresholds[self.p - 4]:
                return linear
        estimate = self._raw_estimate()
        if estimate > 5 * self.m:
            return estimate
        nearest = np.argsort((estimate - estimates[self.p - 4]) ** 2)[:6]
        return float(estimate - np.mean(biases[self.p - 4][nearest]))


@lru_cache(maxsize=1)
def _bias_tables() -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Returns the measured thresholds, raw estimates and biases of Heule et al., by precision from 4."""
    with np.load(Path(__file__).with_name("hyperloglog_bias.npz")) as tables:
        lengths = tables["lengths"].astype(int)
        ends = np.cumsum(lengths)[:-1]
        return tables["thresholds"], np.split(tables["estimates"], ends), np.split(tables["biases"], ends)
