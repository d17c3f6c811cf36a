"""Near-duplicate nodes in LlamaIndex: a transformation that drops them before they are embedded.

>>> from llama_index.core.schema import TextNode
>>> from lookalike.llama_index import LookalikeDedup
>>> chunks = ["The ferry leaves at seven.", "THE FERRY leaves at seven!", "A bridge."]
>>> dedup = LookalikeDedup()
>>> [node.text for node in dedup([TextNode(text=text) for text in chunks])]
['The ferry leaves at seven.', 'A bridge.']
>>> [(dropped.chunk.text, dropped.kept.text, dropped.similarity) for dropped in dedup.dropped]
[('THE FERRY leaves at seven!', 'The ferry leaves at seven.', 1.0)]
"""

from __future__ import annotations

import asyncio
from typing import Any, Optional, Sequence

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, TransformComponent

from ._chunks import ChunkDedup, Dropped
from ._keywords import suggest_keywords

__all__ = ["Dropped", "LookalikeDedup"]


class LookalikeDedup(TransformComponent):  # type: ignore[misc]
    """Keeps one node of each cluster of near-duplicates, with its id, metadata and relationships.

    ``threshold``, ``recipe`` (a name or a file), ``method``, ``verify``, ``forms`` and ``keep`` are as in
    :func:`lookalike.dedup`; ``keep`` such as "max:date" names a field of the metadata. ``within`` restricts matches to
    equal values of such a field, for example of a tenant. Each call decides about its own nodes; with ``across_calls``, a
    node is dropped as well if it repeats a kept one of an earlier call, and kept nodes then stay in memory. Calls learn no
    forms then, as with ``forms="off"``, and drop filled forms that one call keeps apart; give ``forms`` the table of
    :func:`lookalike.learn_forms`.

    A pipeline with several workers gives each of them a part of the nodes, and what their copies dropped is not listed
    here: run this transformation with one. A pipeline with a cache does not call it again for the same nodes.

    >>> from llama_index.core.schema import TextNode
    >>> from lookalike.llama_index import LookalikeDedup
    >>> dedup = LookalikeDedup(threshold=0.6, within="tenant")
    >>> texts = [("a", "The ferry leaves at seven."), ("b", "The ferry leaves at eight."), ("a", "The ferry leaves at nine.")]
    >>> nodes = [TextNode(text=text, metadata={"tenant": tenant}) for tenant, text in texts]
    >>> [node.text for node in dedup(nodes)]
    ['The ferry leaves at seven.', 'The ferry leaves at eight.']
    """

    threshold: Optional[float] = None
    recipe: str = "default"
    method: Optional[str] = None
    verify: Optional[str] = None
    forms: Optional[str] = None
    keep: Optional[str] = None
    within: Optional[str] = None
    across_calls: bool = False
    _chunks: ChunkDedup = PrivateAttr()

    @suggest_keywords
    def __init__(
        self,
        *,
        threshold: Optional[float] = None,
        recipe: str = "default",
        method: Optional[str] = None,
        verify: Optional[str] = None,
        forms: Optional[str] = None,
        keep: Optional[str] = None,
        within: Optional[str] = None,
        across_calls: bool = False,
    ) -> None:
        super().__init__(
            threshold=threshold, recipe=recipe, method=method, verify=verify, forms=forms, keep=keep, within=within,
            across_calls=across_calls,
        )  # fmt: skip
        self._chunks = ChunkDedup(
            threshold=self.threshold, recipe=self.recipe, method=self.method, verify=self.verify, forms=self.forms,
            keep=self.keep, within=self.within, across_calls=self.across_calls,
        )  # fmt: skip

    @classmethod
    def class_name(cls) -> str:
        """Returns the name under which LlamaIndex stores the component."""
        return "LookalikeDedup"

    @property
    def dropped(self) -> list[Dropped]:
        """All nodes that all calls dropped so far: ``chunk``, ``kept`` and ``similarity``. ``dropped.clear()`` forgets them."""
        return self._chunks.dropped

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Returns the kept nodes in their order."""
        texts = [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        return self._chunks.select(nodes, texts, [node.metadata for node in nodes])

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Returns the kept nodes in their order, decided in a thread."""
        return await asyncio.to_thread(self, nodes, **kwargs)
