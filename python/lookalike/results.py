"""The classes of results, for annotations and ``isinstance``. The functions of the package make them.

>>> import lookalike as la
>>> from lookalike.results import Deduplicated
>>> isinstance(la.dedup(["one and the same text", "One and the same text!"]), Deduplicated)
True
"""

from ._decontaminate import Decontaminated
from ._hamming import HammingMatches, SignatureMatches
from ._labelled import TuningResult
from ._passages import PassagePlace, Passages, SharedPassage, SharedPassages
from ._presets import Preset
from ._result_tables import RejectedRow
from ._run import Deduplicated, Pairs
from ._stream import StreamVerdict
from ._texts import Comparison, Feature, MeasuredValue, RecipeSteps

__all__ = [
    "Comparison",
    "Decontaminated",
    "Deduplicated",
    "Feature",
    "HammingMatches",
    "MeasuredValue",
    "Pairs",
    "PassagePlace",
    "Passages",
    "Preset",
    "RecipeSteps",
    "RejectedRow",
    "SharedPassage",
    "SharedPassages",
    "SignatureMatches",
    "StreamVerdict",
    "TuningResult",
]
