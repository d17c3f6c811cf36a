"""The MinHash LSH Ensemble of ``datasketch``: sets that contain most of a query.

Zhu, Nargesian, Pu and Miller, "LSH Ensemble: Internet-Scale Domain Search", VLDB 2016.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any, Hashable, Iterable, Iterator, Optional

import numpy as np

from ._lsh import MinHashLSH

#: Points of the quadrature for the two kinds of errors, far more than their accuracy needs.
_POINTS = 128


class MinHashLSHEnsemble:
    """An index that finds sets by their containment in a query: the share of the query that a set has.

    ``m`` bounds the rows of a band: a larger one is more accurate and takes more memory. The entries are divided into
    ``num_part`` partitions by size. Keys, MinHashes and sizes are indexed in one call of :meth:`index`.

    >>> from lookalike.compat.datasketch import MinHash, MinHashLSHEnsemble
    >>> sets = {"small": {"a", "b", "c"}, "large": set("abcdefghijkl")}
    >>> def signed(values):
    ...     minhash = MinHash()
    ...     minhash.update_batch([value.encode() for value in sorted(values)])
    ...     return minhash
    >>> ensemble = MinHashLSHEnsemble(threshold=0.8, num_part=2)
    >>> ensemble.index([(key, signed(values), len(values)) for key, values in sets.items()])
    >>> sorted(ensemble.query(signed({"a", "b", "c"}), 3))
    ['large', 'small']
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        num_part: int = 16,
        m: int = 8,
        weights: tuple[float, float] = (0.5, 0.5),
        storage_config: Optional[dict[str, Any]] = None,
        prepickle: Optional[bool] = None,
    ) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold must be in [0.0, 1.0], got {threshold}")
        if num_perm < 2:
            raise ValueError(f"Too few permutation functions: num_perm is {num_perm}, and 2 are needed")
        if num_part < 1:
            raise ValueError(f"num_part must be at least 1, got {num_part}")
        if not 2 <= m <= num_perm:
            raise ValueError(f"m must be in the range of [2, num_perm], got {m}")
        if any(not 0.0 <= weight <= 1.0 for weight in weights):
            raise ValueError(f"Weight must be in [0.0, 1.0], got {weights}")
        if sum(weights) != 1.0:
            raise ValueError(f"Weights must sum to 1.0, got {weights}")
        self.threshold = threshold
        self.h = num_perm
        self.m = m
        #: Ratios of set size to query size, and for each the bands and rows with the smallest error.
        self.xqs = np.exp(np.linspace(-5, 5, 10))
        best = [_best_params(threshold, num_perm, m, float(ratio), tuple(weights)) for ratio in self.xqs]
        self.params = np.array(best, dtype=int)
        #: For each partition one index for every number of rows.
        self.indexes = [
            {
                int(rows): _index(num_perm, int(rows), storage_config, prepickle, part)
                for rows in dict.fromkeys(self.params[:, 1])
            }
            for part in range(num_part)
        ]
        #: Smallest and largest size of each partition; None for a partition without entries.
        self.lowers: list[Optional[int]] = [None] * num_part
        self.uppers: list[Optional[int]] = [None] * num_part

    def index(self, entries: Iterable[tuple[Hashable, Any, int]]) -> None:
        """Indexes ``(key, minhash, size)``. It can be called once."""
        if not self.is_empty():
            raise ValueError("Cannot call index again on a non-empty index")
        ordered = list(entries)
        if not ordered:
            raise ValueError("entries is empty")
        for key, _, size in ordered:
            if size <= 0:
                raise ValueError(f"Set size must be positive, got {size} for the key {key!r}")
        ordered.sort(key=lambda entry: entry[2])
        counts = sorted(Counter(size for _, _, size in ordered).items())
        sizes = np.array([size for size, _ in counts])
        bounds = partition_sizes(sizes, np.array([count for _, count in counts]), len(self.indexes))
        for part, (lower, upper) in enumerate(bounds):
            self.lowers[part], self.uppers[part] = int(lower), int(upper)
        part = 0
        for key, minhash, size in ordered:
            while size > (self.uppers[part] or 0):
                part += 1
            for index in self.indexes[part].values():
                index.insert(key, minhash)

    def query(self, minhash: Any, size: int) -> Iterator[Hashable]:
        """Yields the keys of sets that probably contain the share ``threshold`` of the query of this size."""
        for index, upper in zip(self.indexes, self.uppers):
            if upper is not None:
                bands, rows = self._get_optimal_param(upper, size)
                yield from index[rows]._query_b(minhash, bands)

    def _get_optimal_param(self, x: float, q: float) -> tuple[int, int]:
        at = int(np.searchsorted(self.xqs, float(x) / float(q), side="left"))
        bands, rows = self.params[min(at, len(self.params) - 1)].tolist()
        return bands, rows

    def is_empty(self) -> bool:
        """Returns True if nothing is indexed."""
        return all(index.is_empty() for part in self.indexes for index in part.values())

    def __contains__(self, key: Hashable) -> bool:
        return any(key in index for part in self.indexes for index in part.values())


