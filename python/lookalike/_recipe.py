"""Recipes. A recipe is all that determines a fingerprint."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Union

from . import _engine
from ._errors import RecipeError

class Recipe(_engine.RecipeBase):
    """The settings that turn texts into features and sketches.

    ``Recipe("words-3")`` is a built-in recipe, ``Recipe("mine.toml")`` comes from a file,
    ``Recipe(toml_text)`` from TOML. Keyword arguments change fields, with the names of the TOML; the
    fields of a TOML table are a dictionary. ``Recipe({"ngram": 3})`` is the recipe ``default`` with these changes, or
    that which the key ``base`` names.

    >>> Recipe("default", ngram=3).ngram
    3
    >>> Recipe("default", simhash={"bits": 128}).bits
    128

    Two recipes are equal if all their fingerprints are equal; the names are ignored.
    """

    #: Names of the built-in recipes; ``default`` stands for the first.
    built_in: ClassVar[tuple[str, ...]] = tuple(_engine.RECIPES)

    def __new__(
        cls, recipe: Union[str, "os.PathLike[str]", Mapping[str, Any]] = "default", /, **changes: Any
    ) -> "Recipe":
        if isinstance(recipe, Mapping):
            fields = {**recipe, **changes}
            recipe, changes = fields.pop("base", "default"), fields
        if not isinstance(recipe, (str, os.PathLike)):
            raise RecipeError(f"the recipe is {recipe!r}: give a name, a file, TOML or a dictionary")
        text = os.fspath(recipe)
        listed = [f"{key}={value}" for key, value in _flat("", changes)]
        return super().__new__(cls, text, listed, "\n" in text)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<Recipe {self.name} {self.hash}>"

    def without_forms(self) -> "Recipe":
        """Returns the recipe without its table of forms."""
        return Recipe(super().without_forms().toml)

    def choose_forms(self, choice: Union[str, "os.PathLike[str]"]) -> "Recipe":
        """Returns the recipe with other forms: "off", or the file of a table that :func:`learn_forms` wrote."""
        plain = self.without_forms()
        return plain if choice == "off" else Recipe(plain.toml, name=self.name, forms=os.fspath(choice))

    def __reduce__(self) -> Any:
        return Recipe, (self.toml,)


RecipeLike = Union[str, "os.PathLike[str]", Recipe, Mapping[str, Any]]

#: Built-in recipes by their names. Loading one takes milliseconds, and it never changes; a file can change.
_LOADED: dict[str, Recipe] = {}


def recipe_of(recipe: RecipeLike) -> Recipe:
    """Returns a recipe from a `Recipe`, a name, a file, TOML or a dictionary."""
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(getattr(recipe, "recipe", None), Recipe):
        # A preset, whose threshold would be lost.
        name = getattr(recipe, "name", None)
        raise RecipeError(f"the recipe is the preset {name}: give its recipe, la.presets[{name!r}].recipe, and its threshold")
    if not isinstance(recipe, str) or (recipe != "default" and recipe not in Recipe.built_in):
        return Recipe(recipe)
    if recipe not in _LOADED:
        _LOADED[recipe] = Recipe(recipe)
    return _LOADED[recipe]


def _flat(prefix: str, changes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields settings as dotted keys and TOML values."""
    for key, value in changes.items():
        if isinstance(value, Mapping):
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
