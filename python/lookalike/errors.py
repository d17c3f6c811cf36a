"""All exceptions of the package. Messages name the value, the limit and the place.

>>> from lookalike.errors import LookalikeError, RecipeError
>>> issubclass(RecipeError, LookalikeError) and issubclass(RecipeError, ValueError)
True
"""

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

__all__ = [
    "BadRowError",
    "InputError",
    "LimitError",
    "LookalikeError",
    "OutputError",
    "RecipeError",
    "ServiceError",
    "SettingError",
]
