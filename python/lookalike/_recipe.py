"""Recipes. A recipe is all that determines a fingerprint."""

from __future__ import annotations

import difflib
import json
import numbers
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Union

from . import _arguments as arguments
from . import _engine
from ._errors import MissingRecipeError, RecipeError


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
            arguments.refuse_type("the recipe", recipe, "a name, a file, TOML or a dictionary")
        text = os.fspath(recipe)
        listed = [f"{key}={value}" for key, value in _flat("", changes)]
        try:
            return super().__new__(cls, text, listed, "\n" in text)  # type: ignore[return-value]
        except RecipeError as error:
            told = str(error)
            if told.startswith("cannot read the recipe ") and not os.path.exists(text):
                raise MissingRecipeError(told, text) from error
            reworded = _in_words_of_changes(told, dict(_flat("", changes)))
            if reworded == told:
                raise
            raise RecipeError(reworded) from None

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


_IN_TOML = re.compile(r": this is not a recipe: `(\w+) = (.*)`, line \d+: (.*)", re.DOTALL)
_UNKNOWN = re.compile(r"unknown (field|variant) `(.*)`, expected one of (.*)")

#: Accepted values of fields, for a value of a wrong type.
_WANTED = {"ngram": "a whole number from 1 to 32"}


def _in_words_of_changes(message: str, changes: Mapping[str, str]) -> str:
    """Returns a message about a line of TOML as one about a field that was given as an argument."""
    line = _IN_TOML.search(message)
    names = [] if line is None else [key for key in changes if key.rpartition(".")[2] == line[1]]
    if line is None or not names:
        return message
    return f"{message[: line.start()]}: {_problem_of(names[0], line[2], line[3])}"


def _problem_of(name: str, value: str, reason: str) -> str:
    """Returns what is wrong with a field of a recipe and its value in TOML."""
    unknown = _UNKNOWN.fullmatch(reason)
    if unknown is None:
        wanted = _WANTED.get(name) or ("a whole number" if "expected u" in reason else None)
        return f"{name} is {_shown(value)}: {reason if wanted is None else f'give {wanted}'}"
    similar = difflib.get_close_matches(unknown[2], re.findall("`(.*?)`", unknown[3]), 1)
    advice = f"perhaps `{similar[0]}` is meant, of {unknown[3]}" if similar else f"give one of {unknown[3]}"
    problem = f"`{name}`: a recipe has no such field" if unknown[1] == "field" else f"{name} is {_shown(value)}"
    return f"{problem}: {advice}"


def _shown(value: str) -> str:
    """Returns a value in TOML as Python writes it."""
    try:
        return repr(json.loads(value))
    except ValueError:
        return value


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
