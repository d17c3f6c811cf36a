"""Near-duplicate text: exactly as similar as you asked, with the evidence for every verdict.

>>> import lookalike as la
>>> result = la.dedup(["one and the same text", "something else", "One and the same text!"])
>>> result.kept
['one and the same text', 'something else']

Names, defaults and verdicts are those of the command ``lookalike``.
"""

from ._engine import __version__
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
from ._recipe import RECIPES, Recipe
from ._run import Deduplicated, Pairs, dedup, pairs
from ._sketch import minhash, simhash

__all__ = [
    "RECIPES",
    "BadRowError",
    "Deduplicated",
    "InputError",
    "LimitError",
    "LookalikeError",
    "OutputError",
    "Pairs",
    "Recipe",
    "RecipeError",
    "ServiceError",
    "SettingError",
    "__version__",
    "dedup",
    "minhash",
    "pairs",
    "simhash",
]
