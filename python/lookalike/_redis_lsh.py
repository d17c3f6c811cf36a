"""A MinHash LSH index in Redis, with the keys and values of ``datasketch``: each opens the indexes of the other."""

from __future__ import annotations

import os
import pickle
import random
import string
import struct
import threading
from collections.abc import Mapping
from typing import Any, Callable, Hashable, Iterator, NamedTuple, Optional

from ._errors import OutputError, SettingError
from ._forest import band_bytes, known_scheme
from ._lsh import checked_bands
from ._words import counted

#: Commands of a session before they are sent.
_SESSION_COMMANDS = 50_000


#: Adds a key with its bands in one step. ``KEYS`` are the hash of keys and the list of the key, then for each band the hash
#: of its buckets and its bucket; ``ARGV`` the key, whether it must be new, and the bands. Returns 0 if the key was there.
_INSERT = """
if ARGV[2] == '1' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], KEYS[2])
for band = 1, #ARGV - 2 do
  redis.call('RPUSH', KEYS[2], ARGV[band + 2])
  redis.call('HSET', KEYS[2 * band + 1], ARGV[band + 2], KEYS[2 * band + 2])
  redis.call('SADD', KEYS[2 * band + 2], ARGV[1])
end
return 1
"""


class _Insertion(NamedTuple):
    """A key as it is stored, and the bands of its MinHash."""

    stored: bytes
    bands: list[bytes]
    #: The key must not be there yet.
    is_new_key: bool


class _Refusals(NamedTuple):
    """The insertions of a transaction that did not insert, and why."""

    insertions: list[_Insertion]
    reason: Exception


