"""The client for an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Optional, TypeVar, Union

from ._client import Client, Collection, Document

T = TypeVar("T")

#: Marks the end of an iterator that is read in another thread.
_END: Any = object()


class AsyncClient:
    """A :class:`Client` whose methods are coroutines, with the same names and arguments.

    Requests run in ``connections`` threads of the client, each with a connection of the pool, so the event loop never
    waits.

    >>> import asyncio, lookalike as la
    >>> async def main():
    ...     async with la.AsyncClient("http://127.0.0.1:7600") as client:
    ...         news = await client.create("async-news")
    ...         answer = await news.check_and_insert({"id": "1", "text": "The ferry leaves at seven."})
    ...         await news.drop()
    ...         return answer["verdict"]
    >>> asyncio.run(main())
    'kept'
    """

    def __init__(
        self,
        url: Union[str, Sequence[str]],
        key: Optional[str] = None,
        timeout: float = 60.0,
        retries: int = 3,
        connections: int = 16,
        *,
        read_your_writes: Optional[bool] = None,
    ) -> None:
        self._client = Client(url, key, timeout, retries, read_your_writes=read_your_writes)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="lookalike")

    async def _run(self, call: Callable[..., T], *arguments: Any, **named: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *arguments, **named))

    def collection(self, name: str) -> "AsyncCollection":
        """Returns a collection by its name, without a check that it exists."""
        return AsyncCollection(self, self._client.collection(name))

    async def create(self, name: str, **settings: Any) -> "AsyncCollection":
        """Creates a collection."""
        return AsyncCollection(self, await self._run(self._client.create, name, **settings))

    async def restore(self, name: str, snapshot: str, source: Optional[str] = None) -> "AsyncCollection":
        """Creates a collection from a snapshot."""
        return AsyncCollection(self, await self._run(self._client.restore, name, snapshot, source))

    @property
    def position(self) -> Optional[int]:
        """Number of the last record of the shared log that a write of this client made, as in :class:`Client`."""
        return self._client.position

    @position.setter
    def position(self, position: Optional[int]) -> None:
        self._client.position = position

    async def close(self) -> None:
        """Waits for the requests that run, and closes the connections."""
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return _as_coroutine(self, self.__dict__["_client"], name)

    def __repr__(self) -> str:
        return f"<AsyncClient {self._client.url}>"


class AsyncCollection:
    """A collection of an :class:`AsyncClient`: the methods of :class:`Collection` as coroutines.

    >>> import asyncio, lookalike as la
    >>> async def main():
    ...     async with la.AsyncClient("http://127.0.0.1:7600") as client:
    ...         news = await client.create("async-texts")
    ...         texts = ({"id": str(at), "text": "The ferry leaves at seven."} for at in range(3))
    ...         verdicts = [answer["verdict"] async for answer in news.insert_stream(texts)]
    ...         await news.drop()
    ...         return verdicts
    >>> asyncio.run(main())
    ['kept', 'duplicate', 'duplicate']
    """

    def __init__(self, client: AsyncClient, collection: Collection) -> None:
        self._owner = client
        self._collection = collection
        self.name = collection.name

    async def insert_stream(self, documents: Iterable[Document]) -> AsyncIterator[dict[str, Any]]:
        """Inserts documents and yields the answers while documents are still sent."""
        async for answer in self._iterate(self._collection.insert_stream(documents)):
            yield answer

    async def export(self) -> AsyncIterator[dict[str, Any]]:
        """Yields all documents that exist now."""
        async for document in self._iterate(self._collection.export()):
            yield document

    async def _iterate(self, values: Iterator[T]) -> AsyncIterator[T]:
        while (value := await self._owner._run(next, values, _END)) is not _END:
            yield value

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return _as_coroutine(self.__dict__["_owner"], self.__dict__["_collection"], name)

    def __repr__(self) -> str:
        return f"<AsyncCollection {self.name} of {self._owner._client.url}>"


def _as_coroutine(owner: AsyncClient, target: Any, name: str) -> Callable[..., Awaitable[Any]]:
    """Returns a method of ``target`` that runs in a thread of ``owner``."""
    method = None if name.startswith("_") else getattr(target, name, None)
    if not callable(method):
        raise AttributeError(f"{type(target).__name__} has no method {name!r}")

    @wraps(method)
    async def run(*arguments: Any, **named: Any) -> Any:
        return await owner._run(method, *arguments, **named)

    return run
