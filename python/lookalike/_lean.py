"""The LeanMinHash of ``datasketch``."""

from __future__ import annotations

import struct
from typing import Any, NoReturn, Optional

import numpy as np

from . import _engine

#: For each scheme its code (none for the scheme before datasketch 2.0) and the format of a hash value.
_FORMATS = {"legacy": (None, "I"), "affine32": (1, "I"), "affine64": (2, "Q")}
_SCHEMES = {code: scheme for scheme, (code, _) in _FORMATS.items()}


class LeanMinHash(_engine.MinHash):
    """A MinHash that accepts no more values and serialises to the bytes of ``datasketch``.

    It is made from a MinHash (of this package or of datasketch), or from ``seed``, ``hashvalues`` and
    ``scheme``. Comparisons and indexes accept it in place of a MinHash.

    >>> from lookalike.compat.datasketch import MinHash, LeanMinHash
    >>> minhash = MinHash(num_perm=16)
    >>> minhash.update(b"ferry")
    >>> lean = LeanMinHash(minhash)
    >>> buffer = bytearray(lean.bytesize())
    >>> lean.serialize(buffer)
    >>> len(buffer), LeanMinHash.deserialize(buffer) == lean, lean.jaccard(minhash)
    (80, True, 1.0)
    """

    __slots__ = ()

    def __new__(
        cls,
        minhash: Any = None,
        seed: Optional[int] = None,
        hashvalues: Optional[Any] = None,
        scheme: Optional[str] = None,
    ) -> "LeanMinHash":
        if minhash is not None:
            if scheme is not None and scheme != minhash.scheme:
                raise ValueError(
                    f"scheme {scheme!r} conflicts with the scheme {minhash.scheme!r} of the given MinHash"
                )
            seed, hashvalues, scheme = minhash.seed, minhash.hashvalues, minhash.scheme
        elif hashvalues is None or seed is None:
            raise ValueError("a LeanMinHash needs a state: give a minhash, or seed and hashvalues with their scheme")
        return super().__new__(cls, seed=seed, hashvalues=hashvalues, scheme=scheme)

    def update(self, b: Any) -> NoReturn:
        """Raises TypeError. To add values, make a ``MinHash(seed=…, hashvalues=…, scheme=…)`` of this one."""
        raise TypeError("Cannot update a LeanMinHash")

    update_batch = update

    @property
    def permutations(self) -> NoReturn:
        raise AttributeError("a LeanMinHash has no permutations, because it only compares")

    @property
    def hashfunc(self) -> NoReturn:
        raise AttributeError("a LeanMinHash has no hashfunc, because it only compares")

    def copy(self) -> "LeanMinHash":
        """Returns a copy with the same state."""
        return type(self)(self)

    @classmethod
    def union(cls, *mhs: _engine.MinHash) -> "LeanMinHash":
        """Returns the union of two or more MinHashes."""
        return cls(super().union(*mhs))

    def bytesize(self, byteorder: str = "@") -> int:
        """Returns the number of bytes that :meth:`serialize` writes; ``byteorder`` is as in ``struct``."""
        return struct.calcsize(_format(byteorder, self.scheme, len(self)))

    def serialize(self, buf: Any, byteorder: str = "@") -> None:
        """Writes seed, number of values, scheme and hash values to the start of a buffer."""
        if len(buf) < self.bytesize(byteorder):
            raise ValueError(
                "The buffer does not have enough space for holding this MinHash: it has "
                f"{len(buf)} bytes, and {self.bytesize(byteorder)} are needed"
            )
        code, _ = _FORMATS[self.scheme]
        head = (self.seed, len(self)) if code is None else (self.seed, -len(self), code)
        form = _format(byteorder, self.scheme, len(self))
        struct.pack_into(form, buf, 0, *head, *self.hashvalues.tolist())

    @classmethod
    def deserialize(cls, buf: Any, byteorder: str = "@") -> "LeanMinHash":
        """Reads the bytes that :meth:`serialize` of this class or of any version of datasketch wrote."""
        _check(byteorder)
        buf = memoryview(buf)
        seed, number = struct.unpack_from(f"{byteorder}qi", buf, 0)
        code = None
        if number < 0:
            (code,) = struct.unpack_from(f"{byteorder}B", buf, struct.calcsize(f"{byteorder}qi"))
            if code not in _SCHEMES:
                raise ValueError(f"Unknown permutation scheme code: {code}")
        scheme = _SCHEMES[code]
        # The format with no values includes the padding before them, because "@" aligns.
        start = struct.calcsize(_format(byteorder, scheme, 0))
        values = struct.unpack_from(f"{byteorder}{abs(number)}{_FORMATS[scheme][1]}", buf, start)
        return cls(seed=seed, hashvalues=np.array(values, dtype=np.uint64), scheme=scheme)

    def __hash__(self) -> int:
        return hash((self.scheme, self.seed, self.hashvalues.tobytes()))

    def __repr__(self) -> str:
        return super().__repr__().replace("MinHash", "LeanMinHash", 1)

    def __reduce__(self) -> Any:
        return type(self), (None, self.seed, self.digest(), self.scheme)


def _format(byteorder: str, scheme: str, values: int) -> str:
    _check(byteorder)
    code, value = _FORMATS[scheme]
    return f"{byteorder}qi{values}{value}" if code is None else f"{byteorder}qiB{values}{value}"


def _check(byteorder: str) -> None:
    if byteorder not in ("@", "=", "<", ">", "!"):
        raise ValueError(f"byteorder is {byteorder!r}: give one of @ = < > !")
