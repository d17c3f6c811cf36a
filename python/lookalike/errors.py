"""All exceptions of the package. Messages name the value, the limit and the place.

>>> from lookalike.errors import LookalikeError, RecipeError
>>> issubclass(RecipeError, LookalikeError) and issubclass(RecipeError, ValueError)
True
"""

from ._errors import (
    ArgumentTypeError,
    BadRowError,
    InputError,
    LimitError,
    LookalikeError,
    MissingFileError,
    MissingRecipeError,
    OutputError,
    RecipeError,
    ServiceError,
    SettingError,
)

__all__ = [
    "ArgumentTypeError",
    "BadRowError",
    "InputError",
    "LimitError",
    "LookalikeError",
    "MissingFileError",
    "MissingRecipeError",
    "OutputError",
    "RecipeError",
    "ServiceError",
    "SettingError",
]
