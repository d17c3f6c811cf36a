"""Near-duplicate chunks in LangChain: a transformer that drops them before they are embedded.

>>> from langchain_core.documents import Document
>>> from lookalike.langchain import LookalikeDedup
>>> chunks = ["The ferry leaves at seven.", "THE FERRY leaves at seven!", "A bridge."]
>>> dedup = LookalikeDedup()
>>> [kept.page_content for kept in dedup.transform_documents([Document(page_content=text) for text in chunks])]
['The ferry leaves at seven.', 'A bridge.']
>>> [(dropped.chunk.page_content, dropped.kept.page_content, dropped.similarity) for dropped in dedup.dropped]
[('THE FERRY leaves at seven!', 'The ferry leaves at seven.', 1.0)]
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from langchain_core.documents import BaseDocumentTransformer, Document

from ._chunks import ChunkDedup, Dropped
from ._keywords import suggest_keywords
from ._recipe import RecipeLike

__all__ = ["Dropped", "LookalikeDedup"]


class LookalikeDedup(BaseDocumentTransformer):  # type: ignore[misc]
    """Keeps one document of each cluster of near-duplicates, with its id and metadata.

    ``threshold``, ``recipe``, ``method``, ``verify``, ``forms`` and ``keep`` are as in :func:`lookalike.dedup`; ``keep``
    such as "max:date" names a field of the metadata. ``within`` restricts matches to equal values of such a field, for
    example of a tenant. Each call decides about its own documents; with ``across_calls``, a document is dropped as well if
    it repeats a kept one of an earlier call, and kept documents then stay in memory. Calls learn no forms then, as with
    ``forms="off"``, and drop filled forms that one call keeps apart; give ``forms`` the table of
    :func:`lookalike.learn_forms`.

    >>> from langchain_core.documents import Document
    >>> from lookalike.langchain import LookalikeDedup
    >>> dedup = LookalikeDedup(threshold=0.6, across_calls=True)
    >>> kept = dedup.transform_documents([Document(page_content="The ferry leaves at seven.", id="a")])
    >>> dedup.transform_documents([Document(page_content="The ferry leaves at eight.", id="b")])
    []
    >>> [(dropped.chunk.id, dropped.kept.id, dropped.similarity) for dropped in dedup.dropped]
    [('b', 'a', 0.6)]
    """

    @suggest_keywords
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
        self._chunks = ChunkDedup(
            threshold=threshold, recipe=recipe, method=method, verify=verify, forms=forms, keep=keep, within=within,
            across_calls=across_calls,
        )  # fmt: skip

    @property
    def dropped(self) -> list[Dropped]:
        """All documents that all calls dropped so far: ``chunk``, ``kept`` and ``similarity``. ``dropped.clear()`` forgets
        them."""
        return self._chunks.dropped

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Returns the kept documents in their order. ``atransform_documents`` does so in a thread."""
        texts = [document.page_content for document in documents]
        return self._chunks.select(documents, texts, [document.metadata for document in documents])
