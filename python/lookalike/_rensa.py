"""The classes of ``rensa`` 0.5, with its values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, NoReturn, Optional, TypeVar, Union

import numpy as np

from . import _engine

_Own = TypeVar("_Own", bound="_TokenMinHash")
_Kept = TypeVar("_Kept", bound="_TokenMinHash")

#: Version of the values of ``rensa`` that the classes have: that of rensa 0.5.
_VERSION = 2

#: Largest key of an index.
_LARGEST_KEY = 2**64 - 1


def _token_hashes(values: Any) -> list[int]:
    """Returns hashes of tokens from a list or a buffer, after checking that each is a whole number of 64 bits."""
    if not isinstance(values, (list, tuple)) and _is_buffer(values):
        array = np.asarray(values)
        if array.dtype == np.uint64 and array.dtype.isnative and array.ndim == 1:
            return array.tolist()  # type: ignore[no-any-return]
        raise TypeError(f"a token hash must be an unsigned 64-bit integer: the buffer has the type {array.dtype}")
    hashes = list(values)
    for value in hashes:
        if not isinstance(value, int) or not 0 <= value < 2**64:
            raise TypeError(f"a token hash must be an unsigned 64-bit integer: one is {value!r}")
    return hashes


def _row_offsets(values: Any, count: int) -> list[int]:
    """Returns the offsets of rows in a list of so many hashes, after checking them."""
    wanted = "row_offsets must be an unsigned integer buffer without gaps, or a list of whole numbers"
    if not isinstance(values, (list, tuple)) and _is_buffer(values):
        if not memoryview(values).c_contiguous or np.asarray(values).dtype.kind != "u":
            raise ValueError(wanted)
        values = np.asarray(values).tolist()
    offsets = list(values)
    if any(not isinstance(offset, int) or offset < 0 for offset in offsets):
        raise ValueError(wanted)
    if not offsets or offsets[0] != 0 or offsets[-1] != count or sorted(offsets) != offsets:
        raise ValueError(f"row_offsets must start at 0, must not decrease, and end at {count}, the number of token hashes")
    return offsets


def _is_buffer(values: Any) -> bool:
    try:
        memoryview(values)
    except TypeError:
        return False
    return True


def _refuse_rho(name: str, instead: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} is not here, because the rho pipeline of rensa samples the tokens of a text, so that its result depends "
        f"on their order: call {instead}, or la.dedup with the texts"
    )


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

    def __setstate__(self, state: Any) -> NoReturn:
        _refuse_state(type(self).__name__)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} num_perm={self.num_perm} seed={self.seed}>"


def _refuse_state(name: str) -> NoReturn:
    raise ValueError(f"a pickle of rensa.{name} cannot be read: rebuild it from the tokens")


def _restored(cls: type[_Own], num_perm: int, seed: int, values: list[int]) -> _Own:
    one = cls(num_perm, seed)
    one.set_slot_values(values)
    return one


class RMinHashDigestMatrix:
    """The digests of many documents, a row for each, as ``rensa.RMinHashDigestMatrix``.

    ``numpy.asarray`` gives the rows as an array of uint32. The calls ``digest_matrix_from_…`` of :class:`RMinHash` make
    a matrix.

    >>> from lookalike.compat.rensa import RMinHash
    >>> matrix = RMinHash.digest_matrix_from_token_sets([["the", "ferry"], ["a", "bridge"]], 128, 42)
    >>> matrix.len(), matrix.get_num_perm()
    (2, 128)
    """

    def __init__(self, digests: bytes, num_perm: int) -> None:
        self._rows = np.frombuffer(digests, "<u4").reshape(-1, num_perm)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.array(self._rows, dtype)

    def to_rows(self) -> list[list[int]]:
        """Returns the digest of each document."""
        return self._rows.tolist()

    def get_num_perm(self) -> int:
        """Returns the number of slots of a digest."""
        return self._rows.shape[1]

    def len(self) -> int:
        """Returns the number of documents."""
        return self._rows.shape[0]

    __len__ = len

    def __repr__(self) -> str:
        return f"<RMinHashDigestMatrix of {self.len()} documents, {self.get_num_perm()} slots each>"

    def get_rho_non_empty_counts(self) -> None:
        """Returns None, because no row is a sample of tokens. So do the other calls about samples."""

    get_rho_source_token_counts = get_rho_non_empty_counts
    get_rho_sparse_occupancy_threshold = get_rho_non_empty_counts
    get_rho_sparse_row_rate = get_rho_non_empty_counts


class RMinHash(_TokenMinHash):
    """A MinHash of tokens, with the calls and the values of ``rensa.RMinHash``.

    ``update`` takes an iterable of strings or bytes. The values differ from those of :class:`MinHash`, and the two do
    not compare.

    >>> from lookalike.compat.rensa import RMinHash
    >>> a, b = RMinHash(128, 42), RMinHash(128, 42)
    >>> a.update("the ferry leaves at seven".split())
    >>> b.update("the ferry leaves at eight".split())
    >>> a.jaccard(b)
    0.6328125
    """

    @staticmethod
    def hash_token_sets(token_sets: Iterable[Any]) -> list[list[int]]:
        """Returns the hashes of the tokens of each list."""
        return _engine.hash_token_sets(token_sets)

    @classmethod
    def digest_matrix_from_token_sets(
        cls, token_sets: Iterable[Any], num_perm: int, seed: int
    ) -> RMinHashDigestMatrix:
        """Returns the digests of lists of tokens as a matrix."""
        return RMinHashDigestMatrix(cls(num_perm, seed).digest_token_sets(token_sets), num_perm)

    @classmethod
    def digest_matrix_from_token_byte_sets(
        cls, token_sets: Iterable[Iterable[Any]], num_perm: int, seed: int
    ) -> RMinHashDigestMatrix:
        """Returns the digests of lists of tokens that are bytes as a matrix."""
        sets = [list(tokens) for tokens in token_sets]
        if any(isinstance(token, str) for tokens in sets for token in tokens):
            raise TypeError("a token is a string: give bytes, or call digest_matrix_from_token_sets")
        return cls.digest_matrix_from_token_sets(sets, num_perm, seed)

    @classmethod
    def digest_matrix_from_token_hash_sets(
        cls, token_hash_sets: Iterable[Any], num_perm: int, seed: int
    ) -> RMinHashDigestMatrix:
        """Returns the digests of lists of hashes of tokens as a matrix."""
        return cls._matrix_of_hashes(map(_token_hashes, token_hash_sets), num_perm, seed)

    @classmethod
    def digest_matrix_from_flat_token_hashes(
        cls, token_hashes: Any, row_offsets: Any, num_perm: int, seed: int
    ) -> RMinHashDigestMatrix:
        """Returns digests as a matrix. Row ``n`` has the hashes from ``row_offsets[n]`` to ``row_offsets[n + 1]``."""
        hashes = _token_hashes(token_hashes)
        offsets = _row_offsets(row_offsets, len(hashes))
        rows = (hashes[start:end] for start, end in zip(offsets, offsets[1:]))
        return cls._matrix_of_hashes(rows, num_perm, seed)

    @classmethod
    def _matrix_of_hashes(cls, rows: Iterable[list[int]], num_perm: int, seed: int) -> RMinHashDigestMatrix:
        return RMinHashDigestMatrix(cls(num_perm, seed).digest_hash_sets(rows), num_perm)

    @classmethod
    def digest_matrix_from_token_sets_rho(cls, *_arguments: Any, **_named: Any) -> NoReturn:
        """Raises NotImplementedError, which says what to call. So do the other calls of the rho pipeline."""
        _refuse_rho("digest_matrix_from_token_sets_rho", "digest_matrix_from_token_sets")

    @classmethod
    def digest_matrix_from_token_hash_sets_rho(cls, *_arguments: Any, **_named: Any) -> NoReturn:
        """Raises NotImplementedError."""
        _refuse_rho("digest_matrix_from_token_hash_sets_rho", "digest_matrix_from_token_hash_sets")

    @classmethod
    def digest_matrix_from_flat_token_hashes_rho(cls, *_arguments: Any, **_named: Any) -> NoReturn:
        """Raises NotImplementedError."""
        _refuse_rho("digest_matrix_from_flat_token_hashes_rho", "digest_matrix_from_flat_token_hashes")


class CMinHash(_TokenMinHash):
    """A MinHash by two permutations, with the calls and the values of ``rensa.CMinHash``.

    >>> from lookalike.compat.rensa import CMinHash
    >>> minhash = CMinHash(num_perm=128, seed=42)
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
            one.add_token_hashes(_token_hashes(hashes))
            digests.append(one.slot_values())
        return digests


