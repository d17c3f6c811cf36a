"""The classes of ``rensa`` 0.5, with its values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, Optional, TypeVar, Union

from . import _engine

_Own = TypeVar("_Own", bound="_TokenMinHash")
_Kept = TypeVar("_Kept", bound="_TokenMinHash")

#: Version of the values of ``rensa`` that the classes have: that of rensa 0.5.
_VERSION = 2


class _TokenMinHash(_engine.TokenMinHash):
    """What RMinHash and CMinHash share."""

    ALGORITHM_VERSION = _VERSION
    _is_circulant = False

    def __new__(cls: type[_Own], num_perm: int, seed: int) -> _Own:
        return super().__new__(cls, num_perm, seed, cls._is_circulant)

    @classmethod
    def digests_from_token_sets(cls, token_sets: Iterable[Any], num_perm: int, seed: int) -> list[list[int]]:
        """Returns the digest of each list of tokens."""
        return [one.digest() for one in cls.from_token_sets(token_sets, num_perm, seed)]

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.num_perm, self.seed, self.slot_values())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} num_perm={self.num_perm} seed={self.seed}>"


def _restored(cls: type[_Own], num_perm: int, seed: int, values: list[int]) -> _Own:
    one = cls(num_perm, seed)
    one.set_slot_values(values)
    return one


class RMinHash(_TokenMinHash):
    """A MinHash of tokens, with the calls and the values of ``rensa.RMinHash``.

    ``update`` takes an iterable of strings or bytes. The values differ from those of :class:`MinHash`, and the two do
    not compare.

    >>> import lookalike as la
    >>> a, b = la.RMinHash(128, 42), la.RMinHash(128, 42)
    >>> a.update("the ferry leaves at seven".split())
    >>> b.update("the ferry leaves at eight".split())
    >>> a.jaccard(b)
    0.6328125
    """

    @staticmethod
    def hash_token_sets(token_sets: Iterable[Any]) -> list[list[int]]:
        """Returns the hashes of the tokens of each list."""
        return _engine.hash_token_sets(token_sets)


class CMinHash(_TokenMinHash):
    """A MinHash by two permutations, with the calls and the values of ``rensa.CMinHash``.

    >>> import lookalike as la
    >>> minhash = la.CMinHash(num_perm=128, seed=42)
    >>> minhash.update(["the", "ferry"])
    >>> len(minhash.digest())
    128
    """

    _is_circulant = True

    def digest_u64(self) -> list[int]:
        """Returns the slots with all their 64 bits."""
        return self.slot_values()

    @classmethod
    def digests64_from_token_sets(cls, token_sets: Iterable[Any], num_perm: int, seed: int) -> list[list[int]]:
        """Returns the digest of 64 bits of each list of tokens."""
        return [one.slot_values() for one in cls.from_token_sets(token_sets, num_perm, seed)]

    @classmethod
    def digests64_from_token_hash_sets(cls, token_hash_sets: Iterable[Any], num_perm: int, seed: int) -> list[list[int]]:
        """Returns the digest of 64 bits of each list of hashes of tokens."""
        digests = []
        for hashes in token_hash_sets:
            one = cls(num_perm, seed)
            one.add_token_hashes(list(hashes))
            digests.append(one.slot_values())
        return digests


def _checked_threshold(threshold: float) -> float:
    if not math.isfinite(threshold) or not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be a finite value between 0.0 and 1.0, got {threshold}")
    return threshold


class RMinHashLSH(_engine.NumberLsh):
    """An index of RMinHashes under whole numbers, as ``rensa.RMinHashLSH``.

    >>> import lookalike as la
    >>> lsh = la.RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
    >>> a, b = la.RMinHash.from_token_sets([["the", "ferry"], ["a", "bridge"]], 128, 42)
    >>> lsh.insert(7, a)
    >>> lsh.query(a), lsh.query(b)
    ([7], [])
    """

    def __new__(cls, threshold: float, num_perm: int, num_bands: int) -> "RMinHashLSH":
        if num_perm <= 0:
            raise ValueError("num_perm must be greater than 0")
        if num_bands <= 0:
            raise ValueError("num_bands must be greater than 0")
        if num_perm % num_bands:
            raise ValueError(f"num_perm ({num_perm}) must be divisible by num_bands ({num_bands})")
        made: RMinHashLSH = super().__new__(cls, num_perm, num_bands)  # type: ignore[assignment]
        made._settings = (_checked_threshold(threshold), num_perm, num_bands)
        return made

    _settings: tuple[float, int, int]

    def insert_pairs(self, entries: Iterable[tuple[int, RMinHash]]) -> None:
        """Inserts pairs of a key and a MinHash."""
        for key, minhash in entries:
            self.insert(key, minhash)

    def insert_many(self, minhashes: Iterable[RMinHash], start_key: int = 0) -> None:
        """Inserts MinHashes under consecutive keys."""
        for key, minhash in enumerate(minhashes, start_key):
            self.insert(key, minhash)

    def query_all(self, minhashes: Iterable[RMinHash]) -> list[list[int]]:
        """Returns the answers to many queries."""
        return [self.query(minhash) for minhash in minhashes]

    def query_duplicate_flags(self, minhashes: Iterable[RMinHash]) -> list[bool]:
        """Returns for each query True if it finds more than one key."""
        return [len(self.query(minhash)) > 1 for minhash in minhashes]

    def is_similar(self, minhash1: RMinHash, minhash2: RMinHash) -> bool:
        """Returns True if the estimated similarity of two MinHashes reaches the threshold."""
        return minhash1.jaccard(minhash2) >= self._settings[0]

    def get_num_perm(self) -> int:
        """Returns the number of slots of a MinHash."""
        return self._settings[1]

    def get_num_bands(self) -> int:
        """Returns the number of bands."""
        return self._settings[2]

    def __reduce__(self) -> Any:
        return _restored_lsh, (type(self), self._settings, self.entries())


def _restored_lsh(cls: type[RMinHashLSH], settings: tuple[float, int, int], entries: Any) -> RMinHashLSH:
    lsh = cls(*settings)
    lsh.restore(entries)
    return lsh


class _Deduplicator(Generic[_Kept]):
    """What the deduplicators share: MinHashes under strings, of which no two are similar."""

    _kind: type[_Kept]

    def __init__(self, threshold: float, num_perm: Optional[int], seed: int) -> None:
        self._threshold = _checked_threshold(threshold)
        self._num_perm = num_perm
        self._seed = seed
        self._kept: dict[str, _Kept] = {}

    def _as_minhash(self, value: Any) -> _Kept:
        if not isinstance(value, self._kind):
            if self._num_perm is None:
                raise ValueError("num_perm is not known yet: give it, or begin with a MinHash")
            signed: _Kept = self._kind(self._num_perm, self._seed)
            signed.update(value)
        else:
            signed = value
        if signed.seed != self._seed:
            raise ValueError(f"seed mismatch: deduplicator expects {self._seed}, received {signed.seed}")
        if self._num_perm not in (None, signed.num_perm):
            raise ValueError(f"num_perm mismatch: deduplicator expects {self._num_perm}, received {signed.num_perm}")
        return signed

    def _candidates(self, minhash: _Kept) -> Iterable[str]:
        return self._kept

    def add(self, key: str, minhash: Union[_Kept, Iterable[Any]]) -> bool:
        """Adds a MinHash unless a similar one is there, and returns True if it was added."""
        made = self._as_minhash(minhash)
        if self.is_duplicate(key, made):
            return False
        self._num_perm = made.num_perm
        self._kept[key] = made
        return True

    def is_duplicate(self, key: str, minhash: Union[_Kept, Iterable[Any]]) -> bool:
        """Returns True if the key or a similar MinHash is there."""
        return key in self._kept or bool(self.get_duplicates(minhash))

    def get_duplicates(self, minhash: Union[_Kept, Iterable[Any]]) -> list[str]:
        """Returns the keys of the similar MinHashes."""
        made = self._as_minhash(minhash)
        return [key for key in self._candidates(made) if made.jaccard(self._kept[key]) >= self._threshold]

    def add_pairs(self, entries: Iterable[tuple[str, Any]]) -> list[bool]:
        """Adds pairs of a key and a MinHash or tokens."""
        return [self.add(key, value) for key, value in entries]

    def is_duplicate_pairs(self, entries: Iterable[tuple[str, Any]]) -> list[bool]:
        """Returns `is_duplicate` of pairs of a key and a MinHash or tokens."""
        return [self.is_duplicate(key, value) for key, value in entries]

    def get_duplicate_sets(self, minhashes: Iterable[Any]) -> list[list[str]]:
        """Returns `get_duplicates` of MinHashes or tokens."""
        return [self.get_duplicates(value) for value in minhashes]

    def remove(self, key: str) -> bool:
        """Removes a key, and returns True if it was there."""
        return self._kept.pop(key, None) is not None

    def clear(self) -> None:
        """Removes all keys."""
        self._kept.clear()

    def len(self) -> int:
        """Returns the number of keys."""
        return len(self._kept)

    __len__ = len

    def is_empty(self) -> bool:
        """Returns True if there is no key."""
        return not self._kept


class CMinHashDeduplicator(_Deduplicator[CMinHash]):
    """Keeps one of similar CMinHashes, as ``rensa.CMinHashDeduplicator``. It compares each with all that are kept.

    >>> import lookalike as la
    >>> kept = la.CMinHashDeduplicator(threshold=0.8, num_perm=128)
    >>> kept.add("a", ["the", "ferry"]), kept.add("b", ["the", "ferry"])
    (True, False)
    """

    _kind = CMinHash

    def __init__(self, threshold: float, num_perm: Optional[int] = None, seed: int = 42) -> None:
        super().__init__(threshold, num_perm, seed)


class RMinHashDeduplicator(_Deduplicator[RMinHash]):
    """Keeps one of similar RMinHashes, as ``rensa.RMinHashDeduplicator``.

    With ``use_lsh`` it compares a MinHash only with those that share a band.

    >>> import lookalike as la
    >>> kept = la.RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    >>> kept.add_pairs([("a", ["the", "ferry"]), ("b", ["the", "ferry"]), ("c", ["a", "bridge"])])
    [True, False, True]
    """

    _kind = RMinHash

    def __init__(
        self, threshold: float, num_perm: int, use_lsh: bool, num_bands: Optional[int] = None, seed: int = 42
    ) -> None:
        super().__init__(threshold, num_perm, seed)
        self._bands = (num_bands or _default_bands(threshold, num_perm)) if use_lsh else None
        self.clear()

    def clear(self) -> None:
        """Removes all keys."""
        super().clear()
        self._numbers: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._next = 0
        self._lsh = None
        if self._bands is not None and self._num_perm is not None:
            self._lsh = RMinHashLSH(self._threshold, self._num_perm, self._bands)

    def _candidates(self, minhash: RMinHash) -> Iterable[str]:
        if self._lsh is None:
            return self._kept
        return [self._keys[number] for number in self._lsh.query(minhash)]

    def add(self, key: str, minhash: Union[RMinHash, Iterable[Any]]) -> bool:
        """Adds a MinHash unless a similar one is there, and returns True if it was added."""
        added = super().add(key, minhash)
        if added and self._lsh is not None:
            self._lsh.insert(self._next, self._kept[key])
            self._numbers[key], self._keys[self._next] = self._next, key
            self._next += 1
        return added

    def remove(self, key: str) -> bool:
        """Removes a key, and returns True if it was there."""
        removed = super().remove(key)
        if removed and self._lsh is not None:
            number = self._numbers.pop(key)
            del self._keys[number]
            self._lsh.remove(number)
        return removed


def _default_bands(threshold: float, num_perm: int) -> int:
    """Returns the bands that rensa chooses: the largest divisor of the slots up to a number for the threshold."""
    least = ((0.9, 4), (0.8, 8), (0.7, 16), (0.5, 32), (0.0, max(num_perm // 2, 1)))
    most = next(bands for bound, bands in least if threshold >= bound)
    return next(bands for bands in range(min(most, num_perm), 0, -1) if num_perm % bands == 0)
