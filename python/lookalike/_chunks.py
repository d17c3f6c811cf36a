"""Near-duplicate chunks of documents before they are embedded, for packages that hand over lists of objects."""

from __future__ import annotations

from typing import Any, Hashable, NamedTuple, Optional, Sequence

from ._errors import SettingError
from ._recipe import RecipeLike
from ._run import Deduplicated, dedup
from ._stream import Stream


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
    memory. ``within`` restricts matches to equal values of a field of the metadata.
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
        self._batch: dict[str, Any] = {**self._rule, "forms": forms, "keep": keep, "within": "within" if within else None}
        self._within = within
        self._across_calls = across_calls
        self._streams: dict[Hashable, Stream] = {}
        self._kept: dict[tuple[Hashable, int], Any] = {}
        if across_calls and (forms or keep):
            raise SettingError(
                f"{'forms' if forms else 'keep'} has no effect across calls, which keep the first of similar chunks: leave it "
                "out, or leave across_calls out"
            )
        # Settings that contradict each other are refused here, and not at the first chunk.
        if across_calls:
            Stream(**self._rule)
        else:
            self._decide([""], [None])

    def select(self, chunks: Sequence[Any], texts: Sequence[str], metadata: Sequence[Any]) -> list[Any]:
        """Returns the kept chunks in their order."""
        groups = [_group_of(fields, self._within) for fields in metadata]
        if self._across_calls:
            return [chunk for chunk, text, group in zip(chunks, texts, groups) if self._is_new(chunk, text, group)]
        if not texts:
            return []
        result = self._decide(texts, groups)
        removed = result.removed.select(["position", "kept_position", "similarity"])
        self.dropped += [
            Dropped(chunks[row["position"]], chunks[row["kept_position"]], row["similarity"])
            for row in sorted(removed.to_pylist(), key=lambda row: row["position"])
        ]
        return [chunks[row] for row in result.kept_rows.tolist()]

    def _decide(self, texts: Sequence[str], groups: Sequence[Hashable]) -> Deduplicated:
        rows = {"text": list(texts), "within": [repr(group) for group in groups]}
        return dedup(rows, id=False, progress=False, **self._batch)

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


def _group_of(metadata: Any, within: Optional[str]) -> Hashable:
    """Returns the value that must be equal in two chunks that match."""
    value = metadata.get(within) if within else None
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)
