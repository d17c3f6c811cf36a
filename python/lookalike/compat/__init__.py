"""Classes of other packages, with their names, calls and values. A migration changes one import.

>>> from lookalike.compat.datasketch import MinHash, MinHashLSH
>>> from lookalike.compat.rensa import RMinHash
>>> from lookalike.compat.simhash import Simhash

Each module has the names of the package that it is called after. Where these classes are indexes, they answer with
unverified candidates, as there; :func:`lookalike.dedup` and :class:`lookalike.Stream` verify every match on the texts.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import datasketch as datasketch
    from . import rensa as rensa
    from . import simhash as simhash
else:
    _SUBMODULES = ("datasketch", "rensa", "simhash")

    def __getattr__(name: str) -> object:
        if name in _SUBMODULES:
            from importlib import import_module

            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*(name for name in globals() if name.startswith("__")), *_SUBMODULES})
