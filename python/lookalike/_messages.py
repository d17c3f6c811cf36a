"""Messages of the engine about index directories, with the arguments of Python in place of the options of the command."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Iterator

from ._errors import LookalikeError

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

_CALLS = {"lookalike index add": "Index.add", "lookalike index build": "Index.build", "lookalike search": "Index.search"}

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
