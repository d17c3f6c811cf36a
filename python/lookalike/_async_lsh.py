"""The asynchronous MinHash LSH of ``datasketch``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Callable, Generator, Hashable, Optional

from ._lsh import MinHashLSH


class AsyncMinHashLSH:
    """A :class:`MinHashLSH` whose methods are coroutines, for use in an event loop.

    Calls run in threads of the loop's executor, so the loop never waits. ``storage_config`` is that of
    :class:`MinHashLSH`; the type ``aioredis`` is Redis too, and the default is memory.

    >>> import asyncio
    >>> from lookalike.compat.datasketch import MinHash, AsyncMinHashLSH
    >>> async def main():
    ...     minhash = MinHash()
    ...     minhash.update(b"ferry")
    ...     async with AsyncMinHashLSH(threshold=0.5) as lsh:
    ...         await lsh.insert("a", minhash)
    ...         return await lsh.query(minhash)
    >>> asyncio.run(main())
    ['a']
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: Optional[tuple[int, int]] = None,
        storage_config: Optional[dict[str, Any]] = None,
        prepickle: Optional[bool] = None,
    ) -> None:
        config = storage_config
        if config and config.get("type") == "aioredis":
            config = {**config, "type": "redis"}
        self._lsh = MinHashLSH(threshold, num_perm, weights, params, config, prepickle)
        self.h, self.b, self.r = self._lsh.h, self._lsh.b, self._lsh.r
        self.hashranges = self._lsh.hashranges

    async def __aenter__(self) -> "AsyncMinHashLSH":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, "AsyncMinHashLSH"]:
        return self.__aenter__().__await__()

    async def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Adds a MinHash under a new key."""
        await asyncio.to_thread(self._lsh.insert, key, minhash, check_duplication)

    async def query(self, minhash: Any) -> list[Hashable]:
        """Returns the keys whose MinHash shares a band with this one."""
        return await asyncio.to_thread(self._lsh.query, minhash)

    async def remove(self, key: Hashable) -> None:
        """Removes a key."""
        await asyncio.to_thread(self._lsh.remove, key)

    async def has_key(self, key: Hashable) -> bool:
        """Returns True if the index has the key."""
        return await asyncio.to_thread(lambda: key in self._lsh)

    async def is_empty(self) -> bool:
        """Returns True if the index is empty."""
        return await asyncio.to_thread(self._lsh.is_empty)

    async def get_counts(self) -> list[dict[Hashable, int]]:
        """Returns for each band the number of keys in each of its buckets."""
        return await asyncio.to_thread(self._lsh.get_counts)

    async def get_subset_counts(self, *keys: Hashable) -> list[dict[Hashable, int]]:
        """Returns the same for some keys."""
        return await asyncio.to_thread(self._lsh.get_subset_counts, *keys)

    @property
    def keys(self) -> "_AsyncTable":
        """The bytes of the bands of each key."""
        return _AsyncTable(lambda: self._lsh.keys)

    @property
    def hashtables(self) -> "list[_AsyncTable]":
        """For each band the keys of each of its buckets, by the bytes of the band. In memory each call makes a copy of all
        buckets."""
        return [_AsyncTable(partial(self._hashtable, band)) for band in range(self.b)]

    def _hashtable(self, band: int) -> Mapping[Any, Any]:
        return self._lsh.hashtables[band]

    def insertion_session(self, batch_size: int = 10_000) -> "_AsyncSession":
        """Returns an asynchronous context manager for insertions."""
        return _AsyncSession(self, self._lsh.insertion_session(batch_size))

    def delete_session(self, batch_size: int = 10_000) -> "_AsyncSession":
        """Returns an asynchronous context manager for removals."""
        return _AsyncSession(self, self._lsh.deletion_session(batch_size))

    async def close(self) -> None:
        """Closes the connections of the storage, if it has any."""
        client = getattr(self._lsh, "_redis", None)
        if client is not None:
            await asyncio.to_thread(client.close)

    def __repr__(self) -> str:
        return f"<Async{self._lsh!r}>".replace("<Async<", "<Async").replace(">>", ">")


class _AsyncTable:
    """A mapping of an index, whose methods are coroutines."""

    def __init__(self, table: Callable[[], Mapping[Any, Any]]) -> None:
        self._table = table

    async def keys(self) -> list[Any]:
        """Returns the keys."""
        return await asyncio.to_thread(lambda: list(self._table()))

    async def get(self, key: Any) -> Any:
        """Returns the values of a key, which are none if the key is absent."""
        return await asyncio.to_thread(lambda: self._table().get(key, []))

    async def getmany(self, *keys: Any) -> list[Any]:
        """Returns the values of each key."""
        return list(await asyncio.gather(*(self.get(key) for key in keys)))

    async def has_key(self, key: Any) -> bool:
        """Returns True if the key is there."""
        return await asyncio.to_thread(lambda: key in self._table())

    async def size(self) -> int:
        """Returns the number of keys."""
        return await asyncio.to_thread(lambda: len(self._table()))

    async def itemcounts(self) -> dict[Any, int]:
        """Returns the number of values of each key."""
        return await asyncio.to_thread(lambda: {key: len(values) for key, values in self._table().items()})


class _AsyncSession:
    """A session whose calls run in threads, several at the same time: the session that it wraps allows that."""

    def __init__(self, lsh: AsyncMinHashLSH, session: Any) -> None:
        self.lsh = lsh
        self._session = session

    async def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        await asyncio.to_thread(self._session.insert, key, minhash, check_duplication)

    async def remove(self, key: Hashable) -> None:
        await asyncio.to_thread(self._session.remove, key)

    async def close(self) -> None:
        """Sends what is buffered. A cancellation waits for that, because the insertions of the buffer were accepted."""
        await _finished(self._session.close)

    async def __aenter__(self) -> "_AsyncSession":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


async def _finished(call: Callable[[], None]) -> None:
    """Runs a call in a thread to its end, and is cancelled only then."""
    running = asyncio.get_running_loop().run_in_executor(None, call)
    cancellation: Optional[asyncio.CancelledError] = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        raise cancellation from running.exception()
    running.result()