def _index(
    num_perm: int, rows: int, storage: Optional[dict[str, Any]], prepickle: Optional[bool], part: int
) -> MinHashLSH:
    """Returns the index of a partition. In a shared storage its name is that of datasketch."""
    config = storage
    if storage and storage.get("type") != "dict" and "basename" in storage:
        name = b"-".join([storage["basename"], part.to_bytes(2, "big"), rows.to_bytes(2, "big")])
        config = {**storage, "basename": name}
    return MinHashLSH(
        num_perm=num_perm, params=(num_perm // rows, rows), storage_config=config, prepickle=prepickle
    )


@lru_cache(maxsize=1024)
def _best_params(
    threshold: float, num_perm: int, most_rows: int, ratio: float, weights: tuple[float, float]
) -> tuple[int, int]:
    """Returns the bands and rows with the smallest weighted sum of both errors, for sets of ``ratio`` times the size
    of the query. The first of equal ones wins, by bands and then by rows."""
    points, amounts = np.polynomial.legendre.leggauss(_POINTS)

    def over(start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        containment = start + (end - start) * (points + 1) / 2
        return containment / (1 + ratio - containment), amounts * (end - start) / 2

    below, below_amounts = over(0.0, min(threshold, ratio))
    above, above_amounts = over(threshold, min(1.0, max(ratio, threshold)))
    least, best = float("inf"), (0, 0)
    for bands in range(1, num_perm + 1):
        for rows in range(1, min(most_rows, num_perm // bands) + 1):
            false_positive = below_amounts @ (1 - (1 - below**rows) ** bands)
            # As in datasketch: a term too small to change 1 is lost.
            false_negative = above_amounts @ (1 - (1 - (1 - above**rows) ** bands))
            error = float(false_positive * weights[0] + false_negative * weights[1])
            if error < least:
                least, best = error, (bands, rows)
    return best


def partition_sizes(sizes: np.ndarray, counts: np.ndarray, parts: int) -> list[tuple[Any, Any]]:
    """Divides ascending sizes into intervals with the fewest expected false positives.

    Returns the smallest and largest size of each. A set counts with the share of its size that the largest size of
    its interval exceeds it by.
    """
    count = len(sizes)
    if parts < 2:
        return [(sizes[0], sizes[-1])]
    if parts >= count:
        return [(size, size) for size in sizes]
    cost = _interval_costs(sizes, counts)
    # least[parts][last]: cost of the sizes up to `last` in so many intervals; 0 where there are fewer sizes.
    least = {1: cost[0]}
    for number in range(2, parts):
        sums = [_ends_of(number, last, least[number - 1], cost) for last in range(number - 1, count)]
        least[number] = np.array([0.0] * (number - 1) + [float(costs.min()) for costs in sums])
    end = parts - 2 + int(_ends_of(parts, count - 1, least[parts - 1], cost).argmin())
    bounds = [(sizes[end + 1], sizes[-1])]
    for number in range(parts - 1, 1, -1):
        # As in datasketch, which adds the cost of `number` intervals here and not of one fewer.
        before = number - 2 + int(_ends_of(number, end, least[number], cost).argmin())
        bounds.append((sizes[before + 1], sizes[end]))
        end = before
    return [(sizes[0], sizes[end]), *bounds[::-1]]


def _ends_of(number: int, last: int, least: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Returns the cost of `number` intervals up to `last`, by the end of the last but one."""
    ends = np.arange(number - 2, last)
    return np.asarray(least[ends] + cost[ends + 1, last])


def _interval_costs(sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Returns the expected false positives of every interval, by its first and last size."""
    cost = np.zeros((len(sizes), len(sizes)))
    for last, size in enumerate(sizes):
        excess = (float(size) - sizes[: last + 1]) / float(size) * counts[: last + 1]
        cost[: last + 1, last] = np.cumsum(excess[::-1])[::-1]
    return cost
