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
    "resume": "only the command goes on where a run was killed, with --work",
    "num_perm": "leave it out, because every match is verified on the texts, and threshold decides",
}

#: The same for calls that make signatures or have them.
_SIGNATURE_ADVICE = {"num_perm": 'the recipe has the number of slots, for example recipe={"minhash": {"slots": 64}}'}
_SIGNATURE_CALLS = ("minhash", "LshIndex.__new__")

#: Arguments of other packages, by the argument that replaces them.
_OTHER_NAMES = {
    "threads": ("n_jobs", "n_workers", "num_proc", "num_workers", "workers", "jobs", "n_threads", "num_threads"),
    "text": ("column", "columns", "text_column", "text_field", "field"),
    "id": ("id_column", "id_field", "key"),
}


def suggest_keywords(function: _F) -> _F:
    """Returns a function that refuses unknown keyword arguments with the name of the nearest argument, and arguments
    that are given without a name with a name that is probably meant.

    >>> import lookalike as la
    >>> la.dedup(["a text"], treshold=0.8)
    Traceback (most recent call last):
        ...
    TypeError: dedup() got an unexpected keyword argument 'treshold': perhaps threshold is meant
    >>> la.dedup(["a text"], 0.8)
    Traceback (most recent call last):
        ...
    TypeError: dedup() takes from 0 to 1 positional arguments but 2 were given: perhaps threshold=0.8 is meant
    """
    parameters = inspect.signature(function).parameters
    known = frozenset(parameters)
    places = sum(one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD) for one in parameters.values())

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        if not named.keys() <= known:
            _refuse_keyword(function, known, next(name for name in named if name not in known))
        if len(positional) > places:
            _refuse_positional(function, known, positional, named, positional[places])
        return function(*positional, **named)

    return cast(_F, call)


def advise_keyword(name: str, known: Collection[str], function: str = "") -> str:
    """Returns what an unknown argument probably means, after a colon; an empty string if nothing is known about it."""
    advice = (_SIGNATURE_ADVICE if function in _SIGNATURE_CALLS else _ADVICE).get(name)
    if advice:
        return f": {advice}"
    for current, others in _OTHER_NAMES.items():
        if name in others and current in known:
            return f": use {current}"
    similar = difflib.get_close_matches(name, sorted(known), 1)
    return f": perhaps {similar[0]} is meant" if similar else ""


def advise_argument(name: str, function: Callable[..., Any], further: Collection[str] = ()) -> str:
    """Returns the same for a function that takes further arguments by their names."""
    parameters = inspect.signature(function).parameters.values()
    return advise_keyword(name, [*(one.name for one in parameters if one.kind != one.VAR_KEYWORD), *further])


def _refuse_keyword(function: Callable[..., Any], known: Collection[str], name: str) -> NoReturn:
    called = function.__qualname__
    advice = advise_keyword(name, known, called)
    raise TypeError(f"{called.removesuffix('.__new__')}() got an unexpected keyword argument {name!r}{advice}")


def _refuse_positional(
    function: Callable[..., Any], known: Collection[str], positional: Any, named: Any, first: Any
) -> None:
    """Raises the error of Python with the name of the first argument that is one too many."""
    try:
        function(*positional, **named)
    except TypeError as error:
        raise TypeError(f"{error}{_advise_positional(first, known)}") from None


def _advise_positional(value: Any, known: Collection[str]) -> str:
    is_share = isinstance(value, float) and 0 < value <= 1
    name = "threshold" if is_share else "text" if isinstance(value, str) else ""
    return f": perhaps {name}={value!r} is meant" if name in known else ": give the further ones by their names"
