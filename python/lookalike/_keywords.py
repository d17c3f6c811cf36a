"""Refusals of keyword arguments that a call does not have. They name the argument that is probably meant."""

from __future__ import annotations

import difflib
import inspect
from functools import wraps
from typing import Any, Callable, Collection, NoReturn, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])

#: Arguments that other calls or other packages have, and what replaces them.
_ADVICE = {
    "forms": "it learns no forms, and uses those of its recipe, for example recipe=la.Recipe(\"default\", forms=\"forms.toml\")",
    "num_perm": "leave it out, because every match is verified on the texts, and threshold decides",
}


def suggest_keywords(function: _F) -> _F:
    """Returns a function that refuses unknown keyword arguments with the name of the nearest argument.

    >>> import lookalike as la
    >>> la.dedup(["a text"], treshold=0.8)
    Traceback (most recent call last):
        ...
    TypeError: dedup() got an unexpected keyword argument 'treshold': perhaps threshold is meant
    """
    known = frozenset(inspect.signature(function).parameters)

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        if not named.keys() <= known:
            _refuse_keyword(function, known, next(name for name in named if name not in known))
        return function(*positional, **named)

    return cast(_F, call)


def _refuse_keyword(function: Callable[..., Any], known: Collection[str], name: str) -> NoReturn:
    similar = difflib.get_close_matches(name, sorted(known), 1)
    advice = _ADVICE.get(name) or (f"perhaps {similar[0]} is meant" if similar else "")
    told = f"{function.__qualname__.removesuffix('.__new__')}() got an unexpected keyword argument {name!r}"
    raise TypeError(f"{told}: {advice}" if advice else told)
