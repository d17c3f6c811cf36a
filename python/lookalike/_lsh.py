"""The MinHash LSH of ``datasketch``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Hashable, Iterable, Iterator, Optional

import numpy as np

from . import _arguments as arguments
from . import _engine
from ._words import counted


#: Largest number of functions of a MinHash, and largest number for which bands are chosen.
_MOST_FUNCTIONS = 2**20
_MOST_CHOSEN = 4096


@lru_cache(maxsize=256)
def best_bands(threshold: float, num_perm: int, weights: tuple[float, float]) -> tuple[int, int]:
    """Returns the bands and rows with the smallest weighted sum of both errors.

    The quadrature is exact, because the integrands are polynomials of degree ≤ ``num_perm``.
    """
    if num_perm > _MOST_CHOSEN:
        raise ValueError(
            f"num_perm is {num_perm}, but bands are chosen only up to {_MOST_CHOSEN}: give params=(bands, rows)"
        )
    points, amounts = np.polynomial.legendre.leggauss(num_perm // 2 + 1)
    below, above = threshold * (points + 1) / 2, (1 + threshold + (1 - threshold) * points) / 2
    least, best = float("inf"), (0, 0)
    for bands in range(1, num_perm + 1):
        for rows in range(1, num_perm // bands + 1):
            false_positive = threshold / 2 * (amounts @ (1 - (1 - below**rows) ** bands))
            # As in datasketch: a term too small to change 1 is lost.
            missed = 1 - (1 - (1 - above**rows) ** bands)
            false_negative = (1 - threshold) / 2 * (amounts @ missed)
            error = float(false_positive * weights[0] + false_negative * weights[1])
            if error < least:
                least, best = error, (bands, rows)
    return best


def checked_bands(
    threshold: float, num_perm: int, weights: tuple[float, float], params: Optional[tuple[int, int]]
) -> tuple[int, int, int]:
    """Returns the functions of a MinHash, the bands and the rows of an index with these parameters."""
    functions = arguments.given_whole("num_perm", num_perm, 2, _MOST_FUNCTIONS)
    if not 0.0 <= (arguments.number("threshold", threshold) or 0.0) <= 1.0:
        raise ValueError(f"threshold must be in [0.0, 1.0], got {threshold}")
    if not isinstance(weights, (tuple, list)) or len(weights) != 2:
        arguments.refuse("weights", weights, "two weights, for false positives and for false negatives")
    if any(not 0.0 <= weight <= 1.0 for weight in weights):
        raise ValueError(f"Weight must be in [0.0, 1.0], got {weights}")
    if sum(weights) != 1.0:
        raise ValueError(f"Weights must sum to 1.0, got {weights}")
    chosen = arguments.bands(params) or best_bands(float(threshold), functions, (weights[0], weights[1]))
    bands, rows = chosen
    if bands * rows > functions:
        raise ValueError(
            f"The product of b and r in params is {bands} * {rows} = {bands * rows}, "
            f"it must be less than num_perm {functions}"
        )
    if bands < 2:
        raise ValueError("The number of bands are too small (b < 2)")
    return functions, bands, rows


class MinHashLSH(_engine.LshTables):
    """An index of MinHashes that finds those likely to reach a Jaccard index, as in ``datasketch``.

    The parameters are those of datasketch. Keys are any hashable values. ``storage_config`` is memory, or
    ``{"type": "redis", …}``, which returns a :class:`RedisMinHashLSH`; other storages are refused. Threads can share an index:
    an insertion or a query is atomic. Only the query buffer is for one thread.

    >>> from lookalike.compat.datasketch import MinHashLSH
    >>> lsh = MinHashLSH(threshold=0.9, num_perm=128)
    >>> lsh.b, lsh.r
    (5, 25)
    """

    #: Functions of a MinHash, bands, rows of a band, and start and end of each band.
    h: int
    b: int
    r: int
    hashranges: list[tuple[int, int]]

    if not TYPE_CHECKING:
        # Checkers take the parameters and the class from `__init__`. A subclass can have parameters of its own.
        def __new__(cls, *args: Any, **named: Any) -> Any:
            storage = named.get("storage_config", args[4] if len(args) > 4 else None)
            if cls is MinHashLSH and isinstance(storage, dict) and storage.get("type") == "redis":
                from ._redis_lsh import RedisMinHashLSH

                return RedisMinHashLSH(*args, **named)
            return super().__new__(cls, *args, **named)

    def __bool__(self) -> bool:
        return True

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: Optional[tuple[int, int]] = None,
        storage_config: Optional[dict[str, Any]] = None,
        prepickle: Optional[bool] = None,
        hashfunc: Any = None,
    ) -> None:
        in_memory = not storage_config or (isinstance(storage_config, dict) and storage_config.get("type") == "dict")
        if not in_memory:
            raise ValueError(
                f"storage_config is {storage_config!r}: the storages are memory, {{'type': 'dict'}}, and Redis, "
                "{'type': 'redis', 'redis': {'host': …, 'port': …}}"
            )
        if prepickle or hashfunc is not None:
            raise ValueError(
                "prepickle and hashfunc have no effect on an index in memory: leave them out"
            )
        num_perm, bands, rows = checked_bands(threshold, num_perm, weights, params)
        self._set(num_perm, bands, rows)

    def _set(self, num_perm: int, bands: int, rows: int) -> None:
        self.prepare(num_perm, bands, rows)
        self.h, self.b, self.r = num_perm, bands, rows
        self.hashranges = [(band * rows, (band + 1) * rows) for band in range(bands)]

    def insertion_session(self, buffer_size: int = 50000) -> "_Session":
        """Returns a context manager that inserts directly, because the index needs no buffer."""
        return _Session(self)

    def deletion_session(self, buffer_size: int = 50000) -> "_Session":
        """Returns a context manager that removes directly, because the index needs no buffer."""
        return _Session(self)

    def merge(self, other: "MinHashLSH", check_overlap: bool = False) -> None:
        """Inserts all entries of the other index."""
        if type(self) is not type(other):
            raise ValueError(f"Cannot merge type MinHashLSH and type {type(other).__name__}.")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("Cannot merge MinHashLSH with different initialization parameters.")
        entries = other.entries()
        if check_overlap and any(key in self for key, _ in entries):
            raise ValueError("The keys are overlapping, duplicate key exists.")
        for key, values in entries:
            self._insert(key, values, other.scheme)

    @property
    def keys(self) -> "_Keys":
        """A mapping from each key to the bytes of its bands."""
        return _Keys(self)

    @property
    def hashtables(self) -> list[Mapping[bytes, frozenset[Hashable]]]:
        """For each band the keys of each of its buckets, by the bytes of the band. It is a copy that cannot be changed;
        making it takes time and memory for all keys."""
        tables: list[dict[bytes, set[Hashable]]] = [{} for _ in range(self.b)]
        for key, values in self.entries():
            for table, (start, end) in zip(tables, self.hashranges):
                table.setdefault(values[start:end].byteswap().tobytes(), set()).add(key)
        return [MappingProxyType({band: frozenset(keys) for band, keys in table.items()}) for table in tables]

    def get_counts(self) -> list[dict[Hashable, int]]:
        """Returns for each band the number of keys in each of its buckets."""
        return self.counts()

    def get_subset_counts(self, *keys: Hashable) -> list[dict[Hashable, int]]:
        """Returns the same for some keys; absent keys are ignored."""
        return self.counts([key for key in keys if key in self])

    def add_to_query_buffer(self, minhash: _engine.MinHash) -> None:
        """Stores the answer to a query for :meth:`collect_query_buffer`."""
        self.__dict__.setdefault("_buffer", []).append(self.query(minhash))

    def collect_query_buffer(self) -> list[Hashable]:
        """Returns the keys that are in every stored answer, and drops the answers."""
        answers: Iterable[list[Hashable]] = self.__dict__.pop("_buffer", [])
        first, *rest = list(answers) or [[]]
        return [key for key in first if all(key in answer for answer in rest)]

    def _query_b(self, minhash: _engine.MinHash, b: int) -> set[Hashable]:
        if b > self.b:
            raise ValueError("b must be less or equal to the number of hash tables")
        return set(self.query(minhash, b))

    def _insert(self, key: Hashable, values: np.ndarray, scheme: Optional[str]) -> None:
        self.insert(key, _engine.MinHash(hashvalues=values, scheme=scheme), check_duplication=False)

    def __reduce__(self) -> Any:
        told = (self.h, self.b, self.r)
        return _restored, (type(self), told, self.scheme, self.entries()), dict(self.__dict__)

    def __repr__(self) -> str:
        return (
            f"<MinHashLSH of {counted(len(self), 'key')}, {counted(self.b, 'band')} of "
            f"{counted(self.r, 'row')}>"
        )


if not TYPE_CHECKING:
    MinHashLSH.__new__.__signature__ = signature(MinHashLSH.__init__)


class _Keys(Mapping[Hashable, "list[Hashable]"]):
    """A live view of the keys of an index."""

    def __init__(self, lsh: MinHashLSH) -> None:
        self._lsh = lsh

    def __getitem__(self, key: Hashable) -> list[Hashable]:
        return [band for counts in self._lsh.counts([key]) for band in counts]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lsh

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._lsh.all_keys())

    def __len__(self) -> int:
        return len(self._lsh)

    size = __len__
    has_key = __contains__


class _Session:
    def __init__(self, lsh: MinHashLSH) -> None:
        self.lsh = lsh
        self.insert = lsh.insert
        self.remove = lsh.remove

    def __enter__(self) -> "_Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Does nothing, because nothing is buffered."""


def _restored(cls: Any, told: Any, scheme: Any, entries: Any) -> MinHashLSH:
    lsh: MinHashLSH = cls.__new__(cls)
    lsh._set(*told)
    for key, values in entries:
        lsh._insert(key, values, scheme)
    return lsh
