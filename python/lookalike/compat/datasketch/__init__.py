"""The classes of the package datasketch, with the values of its version 2.0.

>>> from lookalike.compat.datasketch import MinHash, MinHashLSH
>>> lsh, minhash = MinHashLSH(threshold=0.5, num_perm=128), MinHash(num_perm=128)
>>> minhash.update_batch([b"the", b"ferry", b"leaves"])
>>> lsh.insert("a", minhash)
>>> lsh.query(minhash)
['a']
"""

from typing import TYPE_CHECKING

from ..._async_lsh import AsyncMinHashLSH
from ..._b_bit import bBitMinHash
from ..._bloom import BloomTable, MinHashLSHBloom
from ..._engine import MinHash
from ..._ensemble import MinHashLSHEnsemble
from ..._forest import MinHashLSHForest
from ..._hashfunc import sha1_hash32, sha1_hash64
from ..._hyperloglog import HyperLogLog, HyperLogLogPlusPlus
from ..._lean import LeanMinHash
from ..._lsh import MinHashLSH
from ..._redis_lsh import RedisMinHashLSH
from ..._weighted import WeightedMinHash, WeightedMinHashGenerator

# The class of the engine has the module from which it is imported, so that pickles of the class name this one.
MinHash.__module__ = __name__

#: The indexes also take weighted MinHashes, for which datasketch has names of their own.
WeightedMinHashLSH = MinHashLSH
WeightedMinHashLSHForest = MinHashLSHForest

__all__ = [
    "AsyncMinHashLSH",
    "BloomTable",
    "HyperLogLog",
    "HyperLogLogPlusPlus",
    "LeanMinHash",
    "MinHash",
    "MinHashLSH",
    "MinHashLSHBloom",
    "MinHashLSHEnsemble",
    "MinHashLSHForest",
    "RedisMinHashLSH",
    "WeightedMinHash",
    "WeightedMinHashGenerator",
    "WeightedMinHashLSH",
    "WeightedMinHashLSHForest",
    "bBitMinHash",
    "sha1_hash32",
    "sha1_hash64",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "HNSW":
            # An import turns an AttributeError into a sentence of its own, without the advice.
            raise ImportError(
                "lookalike has no HNSW: use lookalike.HammingIndex or lookalike.Index, which search by distance"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
