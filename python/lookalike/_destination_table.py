"""A static table from 64-bit keys to 16-bit destinations, which the tasks of a run build and hold.

The keys are nodes with a link, and the destination of a node is a hash of its component. A shuffle by destination brings
each component together, so that a text travels once and a task needs no join to know where to.

The table answers with the destination of every key that it was built from. It gives some destination to a few others:
with groups of four keys, to about 1.6 % if checks have 8 bits, and to less than 0.01 % if they have 16. The high bits
of a hash of the key are the number of its group, and the low ones are its check:

    sizes         uint32   number of entries of each group; offsets in memory
    checks        uint8 or uint16, in the order of groups
    destinations  uint16, in the same order
    exceptions    int64 and uint16: keys and destinations

Keys with the same group and check have one entry. Those with another destination than that of the entry are
exceptions, less than 1 % of all. So no construction fails, whatever the keys are. A key takes 4 bytes with a check of
8 bits and 5 with one of 16.

The table consists of slices of some 1 MiB, so that each slice is built by one task and no task sees all keys. Nothing
stores it, so its layout can change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Optional

import numpy as np

#: Keys of a group, on average.
_GROUP = 4

#: Groups of a slice.
_SLICE_GROUPS = 1 << 16

#: Bytes of a key in memory, by the bits of its check.
_KEY_BYTES = {16: 5, 8: 4}


@dataclass(frozen=True)
class DestinationLayout:
    """The size of a table: ``slices`` slices of ``groups`` groups, with ``check_bits`` bits of check for each key."""

    slices: int
    groups: int
    check_bits: int

    @classmethod
    def for_keys(cls, keys: int, max_bytes: int) -> Optional["DestinationLayout"]:
        """Returns the layout for a number of keys; None if they take more than ``max_bytes`` bytes."""
        slices = max(1, -(-keys // (_GROUP * _SLICE_GROUPS)))
        groups = max(1, -(-keys // (_GROUP * slices)))
        for check_bits, size in _KEY_BYTES.items():
            if size * keys <= max_bytes:
                return cls(slices, groups, check_bits)
        return None

    @property
    def check_type(self) -> Any:
        return np.dtype(f"<u{self.check_bits // 8}")

    def group_numbers(self, hashes: Any) -> Any:
        """Returns the group of each hash in the whole table."""
        groups = np.uint64(self.slices * self.groups)
        return ((hashes >> np.uint64(32)) * groups >> np.uint64(32)).astype(np.int64)

    def checks(self, hashes: Any) -> Any:
        """Returns the check of each hash."""
        return (hashes & np.uint64((1 << self.check_bits) - 1)).astype(self.check_type)

    def slice_numbers(self, keys: Any) -> Any:
        """Returns the slice of each key."""
        return self.group_numbers(mix_keys(keys)) // self.groups

    def build_slice(self, keys: Any, destinations: Any) -> bytes:
        """Returns the slice to which all the keys belong, with their destinations."""
        hashes = mix_keys(keys)
        groups, checks = self.group_numbers(hashes) % self.groups, self.checks(hashes)
        # The destination is part of the order, so that a slice does not depend on the order in which keys arrive.
        order = np.lexsort((keys, destinations, checks, groups))
        keys, destinations, checks, groups = (it[order] for it in (keys, destinations, checks, groups))
        is_entry = np.ones(len(keys), bool)
        is_entry[1:] = (groups[1:] != groups[:-1]) | (checks[1:] != checks[:-1])
        of_entry = destinations[np.maximum.accumulate(np.where(is_entry, np.arange(len(keys)), 0))]
        is_exception = destinations != of_entry
        sizes = np.bincount(groups[is_entry], minlength=self.groups)
        columns = [
            sizes.astype("<u4"), checks[is_entry], destinations[is_entry].astype("<u2"),
            keys[is_exception].astype("<i8"), destinations[is_exception].astype("<u2"),
        ]
        return b"".join(column.tobytes() for column in columns)

    def read_slice(self, block: bytes) -> tuple[Any, ...]:
        """Returns sizes, checks, destinations, and keys and destinations of exceptions of a slice."""
        sizes = np.frombuffer(block, "<u4", self.groups)
        entries, at = int(sizes.sum()), sizes.nbytes
        exceptions = (len(block) - at - entries * (self.check_type.itemsize + 2)) // 10
        columns = [sizes]
        for kind, count in (
            (self.check_type, entries), (np.dtype("<u2"), entries), (np.dtype("<i8"), exceptions),
            (np.dtype("<u2"), exceptions),
        ):
            columns.append(np.frombuffer(block, kind, count, at))
            at += columns[-1].nbytes
        return tuple(columns)


class DestinationTable:
    """A table whose slices are in memory."""

    def __init__(self, layout: DestinationLayout, slices: Iterable[tuple[int, bytes]]) -> None:
        self.layout = layout
        sizes = np.zeros((layout.slices, layout.groups), np.uint32)
        columns: list[list[Any]] = [[np.zeros(0, kind)] for kind in (layout.check_type, "<u2", "<i8", "<u2")]
        for number, block in sorted(slices):
            sizes[number], *others = layout.read_slice(block)
            for column, other in zip(columns, others):
                column.append(other)
        self._checks, self._destinations, keys, destinations = map(np.concatenate, columns)
        self._offsets = np.append(np.uint32(0), np.cumsum(sizes, dtype=np.uint32))
        order = np.argsort(keys)
        self._exceptions, self._of_exceptions = keys[order], destinations[order]

    @property
    def nbytes(self) -> int:
        """Bytes of the table in memory."""
        columns = (self._offsets, self._checks, self._destinations, self._exceptions, self._of_exceptions)
        return sum(column.nbytes for column in columns)

    def find(self, keys: Any) -> Any:
        """Returns the destination of each key, an int64; -1 for keys that are not of the table, but for a few."""
        keys = np.ascontiguousarray(keys, np.int64)
        hashes = mix_keys(keys)
        groups, checks = self.layout.group_numbers(hashes), self.layout.checks(hashes)
        found = np.full(len(keys), -1, np.int32)
        rows, at, end = np.arange(len(keys)), self._offsets[groups].astype(np.int64), self._offsets[groups + 1]
        while True:
            is_open = at < end
            rows, at, end = rows[is_open], at[is_open], end[is_open]
            if not len(rows):
                break
            is_equal = self._checks[at] == checks[rows]
            found[rows[is_equal]] = self._destinations[at[is_equal]]
            rows, at, end = rows[~is_equal], at[~is_equal] + 1, end[~is_equal]
        if len(self._exceptions):
            at = np.minimum(np.searchsorted(self._exceptions, keys), len(self._exceptions) - 1)
            is_exception = self._exceptions[at] == keys
            found[is_exception] = self._of_exceptions[at[is_exception]]
        return found

    def destinations(self, keys: Any) -> tuple[Any, Any]:
        """Returns the destination of each key, and True if it may be of the table. Other keys get a hash of the key."""
        found = self.find(keys)
        is_found = found >= 0
        anywhere = (mix_keys(np.ascontiguousarray(keys, np.int64)) >> np.uint64(48)).astype(np.int32)
        return np.where(is_found, found, anywhere), is_found


def mix_keys(keys: Any) -> Any:
    """Returns a hash of 64 bits of each key; source: the finalizer of MurmurHash3, by Appleby."""
    mixed = keys.view(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
