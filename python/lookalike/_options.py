"""Keyword arguments of runs as types, for calls that pass them on: type checkers then refuse unknown ones there, too.

The calls themselves list their arguments, and a test compares the two.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union

from ._choices import Candidates, IdField, Measure, Method, Unit
from ._data import Names
from ._progress import Progress
from ._recipe import RecipeLike
from ._run import Features, WeightBy, Window

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
else:
    try:
        from typing import Unpack
    except ImportError:

        class Unpack:
            """Stands for the type of Python 3.11, so that annotations can be evaluated before."""

            def __class_getitem__(cls, options: Any) -> Any:
                return options


class RunSettings(TypedDict, total=False):
    """Arguments that :func:`lookalike.dedup` and :func:`lookalike.pairs` have, without the fields of the data."""

    threshold: Optional[float]
    method: Optional[Method]
    distance: Optional[int]
    candidates: Optional[Candidates]
    sentences: Optional[int]
    recipe: RecipeLike
    forms: Union[str, "os.PathLike[str]", None]
    verify: Optional[Measure]
    unit: Optional[Unit]
    within: Optional[str]
    window: Optional[Window]
    time: Optional[str]
    against: Any
    features: Features
    audit: Union[int, bool, None]
    strict: bool
    threads: Optional[int]
    progress: Progress


class DedupSettings(RunSettings, total=False):
    """Arguments of :func:`lookalike.dedup` without the fields of the data."""

    keep: Optional[str]
    components: bool
    keep_count: Optional[int]
    drop_all: Union[int, bool, None]
    copies: Optional[str]
    sources: Optional[str]
    most_sources: int
    weight: Optional[str]
    weight_by: WeightBy


class DedupOptions(DedupSettings, total=False):
    """Keyword arguments of :func:`lookalike.dedup`, of data in memory."""

    text: Names
    id: IdField


class PairsOptions(RunSettings, total=False):
    """Keyword arguments of :func:`lookalike.pairs`, of data in memory."""

    text: Names
    id: IdField
    all: bool
    distinct: bool
    apart: bool


class SketchOptions(TypedDict, total=False):
    """Keyword arguments of :func:`lookalike.simhash` and :func:`lookalike.minhash`."""

    recipe: RecipeLike
    threads: Optional[int]
