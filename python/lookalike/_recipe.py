"""Recipes. A recipe is all that determines a fingerprint."""

from __future__ import annotations

import json
import numbers
import os
from typing import Any, Union

from . import _engine
from ._errors import RecipeError

#: Names of the built-in recipes; ``default`` stands for the first.
RECIPES: tuple[str, ...] = tuple(_engine.RECIPES)


class Recipe(_engine.RecipeBase):
    """The settings that turn texts into features and sketches.

    ``Recipe("words-3")`` is a built-in recipe, ``Recipe("mine.toml")`` comes from a file,
    ``Recipe(toml_text)`` from TOML. Keyword arguments change fields, with the names of the TOML; the
    fields of a TOML table are a dictionary.

    >>> Recipe("default", ngram=3).ngram
    3
    >>> Recipe("default", simhash={"bits": 128}).bits
    128

    Two recipes are equal if all their fingerprints are equal; the names are ignored.
    """

    def __new__(cls, recipe: Union[str, "os.PathLike[str]"] = "default", /, **changes: Any):
        if not isinstance(recipe, (str, os.PathLike)):
            raise RecipeError(f"the recipe is {recipe!r}: give a name, a file or TOML")
        text = os.fspath(recipe)
        listed = [f"{key}={value}" for key, value in _flat("", changes)]
        return super().__new__(cls, text, listed, "\n" in text)

    def __repr__(self) -> str:
        return f"<Recipe {self.name} {self.hash}>"

    def __reduce__(self):
        return Recipe, (self.toml,)


RecipeLike = Union[str, "os.PathLike[str]", Recipe]


def recipe_of(recipe: RecipeLike) -> Recipe:
    """Returns a recipe from a `Recipe`, a name, a file or TOML."""
    return recipe if isinstance(recipe, Recipe) else Recipe(recipe)


def _flat(prefix: str, changes: dict[str, Any]):
    """Yields settings as dotted keys and TOML values."""
    for key, value in changes.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield prefix + key, _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)
    if not isinstance(value, (str, bool, int, float)):
        raise RecipeError(f"{value!r} is not a valid value in a recipe: give a string, a number, True, False or a list")
    return json.dumps(value, ensure_ascii=False)
