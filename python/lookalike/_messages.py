"""Messages of the engine in words of Python: arguments in place of options of the command, and calls as remedies."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from ._errors import InputError, LookalikeError

#: Options that have another name or another value in Python.
_ARGUMENTS = {
    "--distance-only": "distance_only=True",
    "--fingerprint": "an array of fingerprints",
    "--fingerprints": "an array of fingerprints",
    "--force": "replace=True",
    "--id-row": "id=False",
    "--strict": "strict=True",
    "--texts": "store_texts=True",
}

_CALLS = {"lookalike index add": "Index.add", "lookalike index build": "la.Index.build", "lookalike search": "Index.search"}

_OPTION = re.compile(r"(--[a-z]+(?:-[a-z]+)*)(?: ([0-9][0-9.]*[0-9]|[0-9]))?(?![a-z0-9-])")


@contextmanager
def in_words_of_python() -> Iterator[None]:
    """Raises the errors of the block with the arguments of Python in their messages."""
    try:
        yield
    except LookalikeError as error:
        told = str(error)
        reworded = python_words(told)
        if reworded == told:
            raise
        raise type(error)(reworded) from None


@contextmanager
def with_remedies(data: Any) -> Iterator[None]:
    """Raises the errors of the block about columns of the data with a call that helps."""
    try:
        yield
    except InputError as error:
        told = str(error)
        remedy = _remedy(told, data)
        if remedy is None:
            raise
        shown = _ARROW_TYPE.sub(lambda found: found[0].lower(), told)
        raise type(error)(f"{shown}: {remedy}") from None


#: Types of Arrow as the engine writes them, and pandas and pyarrow do not.
_ARROW_TYPE = re.compile(r"\b(?:U?Int(?:8|16|32|64)|Float(?:16|32|64)|Boolean)\b")

_MISSING_COLUMN = re.compile(r"data has no column `([^`]*)` among ")


def _remedy(message: str, data: Any) -> Optional[str]:
    """Returns what helps against an error about columns, or None if its message says all."""
    if message.endswith("which cannot be used as text"):
        return "convert it to strings, for example with `.astype(str)` in pandas"
    missing = _MISSING_COLUMN.match(message)
    index_names = getattr(getattr(data, "index", None), "names", None) or ()
    if missing and missing[1] in index_names:
        return f"`{missing[1]}` is the index of the frame: use `frame.reset_index()`"
    return None


def python_words(message: str) -> str:
    """Returns a message with calls and arguments of Python in place of commands and options."""
    message = message.replace("build the program with `--features object-store`", "use a wheel of a release")
    for command, call in _CALLS.items():
        message = message.replace(f"`{command}`", f"`{call}`")
    return _OPTION.sub(_argument_of, message)


def _argument_of(option: re.Match[str]) -> str:
    name, value = option.groups()
    if name in _ARGUMENTS:
        return _ARGUMENTS[name] + ("" if value is None else f" {value}")
    argument = name[2:].replace("-", "_")
    return argument if value is None else f"{argument}={value}"
