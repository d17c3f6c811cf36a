"""Weighted MinHashes, as in ``datasketch``.

Ioffe, "Improved Consistent Sampling, Weighted Minhash and L1 Sketching", ICDM 2010.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Optional

import numpy as np

from ._engine import MinHash


class WeightedMinHash:
    """The samples of a weighted set: for each sample a dimension and a step of its weight.

    It is made by a :class:`WeightedMinHashGenerator`, and indexes accept it in place of a MinHash.

    >>> from lookalike.compat.datasketch import WeightedMinHashGenerator
    >>> generator = WeightedMinHashGenerator(dim=3, sample_size=64)
    >>> a, b = generator.minhash([1, 3, 0]), generator.minhash([1, 3, 0])
    >>> a == b, a.jaccard(b), len(a)
    (True, 1.0, 64)
    """

    def __init__(self, seed: int, hashvalues: np.ndarray) -> None:
        self.seed = seed
        self.hashvalues = hashvalues

    def jaccard(self, other: "WeightedMinHash") -> float:
        """Estimates the weighted Jaccard index: the sum of the smaller weights by that of the larger ones."""
        if other.seed != self.seed:
            raise ValueError(
                f"Cannot compute Jaccard given WeightedMinHash objects with different seeds: {self.seed} and {other.seed}"
            )
        if len(self) != len(other):
            raise ValueError(
                "Cannot compute Jaccard given WeightedMinHash objects with different numbers of hash values: "
                f"{len(self)} and {len(other)}"
            )
        equal = (np.asarray(self.hashvalues) == np.asarray(other.hashvalues)).all(axis=1)
        return float(np.count_nonzero(equal)) / float(len(self))

    def digest(self) -> np.ndarray:
        """Returns a copy of the hash values."""
        return np.array(self.hashvalues)

    def copy(self) -> "WeightedMinHash":
        """Returns a copy."""
        return WeightedMinHash(self.seed, self.digest())

    def _as_minhash(self) -> MinHash:
        """Returns a MinHash with one hash value for each sample, for indexes: equal samples have equal values."""
        pairs = np.asarray(self.hashvalues, dtype=np.int64)
        packed = pairs[:, 0].astype(np.uint64) << np.uint64(32) | (pairs[:, 1] & 0xFFFFFFFF).astype(np.uint64)
        return MinHash(hashvalues=packed, seed=self.seed, scheme="affine64")

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WeightedMinHash)
            and type(self) is type(other)
            and self.seed == other.seed
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<WeightedMinHash of {len(self)} samples, seed {self.seed}>"


class WeightedMinHashGenerator:
    """Draws weighted MinHashes of vectors with ``dim`` weights, equal to those of ``datasketch``.

    >>> from lookalike.compat.datasketch import WeightedMinHashGenerator
    >>> generator = WeightedMinHashGenerator(dim=3)
    >>> generator.minhash([4, 0, 2]).hashvalues.shape
    (128, 2)
    """

    def __init__(self, dim: int, sample_size: int = 128, seed: int = 1) -> None:
        self.dim = dim
        self.sample_size = sample_size
        self.seed = seed
        random = np.random.RandomState(seed=seed)
        shape = (sample_size, dim)
        #: Parameters of Ioffe's paper: r, the logarithm of c, and beta, for each sample and dimension.
        self.rs = random.gamma(2, 1, shape).astype(np.float32)
        self.ln_cs = np.log(random.gamma(2, 1, shape)).astype(np.float32)
        self.betas = random.uniform(0, 1, shape).astype(np.float32)

    def minhash(self, v: Any) -> WeightedMinHash:
        """Returns the weighted MinHash of a vector of weights, which are not negative."""
        if not isinstance(v, Sized):
            raise TypeError("Input vector must be sized")
        if len(v) != self.dim:
            raise ValueError(f"Input dimension mismatch, expecting {self.dim}, got {len(v)}")
        weights = np.asarray(v, dtype=np.float32)
        present = np.flatnonzero(weights != 0)
        if not len(present):
            raise ValueError("Input is all zeros")
        steps, ln_y = self._steps(np.log(weights[present]), present, 0)
        ln_a = self.ln_cs[:, present] - ln_y - self.rs[:, present]
        return self._sample(present, steps, ln_a)

    def minhash_many(self, X: Any) -> list[Optional[WeightedMinHash]]:
        """Returns the weighted MinHash of each row of a matrix; None for a row of zeros.

        The matrix is dense or a sparse one of scipy. As in datasketch, its values are not those of :meth:`minhash`.
        """
        if not isinstance(X, np.ndarray) and not hasattr(X, "tocsr"):
            raise TypeError("Input X must be a sparse matrix or numpy matrix")
        if X.ndim != 2:
            raise ValueError("Input must have two dimensions")
        if X.shape[1] != self.dim:
            raise ValueError(f"Input dimension mismatch, expecting {self.dim}, got {X.shape[1]}")
        rows = X if isinstance(X, np.ndarray) else X.tocsr()
        return [self._sample_row(rows[at]) for at in range(X.shape[0])]

    def _sample_row(self, row: Any) -> Optional[WeightedMinHash]:
        dense = np.asarray(row if isinstance(row, np.ndarray) else row.toarray(), dtype=np.float32).reshape(-1)
        present = np.flatnonzero(dense)
        if not len(present):
            return None
        steps, ln_y = self._steps(np.log(dense[present]), present, 1)
        return self._sample(present, steps, self.ln_cs[:, present] - ln_y)

    def _steps(self, logs: np.ndarray, present: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns for each sample and dimension the step of the weight, and the logarithm of y."""
        rs, betas = self.rs[:, present], self.betas[:, present]
        steps = np.floor(logs / rs + betas)
        return steps, (steps - betas + shift if shift else steps - betas) * rs

    def _sample(self, present: np.ndarray, steps: np.ndarray, ln_a: np.ndarray) -> WeightedMinHash:
        least = np.argmin(ln_a, axis=1)
        chosen = steps[np.arange(self.sample_size), least]
        return WeightedMinHash(self.seed, np.stack([present[least], chosen.astype(int)], axis=1).astype(int))
