"""The numbers of copies and the weights of kept rows, in runs over many machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Container, Iterable, Optional, Sequence

from . import _engine
from ._data import refuse_taken
from ._errors import SettingError
from ._run import member_settings

#: Arguments of :func:`lookalike.dedup` that need all members of a cluster in their order, or the values of their fields.
_ONE_MACHINE = ("keep_count", "drop_all", "sources", "most_sources")


@dataclass(frozen=True)
class CopyFields:
    """The fields that are added to kept rows, by their names."""

    copies: Optional[str]
    weight: Optional[str]
    weight_by: Any

    @classmethod
    def of(cls, copies: Any, weight: Any, weight_by: Any, columns: Container[str], against: bool) -> Optional["CopyFields"]:
        """Returns the fields, or None if none is added; refuses names that the data have already."""
        members = member_settings(None, None, copies, None, 1, weight, weight_by)
        names = [name for name in (members["copies"], members["weight"]) if name is not None]
        if not names:
            return None
        if against:
            raise SettingError(
                "copies and weight cannot be combined with against on many machines, because a document of against may "
                "have the id of a kept one: leave them out, or run lookalike.dedup on one machine"
            )
        refuse_taken(columns, names)
        if len(set(names)) < len(names):
            raise SettingError(f"copies and weight are both '{names[0]}': give them different names")
        fields = cls(members["copies"], members["weight"], members["weight_by"])
        # Refuses a table of weights that is not valid before the run.
        fields.weights_of([1])
        return fields

    def weights_of(self, copies: Sequence[int]) -> list[float]:
        """Returns the weights of documents that stand for these numbers of documents, each from 1."""
        return _engine.copy_weights(list(copies), self.weight_by)


def refuse_one_machine(given: Iterable[str], system: str) -> None:
    """Refuses arguments that :func:`lookalike.dedup` has on one machine alone."""
    for name in _ONE_MACHINE:
        if name in given:
            raise SettingError(
                f"{name} is not available on {system}: leave it out, or run lookalike.dedup on one machine"
            )
