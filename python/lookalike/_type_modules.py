"""Modules of other packages that annotations name, which are loaded when somebody evaluates an annotation.

>>> import typing, lookalike as la
>>> typing.get_type_hints(la.Index.search)["return"]
<class 'pyarrow.lib.Table'>
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class TypeModule:
    """A module that is loaded with its first attribute. The types of a package that is not installed are ``Any``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            module = import_module(self._name)
        except ImportError:
            return Any
        return getattr(module, name)


pa, pd, pl = (TypeModule(name) for name in ("pyarrow", "pandas", "polars"))
