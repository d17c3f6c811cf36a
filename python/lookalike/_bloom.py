"""The MinHash LSH Bloom index of ``datasketch``: whether a set repeats one before, without its key.

Khan, Underwood and others, "LSHBloom: Memory-efficient, Extreme-scale Document Deduplication", 2024.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import warnings
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ._forest import band_bytes, known_scheme
from ._lsh import best_bands

#: First bytes of a file, and the format of its head: bits, functions and capacity.
_MAGIC = b"lookalike bloom\x01"
_HEAD = "<QIQ"
_START = len(_MAGIC) + struct.calcsize(_HEAD)


class BloomTable:
    """A Bloom filter for one band. With a file, it is mapped into memory and kept.

    >>> from lookalike.compat.datasketch import BloomTable
    >>> table = BloomTable(item_count=100, fp=0.001, band_size=2)
    >>> table.insert([3, 4])
    >>> table.query([3, 4]), table.query([3, 5])
    (True, False)
    """

    def __init__(self, item_count: int, fp: float, band_size: int, fname: Optional[str] = None) -> None:
        self.r = band_size
        self.fname = fname
        self._functions = max(1, round(-math.log2(fp)))
        self._bits = -(-math.ceil(-item_count * math.log(fp) / math.log(2) ** 2) // 8) * 8
        if fname is None:
            self._bytes: Any = np.zeros(self._bits // 8, dtype=np.uint8)
            return
        path = Path(fname)
        if path.exists():
            self._read_head(path)
        else:
            # A sparse file: its bytes are zero until they are used.
            with open(path, "xb") as file:
                file.write(_MAGIC + struct.pack(_HEAD, self._bits, self._functions, item_count))
                file.truncate(_START + self._bits // 8)
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r+", offset=_START, shape=(self._bits // 8,))

    def _read_head(self, path: Path) -> None:
        with open(path, "rb") as file:
            head = file.read(_START)
        if not head.startswith(_MAGIC) or len(head) < _START:
            raise ValueError(f"{path} is not a Bloom filter of lookalike: give an empty directory as save_dir")
        self._bits, self._functions, _ = struct.unpack_from(_HEAD, head, len(_MAGIC))
        if path.stat().st_size != _START + self._bits // 8:
            raise ValueError(f"{path} has {path.stat().st_size} bytes instead of {_START + self._bits // 8}")

    def _places(self, hashvalues: Any) -> Any:
        """Returns the bits of a band, by two hashes of its values."""
        if len(hashvalues) != self.r:
            raise RuntimeError(f"Invalid length for indices, {len(hashvalues)}, expected {self.r} hashvalues in band")
        values = np.asarray(hashvalues, dtype=np.uint64)
        digest = hashlib.blake2b(band_bytes(values), digest_size=16).digest()
        first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
        return [(first + number * second) % self._bits for number in range(self._functions)]

    def insert(self, hashvalues: Any) -> None:
        """Adds the hash values of a band."""
        for bit in self._places(hashvalues):
            self._bytes[bit >> 3] |= 1 << (bit & 7)

    def query(self, hashvalues: Any) -> bool:
        """Returns True if these hash values were probably added, and False only if they were not."""
        return all(self._bytes[bit >> 3] >> (bit & 7) & 1 for bit in self._places(hashvalues))

    def sync(self) -> None:
        """Writes all changes to the file."""
        if self.fname is None:
            warnings.warn("Attempting to save in-memory Bloom filter, this is a no-op.", RuntimeWarning, stacklevel=2)
        else:
            self._bytes.flush()


class MinHashLSHBloom:
    """An index that says whether a MinHash shares a band with one before, in a few bytes for each.

    ``n`` is the number of MinHashes to come and ``fp`` the share of false answers of each band. With ``save_dir`` the
    filters are files there, which the next index opens. Other parameters are those of :class:`MinHashLSH`.

    >>> import tempfile
    >>> from lookalike.compat.datasketch import MinHash, MinHashLSHBloom
    >>> lsh = MinHashLSHBloom(threshold=0.5, n=100, fp=0.001, save_dir=tempfile.mkdtemp())
    >>> minhash = MinHash()
    >>> minhash.update_batch([b"the", b"ferry"])
    >>> lsh.query(minhash), lsh.insert(minhash), lsh.query(minhash)
    (False, None, True)
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        n: Optional[int] = None,
        fp: Optional[float] = None,
        save_dir: Optional[Any] = None,
        weights: tuple[float, float] = (0.5, 0.5),
        params: Optional[tuple[int, int]] = None,
    ) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold must be in [0.0, 1.0], got {threshold}")
        if num_perm < 2:
            raise ValueError(f"Too few permutation functions: num_perm is {num_perm}, and 2 are needed")
        if n is None or n <= 0:
            raise ValueError(f"n for LSHBloom must be > 0, got {n}")
        if fp is None or not 0.0 < fp < 1.0:
            raise ValueError(f"fp must be in (0.0, 1.0), got {fp}")
        if any(not 0.0 <= weight <= 1.0 for weight in weights):
            raise ValueError(f"Weight must be in [0.0, 1.0], got {weights}")
        if sum(weights) != 1.0:
            raise ValueError(f"Weights must sum to 1.0, got {weights}")
        if save_dir is None:
            warnings.warn(
                "Creating LSHBloom index without save directory, this index will not be persisted.",
                RuntimeWarning,
                stacklevel=2,
            )
        self.h = num_perm
        self.b, self.r = params or best_bands(float(threshold), num_perm, (weights[0], weights[1]))
        if self.b * self.r > num_perm:
            raise ValueError(
                f"The product of b and r in params is {self.b} * {self.r} = {self.b * self.r}, "
                f"it must be less than num_perm {num_perm}"
            )
        if self.b < 2:
            raise ValueError("The number of bands are too small (b < 2)")
        if save_dir is not None:
            os.makedirs(save_dir, exist_ok=True)
        named = [None if save_dir is None else os.path.join(save_dir, f"band-{band}.bloom") for band in range(self.b)]
        self.hashtables = [BloomTable(n, fp, self.r, name) for name in named]
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]
        self._scheme: Optional[str] = None

    def insert(self, minhash: Any) -> None:
        """Adds a MinHash."""
        self._scheme = self._checked(minhash)
        for values, table in self._bands(minhash):
            table.insert(values)

    def query(self, minhash: Any) -> bool:
        """Returns True if a MinHash before probably shares a band with this one."""
        self._checked(minhash)
        return any(table.query(values) for values, table in self._bands(minhash))

    def sync(self) -> None:
        """Writes all changes to the files in ``save_dir``."""
        for table in self.hashtables:
            table.sync()

    def _bands(self, minhash: Any) -> Any:
        values = minhash.hashvalues
        return ((values[start:end], table) for (start, end), table in zip(self.hashranges, self.hashtables))

    def _checked(self, minhash: Any) -> Optional[str]:
        if len(minhash) != self.h:
            raise ValueError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return known_scheme(self._scheme, minhash)

    def __repr__(self) -> str:
        return f"<MinHashLSHBloom of {self.b} bands of {self.r} rows>"
