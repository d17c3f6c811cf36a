"""Near-duplicate chunks of documents before they are embedded, for packages that hand over lists of objects."""

from __future__ import annotations

import os
from typing import Any, Hashable, NamedTuple, Optional, Sequence

from ._errors import InputError, SettingError
from ._recipe import Recipe, RecipeLike, recipe_of
from ._run import Deduplicated, dedup
from ._stream import Stream
from ._table_spool import fields_of_settings

#: Columns of a run. Fields of the metadata are columns beside them, under names of their own.
_TEXT, _GROUP = "text of the chunk", "group of the chunk"


class Dropped(NamedTuple):
    """A chunk that was dropped, the kept chunk that it repeats, and their similarity.

    >>> chunks = ChunkDedup()
    >>> texts = ["The ferry leaves at seven.", "THE FERRY leaves at seven!"]
    >>> [chunk for chunk in chunks.select(["first", "second"], texts, [{}, {}])]
    ['first']
    >>> chunks.dropped
    [Dropped(chunk='second', kept='first', similarity=1.0)]
    """

    chunk: Any
    kept: Any
    similarity: float


class ChunkDedup:
    """Keeps one chunk of each cluster of near-duplicates, and says which ones it dropped.

    Each call decides by :func:`lookalike.dedup` about its own chunks. With ``across_calls``, a :class:`lookalike.Stream`
    decides, so that a chunk is dropped as well if it repeats a kept one of an earlier call; the kept chunks then stay in
    memory. ``within`` restricts matches to equal values of a field of the metadata, and ``keep`` can compare another one, as
    in "max:date". A field that no chunk has is refused. A stream learns no forms; it keeps those of a table apart.
    """

    def __init__(
        self,
        *,
        threshold: Optional[float] = None,
        recipe: RecipeLike = "default",
        method: Optional[str] = None,
        verify: Optional[str] = None,
        forms: Optional[str] = None,
        keep: Optional[str] = None,
        within: Optional[str] = None,
        across_calls: bool = False,
    ) -> None:
        #: All chunks that were dropped so far, in their order. ``dropped.clear()`` forgets them.
        self.dropped: list[Dropped] = []
        self._rule: dict[str, Any] = {"threshold": threshold, "recipe": recipe, "method": method, "verify": verify}
        self._batch: dict[str, Any] = {**self._rule, "forms": forms, "keep": keep, "within": _GROUP if within else None}
        self._within = within
        self._keep_fields = fields_of_settings(keep)
        #: Fields of the settings that no chunk has had so far.
        self._missing = fields_of_settings(keep, within)
        self._across_calls = across_calls
        self._streams: dict[Hashable, Stream] = {}
        self._kept: dict[tuple[Hashable, int], Any] = {}
        # Settings that contradict each other are refused here, and not at the first chunk.
        if across_calls:
            _refuse_across_calls(forms, keep)
            self._rule["recipe"] = _with_forms(recipe, forms)
            Stream(**self._rule)
        else:
            self._decide([""], [None], [dict.fromkeys(self._keep_fields, 0)])

    def select(self, chunks: Sequence[Any], texts: Sequence[str], metadata: Sequence[Any]) -> list[Any]:
        """Returns the kept chunks in their order."""
        self._check_fields(metadata)
        groups = [_group_of(fields, self._within) for fields in metadata]
        if self._across_calls:
            return [chunk for chunk, text, group in zip(chunks, texts, groups) if self._is_new(chunk, text, group)]
        if not texts:
            return []
        result = self._decide(texts, groups, metadata)
        removed = result.removed.select(["position", "kept_position", "similarity"])
        self.dropped += [
            Dropped(chunks[row["position"]], chunks[row["kept_position"]], row["similarity"])
            for row in sorted(removed.to_pylist(), key=lambda row: row["position"])
        ]
        return [chunks[row] for row in result.kept_rows.tolist()]

    def _check_fields(self, metadata: Sequence[Any]) -> None:
        """Refuses a field that no chunk of this call or of an earlier one has."""
        self._missing = [name for name in self._missing if not any(name in fields for fields in metadata)]
        if self._missing and metadata:
            known = ", ".join(f"`{name}`" for name in dict.fromkeys(name for fields in metadata for name in fields))
            raise InputError(f"no chunk has the field `{self._missing[0]}` in its metadata, which has {known or 'no fields'}")

    def _decide(self, texts: Sequence[str], groups: Sequence[Hashable], metadata: Sequence[Any]) -> Deduplicated[Any]:
        rows: dict[str, Any] = {_TEXT: list(texts), _GROUP: [repr(group) for group in groups]}
        for name in self._keep_fields:
            rows[name] = [fields.get(name) for fields in metadata]
        return dedup(rows, text=_TEXT, id=False, progress=False, **self._batch)

    def _is_new(self, chunk: Any, text: str, group: Hashable) -> bool:
        stream = self._streams.get(group)
        if stream is None:
            stream = self._streams[group] = Stream(**self._rule)
        number = stream.seq
        verdict = stream.insert(text, number)
        if verdict.is_kept:
            self._kept[group, number] = chunk
            return True
        assert isinstance(verdict.of, int) and verdict.similarity is not None
        self.dropped.append(Dropped(chunk, self._kept[group, verdict.of], verdict.similarity))
        return False


def _refuse_across_calls(forms: Any, keep: Any) -> None:
    """Refuses settings that need all chunks at once."""
    if keep:
        raise SettingError(
            "keep has no effect across calls, which keep the first of similar chunks: leave it out, or leave across_calls out"
        )
    if forms == "learn":
        raise SettingError(
            "forms='learn' has no effect across calls, because forms are learned of all chunks at once: give the table of "
            "lookalike.learn_forms, or leave across_calls out"
        )


def _with_forms(recipe: RecipeLike, forms: Any) -> RecipeLike:
    """Returns a recipe with a table of forms, if there is one."""
    if forms is None or forms == "off":
        return recipe
    return Recipe(recipe_of(recipe).toml, forms=os.fspath(forms))


def _group_of(metadata: Any, within: Optional[str]) -> Hashable:
    """Returns the value that must be equal in two chunks that match."""
    value = metadata.get(within) if within else None
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)
