"""The exceptions of the package. Messages name the value, the limit and the place."""

import errno
import os
import re
from contextlib import contextmanager
from typing import Any, Iterator, Optional


class LookalikeError(Exception):
    """The base class of the exceptions of this package.

    Three kinds of errors are not of it: a service that gives no answer raises ``OSError`` (``ConnectionError``,
    ``TimeoutError``), an answer that breaks off ``http.client.IncompleteRead``, and a call in a form that it does not have,
    for example with an unknown argument, ``TypeError``, as everywhere in Python.

    >>> import lookalike as la
    >>> try:
    ...     la.dedup(["a text"], threshold=2)
    ... except la.LookalikeError as error:
    ...     print(error)
    the threshold 2 is not above 0 and at most 1: give a similarity such as 0.8
    """


class SettingError(LookalikeError, ValueError):
    """A setting outside its range, or settings that contradict each other.

    >>> import lookalike as la
    >>> la.dedup(["a text"], method="minhash", distance=3)
    Traceback (most recent call last):
        ...
    lookalike._errors.SettingError: distance=3 is for fingerprints: add method="simhash", or give a similarity with threshold
    """


class RecipeError(LookalikeError, ValueError):
    """A recipe that cannot be read, or that asks for something impossible.

    >>> import lookalike as la
    >>> la.Recipe("default", ngram=33)
    Traceback (most recent call last):
        ...
    lookalike._errors.RecipeError: default with ngram=33: recipe 'default-1+': ngram is 33, but must be 1 to 32
    """


class InputError(LookalikeError, ValueError):
    """Data that cannot be read or understood as a whole.

    >>> import lookalike as la
    >>> la.dedup([{"id": "1", "body": "a text"}])
    Traceback (most recent call last):
        ...
    lookalike._errors.InputError: data has no column `text` among `id`, `body`; perhaps `body` is meant
    """


class ArgumentTypeError(SettingError, InputError, TypeError):
    """An argument of a wrong type. It is a ``TypeError``, and like other refusals of arguments a :class:`SettingError` and
    an :class:`InputError`.

    >>> import lookalike as la
    >>> la.dedup(["a text"], threshold="0.8")
    Traceback (most recent call last):
        ...
    lookalike._errors.ArgumentTypeError: threshold is '0.8': give a number
    """


class MissingFileError(InputError, FileNotFoundError):
    """A file or directory that does not exist. It is also a ``FileNotFoundError`` with ``errno`` and ``filename``.

    >>> import lookalike as la
    >>> try:
    ...     la.Index("nowhere")
    ... except FileNotFoundError as error:
    ...     print(error.filename, isinstance(error, la.InputError))
    nowhere True
    """

    def __init__(self, message: str, path: Any = None) -> None:
        # By its name, because the other base class comes first and has no errno.
        FileNotFoundError.__init__(self, errno.ENOENT, message)
        self._message = message
        self.filename = path

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> Any:
        return type(self), (self._message, self.filename)


class MissingRecipeError(RecipeError, MissingFileError):
    """The file of a recipe that does not exist.

    >>> import lookalike as la
    >>> try:
    ...     la.Recipe("nowhere.toml")
    ... except FileNotFoundError as error:
    ...     print(error.filename)
    nowhere.toml
    """


class BadRowError(InputError):
    """A row that cannot be used, in a run with ``strict=True``.

    ``source`` is its input, such as ``data`` or a file, ``row`` its number from 1, ``position`` its number from 0, and
    ``reason`` the rest of the message. The first three are None where the message names no row.

    >>> import lookalike as la
    >>> try:
    ...     la.dedup(["a text", None], strict=True)
    ... except la.BadRowError as error:
    ...     print(error)
    ...     print(error.source, error.row, error.position, error.reason)
    data:2: the field `text` is null, not a string
    data 2 1 the field `text` is null, not a string
    """

    source: Optional[str] = None
    row: Optional[int] = None
    position: Optional[int] = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.reason = message
        placed = re.match(r"(.+?):([0-9]+): (.*)", message, re.DOTALL)
        if placed:
            self.source, self.row, self.reason = placed[1], int(placed[2]), placed[3]
            self.position = self.row - 1


class LimitError(LookalikeError, ValueError):
    """A stated limit was exceeded, for example 4,294,967,294 documents in a run.

    >>> import lookalike as la
    >>> from lookalike.errors import LimitError
    >>> try:
    ...     kept = la.dedup(["a text", "A text!"]).kept
    ... except LimitError as error:
    ...     print("run it in parts:", error)
    """


class OutputError(LookalikeError, RuntimeError):
    """A result that could not be produced.

    >>> import lookalike as la
    >>> la.Idf.learn(["a text"]).save("nowhere/idf.tsv")
    Traceback (most recent call last):
        ...
    lookalike._errors.OutputError: cannot write nowhere/idf.tsv: No such file or directory
    """


class ServiceError(LookalikeError, RuntimeError):
    """A refusal of the service.

    ``status`` is the HTTP status, ``code`` the stable name of the problem, ``detail`` the sentence that
    explains it, and ``request_id`` the id under which the log of the service has the request.

    >>> import lookalike as la
    >>> error = la.ServiceError(404, "not-found", "there is no such document", "a1-7")
    >>> error.status, str(error), error.request_id
    (404, 'not-found (404): there is no such document', 'a1-7')
    """

    def __init__(self, status: int, code: str, detail: str, request_id: Optional[str] = None) -> None:
        super().__init__(f"{code} ({status}): {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id

    def __reduce__(self) -> Any:
        return type(self), (self.status, self.code, self.detail, self.request_id)


@contextmanager
def as_missing_file(path: Any) -> Iterator[None]:
    """Raises errors of the block as those of a missing file, if there is no file of that path."""
    try:
        yield
    except (InputError, FileNotFoundError) as error:
        if isinstance(error, MissingFileError) or os.path.exists(path):
            raise
        shown = f"there is no file {os.fspath(path)}" if error.args[:1] == (errno.ENOENT,) else str(error)
        raise MissingFileError(shown, os.fspath(path)) from error