class RedisMinHashLSH:
    """A :class:`MinHashLSH` whose keys and buckets are in Redis. It needs the package ``redis``.

    ``storage_config`` is that of datasketch: ``{"type": "redis", "basename": b"name", "redis": {"host": …, "port":
    …}}``. A value ``{"env": NAME, "default": …}`` is read from an environment variable. Indexes of one ``basename``
    share their content. Keys are pickled unless ``prepickle=False``; they are then bytes.

    >>> from lookalike.compat.datasketch import MinHashLSH
    >>> config = {"type": "redis", "basename": b"news", "redis": {"host": "localhost", "port": 6379}}
    >>> lsh = MinHashLSH(threshold=0.5, storage_config=config)  # doctest: +SKIP

    Unpickling a key can run code that somebody put into the database, so use a database that only you can write to.
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: Optional[tuple[int, int]] = None,
        storage_config: Optional[Mapping[str, Any]] = None,
        prepickle: Optional[bool] = None,
        hashfunc: Optional[Callable[[bytes], bytes]] = None,
    ) -> None:
        self.h, self.b, self.r = checked_bands(threshold, num_perm, weights, params)
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]
        self.prepickle = True if prepickle is None else prepickle
        self.hashfunc = hashfunc
        self._config = dict(storage_config or {"type": "redis"})
        self._config.setdefault("basename", _random_name())
        self._scheme: Optional[str] = None
        self._buffer: list[set[Hashable]] = []
        self._connect()

    def _connect(self) -> None:
        try:
            import redis
        except ImportError:
            raise SettingError(
                "storage_config asks for Redis, and the package redis is not installed: install it"
            ) from None
        self._redis = redis.Redis(**_resolved(self._config.get("redis", {})))
        base = self._config["basename"]
        #: The values of each key, and for each band the keys of each bucket.
        self.keys = RedisTable(self._redis, base + b"_keys", ordered=True)
        self.hashtables = [
            RedisTable(self._redis, base + b"_bucket_" + struct.pack(">H", band), ordered=False)
            for band in range(self.b)
        ]

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Adds a MinHash under a new key. Without ``check_duplication`` a key can have several."""
        refusals = self._send([self._prepare(key, minhash, check_duplication)])
        if refusals is not None:
            raise refusals.reason

    def _prepare(self, key: Hashable, minhash: Any, check_duplication: bool) -> _Insertion:
        """Returns what is to be sent."""
        self._scheme = self._checked(minhash)
        return _Insertion(self._stored(key), self._bands(minhash), is_new_key=check_duplication)

    def _send(self, insertions: list[_Insertion]) -> Optional[_Refusals]:
        """Sends insertions as one transaction. A script makes each of them, so that of two clients only one inserts a key,
        and a process that is killed leaves a key with all of its bands or none."""
        import redis

        try:
            with self._redis.pipeline() as commands:
                for insertion in insertions:
                    self._add_insertion(commands, insertion)
                done = commands.execute()
        except redis.RedisError as error:
            missing = self._missing(insertions)
            return _Refusals(missing, error) if missing else None
        refused = [insertion for insertion, was_new in zip(insertions, done) if not was_new]
        return _Refusals(refused, ValueError("The given key already exists")) if refused else None

    def _missing(self, insertions: list[_Insertion]) -> list[_Insertion]:
        """Returns the insertions of a failed transaction that the server did not make. It may have made all of them, because
        a connection can break before the answer. Those that nothing is known of are missing."""
        import redis

        try:
            with self._redis.pipeline(transaction=False) as commands:
                for insertion in insertions:
                    self.keys.ask(commands, insertion.stored)
                found = commands.execute()
        except redis.RedisError:
            return insertions
        return [
            insertion
            for insertion, bands in zip(insertions, found)
            if not insertion.is_new_key or bands != insertion.bands
        ]

    def _add_insertion(self, commands: Any, insertion: _Insertion) -> None:
        stored, bands, is_new_key = insertion
        places = [*self.keys.places(stored)]
        # A key with several MinHashes has the bands of each, one after another.
        for at, band in enumerate(bands):
            places += self.hashtables[at % self.b].places(band)
        commands.eval(_INSERT, len(places), *places, stored, int(is_new_key), *bands)

    def _remove_bands(self, commands: Any, stored: bytes, bands: list[bytes]) -> None:
        for at, band in enumerate(bands):
            self.hashtables[at % self.b].discard(commands, band, stored)
        self.keys.remove(commands, stored)

    def query(self, minhash: Any) -> list[Hashable]:
        """Returns the keys whose MinHash shares a band with this one, each once."""
        return list(self._query_b(minhash, self.b))

    def _query_b(self, minhash: Any, b: int) -> set[Hashable]:
        self._checked(minhash)
        if b > self.b:
            raise ValueError("b must be less or equal to the number of hash tables")
        with self._redis.pipeline(transaction=False) as commands:
            for table, band in zip(self.hashtables[:b], self._bands(minhash)):
                table.ask(commands, band)
            found: set[bytes] = set().union(*commands.execute())
        return {self._given(key) for key in found}

    def remove(self, key: Hashable) -> None:
        """Removes a key, also one without bands, which a killed process with an earlier version may have left."""
        stored = self._stored(key)
        bands = self.keys.get(stored)
        if not bands and stored not in self.keys:
            raise ValueError("The given key does not exist")
        with self._redis.pipeline() as commands:
            self._remove_bands(commands, stored, bands)
            *_, was_key, _ = commands.execute()
        # Several can remove a key at the same time, and one of them succeeds.
        if not was_key:
            raise ValueError("The given key does not exist")

    def insertion_session(self, buffer_size: int = _SESSION_COMMANDS) -> "_RedisSession":
        """Returns a context manager whose insertions are sent together, at its end or every ``buffer_size``
        commands. Threads can share it. Its end raises :class:`~lookalike.errors.OutputError` if documents could not be
        inserted, also because another client has inserted their keys meanwhile."""
        return _RedisSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = _SESSION_COMMANDS) -> "_RedisSession":
        """Returns a context manager for removals, which are sent one by one."""
        return _RedisSession(self, buffer_size)

    def merge(self, other: "RedisMinHashLSH", check_overlap: bool = False) -> None:
        """Inserts all entries of the other index."""
        if type(self) is not type(other):
            raise ValueError(f"Cannot merge type MinHashLSH and type {type(other).__name__}.")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("Cannot merge MinHashLSH with different initialization parameters.")
        if check_overlap and set(self.keys) & set(other.keys):
            raise ValueError("The keys are overlapping, duplicate key exists.")
        with self._redis.pipeline() as commands:
            for stored in other.keys:
                self._add_insertion(commands, _Insertion(stored, other.keys.get(stored), is_new_key=False))
            commands.execute()

    def add_to_query_buffer(self, minhash: Any) -> None:
        """Stores the answer to a query for :meth:`collect_query_buffer`."""
        self._buffer.append(set(self.query(minhash)))

    def collect_query_buffer(self) -> list[Hashable]:
        """Returns the keys that are in every stored answer, and drops the answers."""
        answers, self._buffer = self._buffer, []
        return list(set.intersection(*answers)) if answers else []

    def get_counts(self) -> list[dict[bytes, int]]:
        """Returns for each band the number of keys in each of its buckets."""
        return [table.itemcounts() for table in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[bytes, int]]:
        """Returns the same for some keys; absent keys are ignored."""
        counts: list[dict[bytes, int]] = [{} for _ in range(self.b)]
        for key in set(keys):
            for at, band in enumerate(self.keys.get(self._stored(key))):
                counts[at % self.b][band] = counts[at % self.b].get(band, 0) + 1
        return counts

    def is_empty(self) -> bool:
        """Returns True if the index is empty."""
        return len(self.keys) == 0

    def __contains__(self, key: Hashable) -> bool:
        return self._stored(key) in self.keys

    def _checked(self, minhash: Any) -> Optional[str]:
        if len(minhash) != self.h:
            raise ValueError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return known_scheme(self._scheme, minhash)

    def _bands(self, minhash: Any) -> list[bytes]:
        values = minhash.hashvalues
        bands = [band_bytes(values[start:end]) for start, end in self.hashranges]
        return bands if self.hashfunc is None else [self.hashfunc(band) for band in bands]

    def _stored(self, key: Hashable) -> bytes:
        if self.prepickle:
            return pickle.dumps(key)
        if not isinstance(key, bytes):
            raise TypeError(
                f"prepickle=False requires bytes keys for Redis, got {type(key).__name__}. "
                "Either pass bytes keys or use prepickle=True for automatic serialization."
            )
        return key

    def _given(self, stored: bytes) -> Hashable:
        return pickle.loads(stored) if self.prepickle else stored

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        # Connections are made again where the index is loaded.
        for name in ("_redis", "keys", "hashtables"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def __repr__(self) -> str:
        return f"<RedisMinHashLSH {self._config['basename']!r}, {self.b} bands of {self.r} rows>"


class RedisTable(Mapping[bytes, Any]):
    """A mapping in Redis from bytes to a list or a set of bytes. A hash under its name lists the keys."""

    def __init__(self, client: Any, name: bytes, ordered: bool) -> None:
        self._client, self._name, self._ordered = client, name, ordered

    def _place(self, key: bytes) -> bytes:
        return self._name + key

    def places(self, key: bytes) -> tuple[bytes, bytes]:
        """Returns the names in Redis of the hash of keys, and of the values of a key."""
        return self._name, self._place(key)

    def ask(self, client: Any, key: bytes) -> Any:
        return client.lrange(self._place(key), 0, -1) if self._ordered else client.smembers(self._place(key))

    def get(self, key: bytes, default: Any = None) -> Any:
        return self.ask(self._client, key) or default or []

    def discard(self, commands: Any, key: bytes, value: bytes) -> None:
        """Removes a value, and the key with its last value, in one step."""
        commands.eval(_DISCARD, 2, self._place(key), self._name, value, key)

    def remove(self, commands: Any, key: bytes) -> None:
        commands.hdel(self._name, key)
        commands.delete(self._place(key))

    def itemcounts(self) -> dict[bytes, int]:
        """Returns the number of values of each key."""
        keys = list(self)
        with self._client.pipeline(transaction=False) as commands:
            for key in keys:
                (commands.llen if self._ordered else commands.scard)(self._place(key))
            return dict(zip(keys, commands.execute()))

    def size(self) -> int:
        """Returns the number of keys."""
        return int(self._client.hlen(self._name))

    def __getitem__(self, key: bytes) -> Any:
        if key not in self:
            raise KeyError(key)
        return self.get(key)

    def __contains__(self, key: object) -> bool:
        return bool(self._client.hexists(self._name, key))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._client.hkeys(self._name))

    def __len__(self) -> int:
        return self.size()