def _checked_threshold(threshold: float) -> float:
    if not math.isfinite(threshold) or not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be a finite value between 0.0 and 1.0, got {threshold}")
    return threshold


def _check_key(key: int) -> None:
    if key > _LARGEST_KEY:
        raise ValueError(f"the key {key} is above the maximum key {_LARGEST_KEY}: give a smaller start_key")


def _minhashes_of_rows(matrix: RMinHashDigestMatrix) -> Iterable[RMinHash]:
    """Yields one RMinHash with the slots of each row in turn. It has no tokens, so it is for an index alone."""
    if not isinstance(matrix, RMinHashDigestMatrix):
        raise TypeError(f"the matrix is of the type {type(matrix).__name__}: give an RMinHashDigestMatrix")
    minhash = RMinHash(matrix.get_num_perm(), 0)
    for row in matrix.to_rows():
        minhash.set_slot_values(row)
        yield minhash


class RMinHashLSH(_engine.NumberLsh):
    """An index of RMinHashes under whole numbers, as ``rensa.RMinHashLSH``.

    >>> from lookalike.compat.rensa import RMinHash, RMinHashLSH
    >>> lsh = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
    >>> a, b = RMinHash.from_token_sets([["the", "ferry"], ["a", "bridge"]], 128, 42)
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
            _check_key(key)
            self.insert(key, minhash)

    def insert_matrix(self, digest_matrix: RMinHashDigestMatrix, start_key: int = 0) -> None:
        """Inserts the rows of a matrix under consecutive keys."""
        _check_key(start_key + max(digest_matrix.len() - 1, 0))
        self.insert_many(_minhashes_of_rows(digest_matrix), start_key)

    def insert_matrix_and_query_duplicate_flags(
        self, digest_matrix: RMinHashDigestMatrix, start_key: int = 0
    ) -> list[bool]:
        """Inserts the rows of a matrix, and returns for each True if another row, or a key that was there, shares a
        band."""
        _check_key(start_key + max(digest_matrix.len() - 1, 0))
        flags = [False] * digest_matrix.len()
        for row, minhash in enumerate(_minhashes_of_rows(digest_matrix)):
            self.insert(start_key + row, minhash)
            for key in self.query(minhash):
                if key == start_key + row:
                    continue
                flags[row] = True
                if 0 <= key - start_key < row:
                    flags[key - start_key] = True
        return flags

    def query_duplicate_flags_matrix(self, digest_matrix: RMinHashDigestMatrix) -> list[bool]:
        """Returns `query_duplicate_flags` of the rows of a matrix."""
        return self.query_duplicate_flags(_minhashes_of_rows(digest_matrix))

    def query_duplicate_flags_matrix_one_shot(self, digest_matrix: RMinHashDigestMatrix) -> list[bool]:
        """Returns for each row of a matrix True if another row, or a key of the index, shares a band. The index stays as
        it is."""
        alone = type(self)(*self._settings)
        alone.insert_matrix(digest_matrix)
        return [
            bool(self.query(minhash)) or len(alone.query(minhash)) > 1 for minhash in _minhashes_of_rows(digest_matrix)
        ]

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

    def __setstate__(self, state: Any) -> NoReturn:
        _refuse_state(type(self).__name__)


def _restored_lsh(cls: type[RMinHashLSH], settings: tuple[float, int, int], entries: Any) -> RMinHashLSH:
    lsh = cls(*settings)
    lsh.restore(entries)
    return lsh


def _checked_key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key is {key!r}: give a string")
    return key


class _Deduplicator(Generic[_Kept]):
    """What the deduplicators share: MinHashes under strings, of which no two are similar."""

    _kind: type[_Kept]

    def __init__(self, threshold: float, num_perm: Optional[int], seed: int) -> None:
        self._threshold = _checked_threshold(threshold)
        self._given_num_perm = num_perm
        self._num_perm = num_perm
        self._seed = seed
        self._kept: dict[str, _Kept] = {}

    def _as_minhash(self, value: Any) -> _Kept:
        if not isinstance(value, self._kind):
            if self._num_perm is None:
                raise ValueError("num_perm is not configured: give it, or begin with a MinHash")
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
        if self.is_duplicate(_checked_key(key), made):
            return False
        self._num_perm = made.num_perm
        self._kept[key] = made
        return True

    def is_duplicate(self, key: str, minhash: Union[_Kept, Iterable[Any]]) -> bool:
        """Returns True if the key or a similar MinHash is there."""
        made = self._as_minhash(minhash)
        return _checked_key(key) in self._kept or bool(self.get_duplicates(made))

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
        removed = self._kept.pop(key, None) is not None
        self._forget_num_perm()
        return removed

    def clear(self) -> None:
        """Removes all keys."""
        self._kept.clear()
        self._forget_num_perm()

    def _forget_num_perm(self) -> None:
        """Lets the next MinHash determine the number of slots, if it was not given and nothing is left."""
        if not self._kept:
            self._num_perm = self._given_num_perm

    def len(self) -> int:
        """Returns the number of keys."""
        return len(self._kept)

    __len__ = len

    def is_empty(self) -> bool:
        """Returns True if there is no key."""
        return not self._kept


class CMinHashDeduplicator(_Deduplicator[CMinHash]):
    """Keeps one of similar CMinHashes, as ``rensa.CMinHashDeduplicator``. It compares each with all that are kept.

    >>> from lookalike.compat.rensa import CMinHashDeduplicator
    >>> kept = CMinHashDeduplicator(threshold=0.8, num_perm=128)
    >>> kept.add("a", ["the", "ferry"]), kept.add("b", ["the", "ferry"])
    (True, False)
    """

    _kind = CMinHash

    def __init__(self, threshold: float, num_perm: Optional[int] = None, seed: int = 42) -> None:
        super().__init__(threshold, num_perm, seed)


class RMinHashDeduplicator(_Deduplicator[RMinHash]):
    """Keeps one of similar RMinHashes, as ``rensa.RMinHashDeduplicator``.

    With ``use_lsh`` it compares a MinHash only with those that share a band.

    >>> from lookalike.compat.rensa import RMinHashDeduplicator
    >>> kept = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
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
