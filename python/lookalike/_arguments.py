"""Checks of argument types. Refusals name the argument, its value and the accepted values.

None stands for an argument that was not given; most checks accept it.
"""

from __future__ import annotations

import numbers
import os
from typing import Any, NoReturn, Optional, Sequence

import numpy as np

from ._errors import ArgumentTypeError, MissingFileError, SettingError

#: Largest number of threads, as on the command line.
_MOST_THREADS = 1024


def refuse(name: str, value: Any, wanted: str) -> NoReturn:
    """Raises a SettingError that names the argument, its value and the accepted values."""
    raise SettingError(_refusal(name, value, wanted))


def refuse_type(name: str, value: Any, wanted: str) -> NoReturn:
    """Raises an ArgumentTypeError that names the argument, its value and the accepted types."""
    raise ArgumentTypeError(_refusal(name, value, wanted))


def _refusal(name: str, value: Any, wanted: str) -> str:
    shown = repr(value)
    if len(shown) > 60:
        shown = f"of the type {type(value).__name__}"
    return f"{name} is {shown}: give {wanted}"


def needed(name: str, value: Any, wanted: str) -> Any:
    """Returns a value that must be given."""
    if value is None:
        refuse_type(name, value, wanted)
    return value


def number(name: str, value: Any) -> Optional[float]:
    """Returns a number that is not a bool."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        refuse_type(name, value, "a number")
    return value  # type: ignore[return-value]


def whole(name: str, value: Any, least: int = 0, most: int = 2**32 - 1) -> Optional[int]:
    """Returns a whole number from ``least`` to ``most``."""
    if value is None:
        return None
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole:
        refuse_type(name, value, f"a whole number from {least} to {most}")
    if not least <= int(value) <= most:
        refuse(name, value, f"a whole number from {least} to {most}")
    return int(value)


def given_whole(name: str, value: Any, least: int = 0, most: int = 2**32 - 1) -> int:
    """Returns a whole number that must be given, from ``least`` to ``most``."""
    number = whole(name, needed(name, value, f"a whole number from {least} to {most}"), least, most)
    assert number is not None
    return number


def word(name: str, value: Any, wanted: str = "a string") -> Optional[str]:
    """Returns a string."""
    if value is not None and not isinstance(value, str):
        refuse_type(name, value, wanted)
    return value


def one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuses a value that is none of the choices."""
    if value not in choices:
        refuse(name, value, " or ".join(repr(choice) for choice in choices))


def choice_or_path(name: str, value: Any, choices: Sequence[str], wanted: str) -> Optional[str]:
    """Returns the name of a choice, or the path of a file that is there as a string."""
    if value is not None and not isinstance(value, (str, os.PathLike)):
        refuse_type(name, value, wanted)
    path = None if value is None else os.fspath(value)
    if path is None or path in choices or os.path.exists(path):
        return path
    raise MissingFileError(f"{name} is {path!r}, and there is no such file: give {wanted}", path)


def truth(name: str, value: Any) -> bool:
    """Returns True or False."""
    if not isinstance(value, (bool, np.bool_)):
        refuse_type(name, value, "True or False")
    return bool(value)


def audit(value: Any) -> Optional[int]:
    """Returns the number of documents to sample; for 0 the run chooses it, and for None there is no audit."""
    if isinstance(value, bool):
        return 0 if value else None
    return whole("audit", value, 1)


def threads(value: Any) -> Optional[int]:
    """Returns a number of threads."""
    return whole("threads", value, 1, _MOST_THREADS)


def bands(params: Any) -> Optional[tuple[int, int]]:
    """Returns the numbers of bands and of rows."""
    if params is None:
        return None
    if not isinstance(params, Sequence) or isinstance(params, str) or len(params) != 2:
        refuse("params", params, "the numbers of bands and of rows")
    for part in params:
        needed("params", None if part is None else params, "the numbers of bands and of rows")
    return given_whole("the number of bands", params[0], 1), given_whole("the number of rows", params[1], 1)


def array(what: str, values: Any) -> np.ndarray:
    """Returns whole numbers from 0 to 2**64 - 1 as an array of integers."""
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        given = values if isinstance(values, np.ndarray) else np.asarray(values)
        if given.size == 0:
            return given.astype(np.uint64)
        if given.dtype.kind not in "iu" or (given.dtype.kind == "i" and given.min() < 0):
            raise ArgumentTypeError(f"{what} has the type {given.dtype}: give whole numbers from 0, as uint64")
        return given
    objects = np.array(values, dtype=object)
    for value in objects.flat:
        is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not is_whole or not 0 <= value < 2**64:
            raise (SettingError if is_whole else ArgumentTypeError)(f"{what} contains {value!r}: give whole numbers from 0 to 2**64 - 1")
    return objects.astype(np.uint64)


def names(name: str, value: Any) -> list[str]:
    """Returns the name of a field, or several, as a list."""
    several, wanted = [value] if isinstance(value, str) else value, "the name of a field, or several"
    if not isinstance(several, Sequence) or not all(isinstance(one, str) for one in several):
        refuse_type(name, value, wanted)
    if not several:
        refuse(name, value, wanted)
    return list(several)


def reading(text: Any, id: Any, features: Any = None) -> dict[str, Any]:
    """Returns the settings of the engine for reading rows."""
    if id is True or (id is not None and id is not False and not isinstance(id, str)):
        refuse_type("id", id, "the name of the field with the ids, or False for the numbers of the rows")
    return {
        "text": names("text", text),
        "id": None if id is False else id,
        "id_row": id is False,
        "features": word("features", features),
    }


def rule(
    method: Any = None,
    threshold: Any = None,
    distance: Any = None,
    candidates: Any = None,
    sentences: Any = None,
    verify: Any = None,
    unit: Any = None,
) -> dict[str, Any]:
    """Returns the match options of the engine."""
    return {
        "method": word("method", method),
        "threshold": number("threshold", threshold),
        "distance": whole("distance", distance),
        "candidates": word("candidates", candidates),
        "sentences": whole("sentences", sentences),
        "verify": word("verify", verify),
        "unit": word("unit", unit),
    }
