"""Near-duplicate text detection with an exact threshold, and the evidence for every verdict.

>>> import lookalike as la
>>> result = la.dedup(["one and the same text", "something else", "One and the same text!"])
>>> result.kept
['one and the same text', 'something else']

Names, defaults and verdicts equal those of the command ``lookalike``.
"""

from ._async_client import AsyncClient, AsyncCollection
from ._async_lsh import AsyncMinHashLSH
from ._b_bit import bBitMinHash
from ._bloom import MinHashLSHBloom
from ._client import Client, Collection
from ._decontaminate import Decontaminated, decontaminate
from ._engine import MinHash, StreamVerdict, __version__
from ._ensemble import MinHashLSHEnsemble
from ._errors import (
    BadRowError,
    InputError,
    LimitError,
    LookalikeError,
    OutputError,
    RecipeError,
    ServiceError,
    SettingError,
)
from ._forest import MinHashLSHForest
from ._hamming import Alike, HammingIndex, LshIndex, Near
from ._hashfunc import sha1_hash32, sha1_hash64
from ._hyperloglog import HyperLogLog, HyperLogLogPlusPlus
from ._index import Index
from ._labelled import Idf, Tuned, evaluate, tune
from ._lean import LeanMinHash
from ._lsh import MinHashLSH
from ._passages import Passages, SharedPassage, SharedPassages, Spot, passages
from ._presets import Preset, presets
from ._recipe import RECIPES, Recipe
from ._redis_lsh import RedisMinHashLSH
from ._rensa import (
    CMinHash,
    CMinHashDeduplicator,
    RMinHash,
    RMinHashDeduplicator,
    RMinHashDigestMatrix,
    RMinHashLSH,
)
from ._run import Deduplicated, Pairs, dedup, learn_forms, pairs
from ._simhash import Simhash, SimhashIndex
from ._sketch import minhash, simhash
from ._stream import Stream
from ._texts import Comparison, Feature, Figure, Steps, compare, segment
from ._weighted import WeightedMinHash, WeightedMinHashGenerator

#: Names of datasketch for the indexes that take weighted MinHashes.
WeightedMinHashLSH = MinHashLSH
WeightedMinHashLSHForest = MinHashLSHForest

#: Classes of other packages that are not here, and the calls that do their work.
_ELSEWHERE = {
    "HNSW": "la.HammingIndex or la.Index, which search by distance",
}


def __getattr__(name: str) -> object:
    if name in _ELSEWHERE:
        raise AttributeError(f"lookalike has no {name}: use {_ELSEWHERE[name]}")
    raise AttributeError(f"module 'lookalike' has no attribute {name!r}")


__all__ = [
    "RECIPES",
    "Alike",
    "AsyncClient",
    "AsyncCollection",
    "AsyncMinHashLSH",
    "BadRowError",
    "CMinHash",
    "CMinHashDeduplicator",
    "Client",
    "Collection",
    "Comparison",
    "Decontaminated",
    "Deduplicated",
    "Feature",
    "Figure",
    "HammingIndex",
    "HyperLogLog",
    "HyperLogLogPlusPlus",
    "Idf",
    "Index",
    "InputError",
    "LeanMinHash",
    "LimitError",
    "LookalikeError",
    "LshIndex",
    "MinHash",
    "MinHashLSH",
    "MinHashLSHBloom",
    "MinHashLSHEnsemble",
    "MinHashLSHForest",
    "Near",
    "OutputError",
    "Pairs",
    "Passages",
    "Preset",
    "RMinHash",
    "RMinHashDeduplicator",
    "RMinHashDigestMatrix",
    "RMinHashLSH",
    "Recipe",
    "RecipeError",
    "RedisMinHashLSH",
    "ServiceError",
    "SettingError",
    "SharedPassage",
    "SharedPassages",
    "Simhash",
    "SimhashIndex",
    "Spot",
    "Steps",
    "Stream",
    "StreamVerdict",
    "Tuned",
    "WeightedMinHash",
    "WeightedMinHashGenerator",
    "WeightedMinHashLSH",
    "WeightedMinHashLSHForest",
    "__version__",
    "bBitMinHash",
    "compare",
    "decontaminate",
    "dedup",
    "evaluate",
    "learn_forms",
    "minhash",
    "pairs",
    "passages",
    "presets",
    "segment",
    "sha1_hash32",
    "sha1_hash64",
    "simhash",
    "tune",
]
