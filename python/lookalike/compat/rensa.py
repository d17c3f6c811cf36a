"""The classes of the package rensa, with the digests of its version 0.5.

>>> from lookalike.compat.rensa import RMinHash
>>> a, b = RMinHash.from_token_sets([["the", "ferry"], ["the", "ferry"]], 128, 42)
>>> a.jaccard(b)
1.0
"""

from .._rensa import (
    CMinHash,
    CMinHashDeduplicator,
    RMinHash,
    RMinHashDeduplicator,
    RMinHashDigestMatrix,
    RMinHashLSH,
)

__all__ = [
    "CMinHash",
    "CMinHashDeduplicator",
    "RMinHash",
    "RMinHashDeduplicator",
    "RMinHashDigestMatrix",
    "RMinHashLSH",
]
