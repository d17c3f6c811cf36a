"""A Bloom filter of 64-bit keys, which the tasks of a run build and hold.

A filter answers `True` for every key that it was built from, and for few others: for less than 1 % with the ten bits a
key that :meth:`FilterLayout.for_keys` chooses, for more where the largest size is reached. It consists of slices, so
that each slice is built by one task and no task sees all keys.

Source: Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970; two hashes make all of them as in
Kirsch and Mitzenmacher, "Less hashing, same performance", 2006.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Iterable, Iterator

import numpy as np

#: Bits a key that a filter aims at.
_BITS_A_KEY = 10

#: Bits that are set for a key.
_HASHES = 5

#: Binary logarithm of the largest number of bits of a slice: 1 MiB.
_SLICE_BITS = 23

_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class FilterLayout:
    """The size of a filter: ``1 << slices`` slices of ``1 << bits`` bits."""

    slices: int
    bits: int

    @classmethod
    def for_keys(cls, keys: int, max_bytes: int) -> "FilterLayout":
        """Returns the layout for a number of keys, with at most ``max_bytes`` bytes."""
        wanted = max(_BITS_A_KEY * keys, 1 << 10)
        total = min((wanted - 1).bit_length(), (8 * max_bytes).bit_length() - 1)
        bits = min(total, _SLICE_BITS)
        return cls(total - bits, bits)

    def slice_numbers(self, keys: Any) -> Any:
        """Returns the slice of each key."""
        if self.slices == 0:
            return np.zeros(len(keys), np.int64)
        return (keys.view(np.uint64) >> np.uint64(64 - self.slices)).astype(np.int64)

    def bit_numbers(self, keys: Any) -> Iterator[Any]:
        """Yields, for each hash, the bit of each key within its slice."""
        mixed = keys.view(np.uint64) * _MIXER
        first, step = mixed >> np.uint64(32), (mixed & np.uint64(0xFFFFFFFF)) | np.uint64(1)
        mask = np.uint64((1 << self.bits) - 1)
        for number in range(_HASHES):
            yield ((first + np.uint64(number) * step) & mask).astype(np.int64)

    def build_slice(self, keys: Any) -> bytes:
        """Returns the compressed bits of the slice to which all the keys belong."""
        is_set = np.zeros(1 << self.bits, bool)
        for bits in self.bit_numbers(keys):
            is_set[bits] = True
        return zlib.compress(np.packbits(is_set, bitorder="little").tobytes(), 1)


class KeyFilter:
    """A filter whose slices are in memory; it takes at most one bit more than ``max_bytes`` of its layout."""

    def __init__(self, layout: FilterLayout, slices: Iterable[tuple[int, bytes]]) -> None:
        self.layout = layout
        self.slices = {number: bytes(block) for number, block in slices}
        self._bits: Any = None

    def __getstate__(self) -> Any:
        # Slices travel compressed.
        return self.layout, self.slices

    def __setstate__(self, state: Any) -> None:
        self.layout, self.slices = state
        self._bits = None

    def has(self, keys: Any) -> Any:
        """Returns True for each key, an int64, that may be one of the filter, and False for others."""
        layout = self.layout
        if self._bits is None:
            self._bits = np.zeros((1 << layout.slices, 1 << max(layout.bits - 3, 0)), np.uint8)
            for number, block in self.slices.items():
                self._bits[number] = np.frombuffer(zlib.decompress(block), np.uint8)
        keys = np.ascontiguousarray(keys, np.int64)
        of_slice = layout.slice_numbers(keys)
        found = np.ones(len(keys), bool)
        for bits in layout.bit_numbers(keys):
            found &= (self._bits[of_slice, bits >> 3] >> (bits & 7).astype(np.uint8)) & 1 == 1
        return found
