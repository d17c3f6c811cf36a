"""Near-duplicate text detection with an exact threshold, and the evidence for every verdict.

>>> import lookalike as la
>>> result = la.dedup(["one and the same text", "something else", "One and the same text!"])
>>> result.kept
['one and the same text', 'something else']

Names, defaults and verdicts equal those of the command ``lookalike``. Further modules: ``lookalike.results`` and
``lookalike.errors`` have the classes of results and all exceptions, ``lookalike.service`` the clients,
``lookalike.compat`` classes with the names and values of other packages, and ``lookalike.pandas``, ``polars``,
``datasets``, ``sklearn``, ``spark`` and others the calls for these packages.
"""

from typing import TYPE_CHECKING

from ._engine import __version__ as __version__
from ._errors import BadRowError, InputError, LookalikeError, ServiceError, SettingError

__all__ = [
    "AsyncClient",
    "BadRowError",
    "Client",
    "HammingIndex",
    "Idf",
    "Index",
    "InputError",
    "LookalikeError",
    "LshIndex",
    "Recipe",
    "ServiceError",
    "SettingError",
    "Stream",
    "compare",
    "decontaminate",
    "dedup",
    "evaluate",
    "learn_forms",
    "minhash",
    "pairs",
    "passages",
    "presets",
    "segment",
    "simhash",
    "tune",
]

if TYPE_CHECKING:
    from . import compat as compat
    from . import errors as errors
    from . import results as results
    from . import service as service
    from ._async_client import AsyncClient
    from ._client import Client
    from ._decontaminate import decontaminate
    from ._hamming import HammingIndex, LshIndex
    from ._index import Index
    from ._labelled import Idf, evaluate, tune
    from ._passages import passages
    from ._presets import presets
    from ._recipe import Recipe
    from ._run import dedup, learn_forms, pairs
    from ._sketch import minhash, simhash
    from ._stream import Stream
    from ._texts import compare, segment
else:
    #: Modules of the names, which are loaded when they are first used. A program that only compares texts needs neither
    #: the clients with ``asyncio`` and ``ssl`` nor the classes of runs.
    _MODULES = {
        "AsyncClient": "_async_client",
        "Client": "_client",
        "HammingIndex": "_hamming",
        "Idf": "_labelled",
        "Index": "_index",
        "LshIndex": "_hamming",
        "Recipe": "_recipe",
        "Stream": "_stream",
        "compare": "_texts",
        "decontaminate": "_decontaminate",
        "dedup": "_run",
        "evaluate": "_labelled",
        "learn_forms": "_run",
        "minhash": "_sketch",
        "pairs": "_run",
        "passages": "_passages",
        "presets": "_presets",
        "segment": "_texts",
        "simhash": "_sketch",
        "tune": "_labelled",
    }

    #: Modules that need no other package. Those for other packages are imported by their names.
    _SUBMODULES = ("compat", "errors", "results", "service")

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _SUBMODULES:
            return import_module(f".{name}", __name__)
        if name in _MODULES:
            value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
            globals()[name] = value
            return value
        from ._former_names import FORMER_NAMES, find_former_name, refuse_absent_name

        if name in FORMER_NAMES:
            return find_former_name(name)
        refuse_absent_name(name)
        from difflib import get_close_matches

        similar = get_close_matches(name, __all__, 1)
        advice = f": perhaps {similar[0]} is meant" if similar else ""
        raise AttributeError(f"module 'lookalike' has no attribute {name!r}{advice}")

    def __dir__() -> list[str]:
        own = {name for name in globals() if name.startswith("__") or not name.startswith("_")}
        return sorted((own | {*__all__, *_SUBMODULES}) - {"TYPE_CHECKING"})
