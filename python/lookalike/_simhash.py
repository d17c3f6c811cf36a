"""The classes of the package ``simhash``."""

from __future__ import annotations

import hashlib
import numbers
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Callable, Iterator, Union

import numpy as np

from . import _engine
from ._data import few_texts_of
from ._recipe import Recipe

_LETTERS = r"[\w\u4e00-\u9fcc]+"


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


class Simhash:
    """A fingerprint of ``f`` bits, equal to that of ``simhash.Simhash``.

    ``value`` is a text, a number, another Simhash, a list of tokens, a list of tokens with weights, or a
    dictionary from token to weight.

    >>> from lookalike.compat.simhash import Simhash
    >>> a, b = Simhash("How are you? I am fine."), Simhash("How are u? I am fine.")
    >>> a.distance(b)
    12
    """

    large_weight_cutoff = 50
    batch_size = 200

    def __init__(
        self,
        value: Any,
        f: int = 64,
        reg: Union[str, "re.Pattern[str]"] = _LETTERS,
        hashfunc: Callable[[bytes], Union[bytes, int]] = _md5,
        log: Any = None,
    ) -> None:
        if not isinstance(f, numbers.Integral) or f < 8 or f % 8:
            raise ValueError(f"f must be a multiple of 8, got {f!r}")
        self.f: int = f
        self.f_bytes: int = f // 8
        self.reg: Union[str, "re.Pattern[str]"] = reg
        self.hashfunc: Callable[[bytes], Union[bytes, int]] = hashfunc
        self.log = log
        self.value: int
        if isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Iterable):
            self.build_by_features(value)
        elif isinstance(value, numbers.Integral):
            self.value = int(value)
        else:
            raise TypeError(f"Bad parameter with type {type(value)}")

    def build_by_text(self, content: str) -> None:
        """Sets the value to the fingerprint of a text."""
        own = type(self)
        changed = own._tokenize is not Simhash._tokenize or own._slide is not Simhash._slide
        changed = changed or own.build_by_features is not Simhash.build_by_features
        if not changed and self.hashfunc is _md5 and self.reg == _LETTERS and self.f <= 128:
            words, missing = _engine.simhash(few_texts_of([content]), _recipe(self.f), 1)
            if not bool(missing[0]):
                self.value = sum(int(word) << (64 * at) for at, word in enumerate(words[0]))
                return
        counts: dict[str, int] = defaultdict(int)
        for token in self._tokenize(content):
            counts[token] += 1
        self.build_by_features({token: counts[token] for token in sorted(counts)})

    def _slide(self, content: str, width: int = 4) -> list[str]:
        return [content[start : start + width] for start in range(max(len(content) - width + 1, 1))]

    def _tokenize(self, content: str) -> list[str]:
        return self._slide("".join(re.findall(self.reg, content.lower())))

    def build_by_features(self, features: Any) -> None:
        """Sets the value to the fingerprint of tokens, with or without weights."""
        plain = self.hashfunc is _md5 and self.large_weight_cutoff >= 0 and self.f <= 128
        if plain and type(self)._bits is Simhash._bits:
            made = _engine.simhash_of_tokens(features, self.f)
            if made is not None:
                self.value = made
                return
        hashfunc = self.hashfunc
        if type(features) is list and all(type(one) is str for one in features):
            plain_values = [hashfunc(one.encode("utf-8")) for one in features]
            self._set_votes(plain_values, [1] * len(plain_values), len(plain_values))
            return
        values: list[Union[bytes, int]] = []
        weights: list[Any] = []
        weight, total = 1, 0
        for feature in features.items() if isinstance(features, dict) else features:
            if not isinstance(feature, str):
                feature, weight = feature
            total += weight
            # In simhash, a whole weight up to the cutoff repeats the hash; one below 1 removes it.
            repeats = isinstance(weight, int) and weight <= self.large_weight_cutoff
            weights.append(max(weight, 0) if repeats else weight)
            values.append(hashfunc(feature.encode("utf-8")))
        self._set_votes(values, weights, total)

    def _set_votes(self, values: list[Union[bytes, int]], weights: list[Any], total: Any) -> None:
        """Sets the value to the bits that more than half of the weights vote for, by the hashes of the tokens."""
        width = self.f_bytes
        hashes = [
            one[-width:] if type(one) is bytes and len(one) >= width else self._last_bits(one) for one in values
        ]
        votes = _weighted_sum(self._bits(hashes), weights)
        self.value = int.from_bytes(np.packbits(votes > total / 2).tobytes(), "big")

    def _last_bits(self, hashed: Union[bytes, int]) -> bytes:
        """Returns the last ``f`` bits of the hash of a token."""
        if isinstance(hashed, numbers.Integral):
            return (int(hashed) & ((1 << self.f) - 1)).to_bytes(self.f_bytes, "big")
        if len(hashed) < self.f_bytes:  # type: ignore[arg-type]
            raise ValueError(
                f"the hash of a token has {8 * len(hashed)} bits, but f is {self.f}: "  # type: ignore[arg-type]
                "give a smaller f or a longer hash"
            )
        return bytes(hashed[-self.f_bytes :])  # type: ignore[index]

    def _bits(self, hashes: list[bytes]) -> np.ndarray:
        """Returns the bits of each hash as a row of zeros and ones."""
        rows = np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(len(hashes), self.f_bytes)
        return np.unpackbits(rows, axis=1)

    def distance(self, another: "Simhash") -> int:
        """Returns the number of bits in which two fingerprints differ."""
        if self.f != another.f:
            raise ValueError(f"fingerprints of {self.f} and {another.f} bits cannot be compared")
        return bin((self.value ^ another.value) & ((1 << self.f) - 1)).count("1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simhash) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"<Simhash {self.value:0{self.f // 4}x}>"


def _weighted_sum(bits: np.ndarray, weights: list[Any]) -> np.ndarray:
    """Returns the sum of the rows of bits, each times its weight."""
    if all(type(weight) is int for weight in weights):
        if all(weight == 1 for weight in weights):
            return np.asarray(bits.sum(axis=0, dtype=np.int64))
        return np.asarray(np.array(weights, dtype=np.float64) @ bits.astype(np.float64))
    # Rows are added one after another, because sums of fractions depend on the order.
    return np.asarray(np.sum(bits * np.asarray(weights, dtype=np.float64)[:, None], axis=0))


_RECIPES: dict[int, Recipe] = {}


def _recipe(bits: int) -> Recipe:
    if bits not in _RECIPES:
        changes = {} if bits == 64 else {"simhash": {"bits": bits}}
        _RECIPES[bits] = Recipe("1e0ng", **changes)
    return _RECIPES[bits]


class SimhashIndex:
    """An index that finds fingerprints within ``k`` bits, as in ``simhash.SimhashIndex``.

    >>> from lookalike.compat.simhash import Simhash, SimhashIndex
    >>> index = SimhashIndex([("1", Simhash(0b1010))], k=3)
    >>> index.get_near_dups(Simhash(0b1000))
    ['1']
    """

    def __init__(
        self, objs: Iterable[tuple[str, Simhash]], f: int = 64, k: int = 2, log: Any = None
    ) -> None:
        self.f = f
        self.k = k
        self.log = log
        #: For each block of bits the fingerprints that have it, in hexadecimal digits, with their ids.
        self.bucket: dict[str, set[str]] = {}
        for obj_id, simhash in objs:
            self.add(obj_id, simhash)

    def _check(self, simhash: Simhash) -> None:
        if simhash.f != self.f:
            raise ValueError(f"the fingerprint has {simhash.f} bits, but the index has {self.f}")

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """Returns the distinct ids of all fingerprints within ``k`` bits."""
        self._check(simhash)
        found: dict[str, None] = {}
        for key in self.get_keys(simhash):
            for near in self.bucket.get(key, ()):
                value, obj_id = near.split(",", 1)
                if bin(int(value, 16) ^ simhash.value).count("1") <= self.k:
                    found[obj_id] = None
        return list(found)

    def add(self, obj_id: str, simhash: Simhash) -> None:
        """Adds a fingerprint under an id."""
        self._check(simhash)
        for key in self.get_keys(simhash):
            self.bucket.setdefault(key, set()).add(f"{simhash.value:x},{obj_id}")

    def delete(self, obj_id: str, simhash: Simhash) -> None:
        """Removes a fingerprint of an id, if present."""
        self._check(simhash)
        for key in self.get_keys(simhash):
            bucket = self.bucket.get(key, set())
            bucket.discard(f"{simhash.value:x},{obj_id}")
            if not bucket:
                self.bucket.pop(key, None)

    @property
    def offsets(self) -> list[int]:
        """The first bit of each block."""
        return [self.f // (self.k + 1) * block for block in range(self.k + 1)]

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """Yields the key of each table: the block of bits and the number of the table."""
        offsets = [*self.offsets, self.f]
        for table, (start, end) in enumerate(zip(offsets, offsets[1:])):
            yield f"{simhash.value >> start & ((1 << (end - start)) - 1):x}:{table:x}"

    def bucket_size(self) -> int:
        """Returns the number of buckets, all of which are non-empty."""
        return len(self.bucket)
