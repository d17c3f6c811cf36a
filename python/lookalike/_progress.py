"""Progress of long calls, as a bar of tqdm if it is installed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Protocol, Union

from ._arguments import refuse
from ._errors import SettingError


class Teller(Protocol):
    """A receiver of progress: the stage, and how much of it is done."""

    def __call__(self, stage: str, done: int, total: int, /) -> object: ...


#: True for a bar, False for none, None for one on a terminal, or a receiver.
Progress = Union[bool, Teller, None]

#: Unit of each stage.
_UNITS = {"read": "B", "write": "B", "decide": "docs"}


@contextmanager
def teller(progress: Progress) -> Iterator[Optional[Teller]]:
    """Yields the receiver of progress: None, the given function, or a bar that is closed at the end."""
    if callable(progress):
        yield progress
        return
    if progress is not None and not isinstance(progress, bool):
        refuse("progress", progress, "True, False, or a function of stage, done and total")
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise SettingError(
                "progress=True needs the package tqdm, which is not installed: install it, or leave progress out"
            ) from None
        yield None
        return
    bar = _Bar(tqdm)
    try:
        yield bar
    finally:
        bar.close()


class _Bar:
    """One progress bar for each stage in turn."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._stage: Optional[str] = None
        self._bar: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self.close()
            unit = _UNITS.get(stage, "")
            self._stage = stage
            self._bar = self._tqdm(
                total=total or None, desc=stage, unit=unit, unit_scale=True, leave=False
            )
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