#: Removes a value of a set, and the key of the set from the hash of keys if nothing is left.
_DISCARD = """
redis.call('SREM', KEYS[1], ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HDEL', KEYS[2], ARGV[2]) end
"""


class _RedisSession:
    """Insertions that wait to be sent together. Threads can share a session.

    The lock guards the fields, and is never held while the server is asked. A batch leaves the session under the lock
    and is sent by the thread that filled it, while other threads fill the next one.
    """

    def __init__(self, lsh: RedisMinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.remove = lsh.remove
        self._most_commands = buffer_size
        self._waiting: list[_Insertion] = []
        self._waiting_commands = 0
        #: Keys of insertions that are not on the server yet.
        self._pending: set[bytes] = set()
        #: Insertions that have begun and are not in the buffer yet, or whose batch is being sent.
        self._running = 0
        self._failed_insertions = 0
        self._first_failure: Optional[BaseException] = None
        self._is_closed = False
        self._changed = threading.Condition()

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Adds a MinHash under a new key. After the end of the session it is sent at once."""
        insertion = self.lsh._prepare(key, minhash, check_duplication)
        with self._changed:
            if check_duplication and insertion.stored in self._pending:
                raise ValueError("The given key already exists")
            self._pending.add(insertion.stored)
            self._running += 1
        try:
            self._check_new(insertion)
            self._buffer(insertion)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _check_new(self, insertion: _Insertion) -> None:
        """Refuses a key that is there. One that comes later is found when the batch is sent."""
        try:
            if insertion.is_new_key and insertion.stored in self.lsh.keys:
                raise ValueError("The given key already exists")
        except BaseException:
            self._forget([insertion])
            raise

    def _buffer(self, insertion: _Insertion) -> None:
        with self._changed:
            self._waiting.append(insertion)
            # Two commands for the key and for each band.
            self._waiting_commands += 2 + 2 * len(insertion.bands)
            is_full = self._is_closed or self._waiting_commands >= self._most_commands
            batch = self._take_batch() if is_full else []
        self._send(batch)

    def _take_batch(self) -> list[_Insertion]:
        batch, self._waiting, self._waiting_commands = self._waiting, [], 0
        return batch

    def _send(self, batch: list[_Insertion]) -> None:
        if not batch:
            return
        try:
            refusals = self.lsh._send(batch)
        except BaseException as error:
            self._count_failures(len(batch), error)
            raise
        finally:
            self._forget(batch)
        if refusals is not None:
            self._count_failures(len(refusals.insertions), refusals.reason)
            raise self._output_error(len(refusals.insertions), refusals.reason) from refusals.reason

    def _count_failures(self, failed: int, failure: BaseException) -> None:
        with self._changed:
            self._failed_insertions += failed
            self._first_failure = self._first_failure or failure

    def _forget(self, insertions: list[_Insertion]) -> None:
        with self._changed:
            self._pending.difference_update(insertion.stored for insertion in insertions)

    def close(self) -> None:
        """Waits for the insertions of other threads and sends what is buffered. Raises if documents of the session could
        not be inserted, also if an insertion has raised that already."""
        with self._changed:
            self._changed.wait_for(lambda: self._running == 0)
            self._is_closed = True
            batch = self._take_batch()
        try:
            self._send(batch)
        except OutputError:
            pass  # It is counted.
        with self._changed:
            failed, self._failed_insertions = self._failed_insertions, 0
            failure, self._first_failure = self._first_failure, None
        if failure is not None:
            raise self._output_error(failed, failure) from failure

    def _output_error(self, failed: int, failure: BaseException) -> OutputError:
        name = self.lsh._config["basename"]
        return OutputError(f"{counted(failed, 'document')} could not be inserted into {name!r} of Redis: {failure}")

    def __enter__(self) -> "_RedisSession":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration with the values of its environment variables."""
    return {
        key: os.getenv(value["env"], value.get("default")) if isinstance(value, dict) and "env" in value else value
        for key, value in config.items()
    }


def _random_name() -> bytes:
    return "".join(random.choices(string.ascii_lowercase, k=11)).encode()


