"""The MinHash LSH Forest of ``datasketch``: the nearest keys, without a threshold."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Hashable, Iterator, Optional

import numpy as np


def known_scheme(known: Optional[str], minhash: Any) -> Optional[str]:
    """Returns the scheme of an index that a MinHash is given to. Raises ValueError if the two differ.

    A weighted MinHash has no scheme and fits every index.
    """
    scheme: Optional[str] = getattr(minhash, "scheme", None)
    if scheme is None or known is None:
        return scheme or known
    if scheme != known:
        raise ValueError(
            f"MinHash scheme {scheme!r} does not match scheme {known!r} of the MinHash previously given to this index"
        )
    return known


def band_bytes(values: np.ndarray) -> bytes:
    """Returns hash values as big-endian bytes, whose order is that of the values."""
    return values.byteswap().tobytes()


class MinHashLSHForest:
    """An index that finds the keys with the highest Jaccard index, approximately, as in ``datasketch``.

    ``l`` is the number of prefix trees; each has the first ``num_perm // l`` hash values of its own. Keys are found
    only after :meth:`index`. Weighted MinHashes are accepted too.

    >>> from lookalike.compat.datasketch import MinHash, MinHashLSHForest
    >>> forest = MinHashLSHForest(num_perm=128)
    >>> for key, text in enumerate(["the ferry leaves at seven", "the ferry leaves at eight", "a bridge"]):
    ...     minhash = MinHash()
    ...     minhash.update_batch([word.encode() for word in text.split()])
    ...     forest.add(key, minhash)
    >>> forest.index()
    >>> query = MinHash()
    >>> query.update_batch([b"the", b"ferry", b"leaves", b"at", b"nine"])
    >>> sorted(forest.query(query, 2))
    [0, 1]
    """

    def __init__(self, num_perm: int = 128, l: int = 8) -> None:
        if l <= 0 or num_perm <= 0:
            raise ValueError(f"num_perm and l must be positive, got {num_perm} and {l}")
        if l > num_perm:
            raise ValueError(f"l cannot be greater than num_perm, got {l} and {num_perm}")
        #: Number of trees and depth of each.
        self.l = l
        self.k = num_perm // l
        self.hashranges = [(tree * self.k, (tree + 1) * self.k) for tree in range(l)]
        #: For each key the bytes of its hash values in every tree.
        self.keys: dict[Hashable, list[bytes]] = {}
        #: For each tree the keys that have these bytes.
        self.hashtables: list[dict[bytes, list[Hashable]]] = [{} for _ in range(l)]
        #: For each tree the bytes that are searchable, in ascending order.
        self.sorted_hashtables: list[list[bytes]] = [[] for _ in range(l)]
        self._scheme: Optional[str] = None

    def add(self, key: Hashable, minhash: Any) -> None:
        """Adds a MinHash under a new key, which :meth:`index` makes searchable."""
        self._check_length(minhash)
        scheme = known_scheme(self._scheme, minhash)
        if key in self.keys:
            raise ValueError("The given key has already been added")
        self._scheme = scheme
        values = minhash.hashvalues
        self.keys[key] = [band_bytes(values[start:end]) for start, end in self.hashranges]
        for table, prefix in zip(self.hashtables, self.keys[key]):
            table.setdefault(prefix, []).append(key)

    def index(self) -> None:
        """Makes all added keys searchable."""
        self.sorted_hashtables = [sorted(table) for table in self.hashtables]

    def query(self, minhash: Any, k: int) -> list[Hashable]:
        """Returns at most ``k`` keys. The longest equal prefixes come first, so these are the likely nearest."""
        if k <= 0:
            raise ValueError(f"k must be positive, got {k}")
        self._check_length(minhash)
        known_scheme(self._scheme, minhash)
        found: set[Hashable] = set()
        for depth in range(self.k, 0, -1):
            for key in self._query(minhash, depth, self.l):
                found.add(key)
                if len(found) >= k:
                    return list(found)
        return list(found)

    def _query(self, minhash: Any, r: int, b: int) -> Iterator[Hashable]:
        """Yields the keys that share the first ``r`` hash values of one of the first ``b`` trees."""
        if not 0 < r <= self.k or not 0 < b <= self.l:
            raise ValueError("parameter outside range")
        values = minhash.hashvalues
        trees = list(zip(self.hashranges, self.sorted_hashtables, self.hashtables))
        for (start, _), prefixes, table in trees[:b]:
            wanted = band_bytes(values[start : start + r])
            for at in range(bisect_left(prefixes, wanted), len(prefixes)):
                if not prefixes[at].startswith(wanted):
                    break
                yield from table[prefixes[at]]

    def get_minhash_hashvalues(self, key: Hashable) -> np.ndarray:
        """Returns the hash values of a key that the trees use."""
        if key not in self.keys:
            raise KeyError(f"The provided key does not exist in the LSHForest: {key}")
        parts = self.keys[key]
        width, rest = divmod(len(parts[0]), self.k)
        if rest or width not in (4, 8) or any(len(part) != len(parts[0]) for part in parts):
            raise ValueError(
                f"the hash values of the key {key!r} have {len(parts[0])} bytes for {self.k} values: "
                "weighted MinHashes have no values of 4 or 8 bytes"
            )
        big = np.frombuffer(b"".join(parts), dtype=f">u{width}")
        return big.astype(f"u{width}")

    def is_empty(self) -> bool:
        """Returns True if no key is searchable."""
        return any(not table for table in self.sorted_hashtables)

    def _check_length(self, minhash: Any) -> None:
        if len(minhash) < self.k * self.l:
            raise ValueError(
                f"The num_perm of MinHash out of range: it has {len(minhash)} hash values, and {self.k * self.l} are needed"
            )

    def __contains__(self, key: Hashable) -> bool:
        return key in self.keys

    def __len__(self) -> int:
        return len(self.keys)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<MinHashLSHForest of {len(self)} keys, {self.l} trees of depth {self.k}>"
