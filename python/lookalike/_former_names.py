"""Names that were at the top of the package before 0.1, and where they are now.

They work in 0.1, with a warning, and will be removed in 0.2. Type checkers do not see them.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import FrameType

_DATASKETCH = (
    "AsyncMinHashLSH HyperLogLog HyperLogLogPlusPlus LeanMinHash MinHash MinHashLSH MinHashLSHBloom MinHashLSHEnsemble "
    "MinHashLSHForest RedisMinHashLSH WeightedMinHash WeightedMinHashGenerator WeightedMinHashLSH "
    "WeightedMinHashLSHForest bBitMinHash sha1_hash32 sha1_hash64"
)
_RENSA = "CMinHash CMinHashDeduplicator RMinHash RMinHashDeduplicator RMinHashDigestMatrix RMinHashLSH"
_RESULTS = (
    "Comparison Decontaminated Deduplicated Feature Pairs Passages Preset SharedPassage SharedPassages StreamVerdict"
)

#: The module and the name that replace each former name.
FORMER_NAMES: dict[str, tuple[str, str]] = {
    **{name: ("lookalike.compat.datasketch", name) for name in _DATASKETCH.split()},
    **{name: ("lookalike.compat.rensa", name) for name in _RENSA.split()},
    **{name: ("lookalike.compat.simhash", name) for name in ("Simhash", "SimhashIndex")},
    **{name: ("lookalike.results", name) for name in _RESULTS.split()},
    **{name: ("lookalike.errors", name) for name in ("LimitError", "OutputError", "RecipeError")},
    **{name: ("lookalike.service", name) for name in ("AsyncCollection", "Collection")},
    "Alike": ("lookalike.results", "SignatureMatches"),
    "Figure": ("lookalike.results", "MeasuredValue"),
    "Near": ("lookalike.results", "HammingMatches"),
    "Spot": ("lookalike.results", "PassagePlace"),
    "Steps": ("lookalike.results", "RecipeSteps"),
    "Tuned": ("lookalike.results", "TuningResult"),
    "RECIPES": ("lookalike.Recipe", "built_in"),
}


#: Classes of other packages that are not here, and the calls that do their work.
ABSENT_NAMES = {"HNSW": "la.HammingIndex or la.Index, which search by distance"}


def refuse_absent_name(name: str) -> None:
    """Refuses a name of another package with the calls that do its work."""
    if name not in ABSENT_NAMES:
        return
    advice = f"lookalike has no {name}: use {ABSENT_NAMES[name]}"
    # `from lookalike import …` asks through `importlib`, which drops the words of an AttributeError.
    raise ImportError(advice) if _is_of_importlib(sys._getframe(2)) else AttributeError(advice)


def find_former_name(name: str) -> object:
    """Returns what a former name stood for, with a warning that names its place."""
    module, current = FORMER_NAMES[name]
    # `from lookalike import …` asks twice, of which `importlib` is the first one, which needs no warning.
    if not _is_of_importlib(sys._getframe(2)):
        # The warning is for the line that uses the name: this function and `__getattr__` of the package are above it.
        message = f"lookalike.{name} is now {module}.{current}; the former name will be removed in 0.2"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
    if name == "RECIPES":
        from ._recipe import Recipe

        return Recipe.built_in
    return getattr(importlib.import_module(module), current)


def _is_of_importlib(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "importlib._bootstrap"
