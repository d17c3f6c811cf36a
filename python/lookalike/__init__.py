"""Near-duplicate text detection with an exact threshold, and the evidence for every verdict.

>>> import lookalike as la
>>> result = la.dedup(["one and the same text", "something else", "One and the same text!"])
>>> result.kept
['one and the same text', 'something else']

Names, defaults and verdicts equal those of the command ``lookalike``.
"""

from ._client import Client, Collection
from ._engine import MinHash, __version__
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
from ._hamming import Alike, HammingIndex, LshIndex, Near
from ._labelled import Idf, Tuned, evaluate, tune
from ._lean import LeanMinHash
from ._lsh import MinHashLSH
from ._passages import Passages, SharedPassage, SharedPassages, Spot, passages
from ._presets import Preset, presets
from ._recipe import RECIPES, Recipe
from ._run import Deduplicated, Pairs, dedup, pairs
from ._simhash import Simhash, SimhashIndex
from ._sketch import minhash, simhash
from ._texts import Comparison, Feature, Figure, Steps, compare, segment

__all__ = [
    "RECIPES",
    "Alike",
    "BadRowError",
    "Client",
    "Collection",
    "Comparison",
    "Deduplicated",
    "Feature",
    "Figure",
    "HammingIndex",
    "Idf",
    "InputError",
    "LeanMinHash",
    "LimitError",
    "LookalikeError",
    "LshIndex",
    "MinHash",
    "MinHashLSH",
    "Near",
    "OutputError",
    "Pairs",
    "Passages",
    "Preset",
    "Recipe",
    "RecipeError",
    "ServiceError",
    "SettingError",
    "SharedPassage",
    "SharedPassages",
    "Simhash",
    "SimhashIndex",
    "Spot",
    "Steps",
    "Tuned",
    "__version__",
    "compare",
    "dedup",
    "evaluate",
    "minhash",
    "pairs",
    "passages",
    "presets",
    "segment",
    "simhash",
    "tune",
]
