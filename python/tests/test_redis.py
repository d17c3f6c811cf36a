"""The index in Redis, in a server of its own: answers of the index in memory, and the data of datasketch."""

import asyncio
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import datasketch
import pytest
from test_datasketch_set import made_sets, signed

from lookalike.compat.datasketch import (
    AsyncMinHashLSH,
    MinHash,
    MinHashLSH,
    MinHashLSHEnsemble,
    RedisMinHashLSH,
)
from lookalike.errors import OutputError

redis = pytest.importorskip("redis")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed (Debian: redis-server)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    arguments = ["--port", str(number), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", number)) == 0:
                break
        time.sleep(0.05)
    yield number
    process.terminate()
    process.wait(20)


def config(port, name):
    return {"type": "redis", "basename": name, "redis": {"host": "127.0.0.1", "port": port}}


def test_index_in_redis_answers_as_the_one_in_memory(port):
    plain, stored = MinHashLSH(0.5), MinHashLSH(0.5, storage_config=config(port, b"a"))
    assert isinstance(stored, RedisMinHashLSH) and stored.is_empty()
    minhashes = [signed(values)[0] for values in made_sets(60)]
    for key, minhash in enumerate(minhashes[:40]):
        plain.insert(("key", key), minhash)
        stored.insert(("key", key), minhash)
    with stored.insertion_session(buffer_size=20) as session:
        for key, minhash in enumerate(minhashes[40:], 40):
            plain.insert(("key", key), minhash)
            session.insert(("key", key), minhash)
    for index in (plain, stored):
        index.remove(("key", 5))
        with pytest.raises(ValueError, match="not exist"):
            index.remove(("key", 5))
        with pytest.raises(ValueError, match="already exists"):
            index.insert(("key", 6), minhashes[6])
        with pytest.raises(ValueError, match="length"):
            index.query(signed({"a"}, 64)[0])
    again = pickle.loads(pickle.dumps(stored))
    for minhash in minhashes:
        assert set(stored.query(minhash)) == set(plain.query(minhash)) == set(again.query(minhash))
    assert ("key", 6) in stored and ("key", 5) not in stored and len(stored.keys) == 59
    assert stored.get_counts() == plain.get_counts()
    assert stored.get_subset_counts(("key", 7)) == plain.get_subset_counts(("key", 7))
    for index in (plain, stored):
        index.add_to_query_buffer(minhashes[3])
        index.add_to_query_buffer(minhashes[4])
    assert set(plain.collect_query_buffer()) == set(stored.collect_query_buffer())
    other = MinHashLSH(0.5, storage_config=config(port, b"b"))
    other.merge(stored, check_overlap=True)
    assert set(other.query(minhashes[9])) == set(stored.query(minhashes[9]))
    with pytest.raises(ValueError, match="overlapping"):
        other.merge(stored, check_overlap=True)
    for key in range(60):
        if key != 5:
            stored.remove(("key", key))
    assert stored.is_empty() and all(not table for table in stored.get_counts())


def test_a_key_without_bands_can_be_removed(port):
    """Earlier versions left such a key if they were killed before they sent a session."""
    index = MinHashLSH(0.5, storage_config=config(port, b"claimed"))
    (minhash, _), *_ = [signed(values) for values in made_sets(1)]
    stored = index._stored("lost")
    assert index._redis.hsetnx(b"claimed_keys", stored, b"claimed_keys" + stored)
    with pytest.raises(ValueError, match="already exists"):
        index.insert("lost", minhash)
    index.remove("lost")
    assert index.is_empty()
    index.insert("lost", minhash)
    assert index.query(minhash) == ["lost"]


def test_a_killed_process_leaves_no_key_of_its_session(port):
    """A key and its bands reach the server together, so that what was not sent can be inserted again."""
    minhashes = distinct_minhashes(20)
    settings = config(port, b"killed")
    lsh = MinHashLSH(0.5, num_perm=16, storage_config=settings)
    program = f"""
import os, signal
from lookalike.compat.datasketch import MinHash, MinHashLSH
lsh = MinHashLSH(0.5, num_perm=16, storage_config={settings!r})
session = lsh.insertion_session(buffer_size=5 * (2 + 2 * lsh.b))
for key in range(18):
    minhash = MinHash(num_perm=16)
    minhash.update(b"%d" % key)
    session.insert(key, minhash)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert sorted(map(pickle.loads, lsh.keys)) == list(range(15))
    assert all(sum(table.values()) == 15 for table in lsh.get_counts())
    with lsh.insertion_session() as session:
        for key, minhash in enumerate(minhashes[15:], 15):
            session.insert(key, minhash)
    assert len(lsh.keys) == 20 and all(sum(table.values()) == 20 for table in lsh.get_counts())


def test_of_two_sessions_one_inserts_a_key(port):
    lsh = MinHashLSH(0.5, num_perm=16, storage_config=config(port, b"both"))
    minhashes = distinct_minhashes(30)
    first, second = lsh.insertion_session(), lsh.insertion_session()
    for key, minhash in enumerate(minhashes[:20]):
        first.insert(key, minhash)
        with pytest.raises(ValueError, match="already exists"):
            first.insert(key, minhash)
    for key, minhash in enumerate(minhashes[10:], 10):
        second.insert(key, minhash)
    first.close()
    with pytest.raises(OutputError, match="10 documents could not be inserted .* already exists"):
        second.close()
    assert len(lsh.keys) == 30 and all(sum(table.values()) == 30 for table in lsh.get_counts())


def test_an_index_of_datasketch_opens(port):
    theirs = datasketch.MinHashLSH(0.5, storage_config=config(port, b"shared"))
    ours = MinHashLSH(0.5, storage_config=config(port, b"shared"))
    pairs = [signed(values) for values in made_sets(30)]
    for key, (own, other) in enumerate(pairs):
        theirs.insert(key, other) if key % 2 else ours.insert(key, own)
    for own, other in pairs:
        assert set(ours.query(own)) == set(theirs.query(other))
    ours.remove(1)
    theirs.remove(2)
    assert 1 not in theirs and 2 not in ours
    assert ours.get_counts() == theirs.get_counts()


def test_keys_of_bytes_and_variables_of_the_environment(port, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_TEST_REDIS_PORT", str(port))
    settings = config(port, b"bytes")
    settings["redis"]["port"] = {"env": "LOOKALIKE_TEST_REDIS_PORT", "default": 1}
    index = MinHashLSH(0.5, storage_config=settings, prepickle=False)
    index.insert(b"a", signed({"a"})[0])
    assert index.query(signed({"a"})[0]) == [b"a"]
    with pytest.raises(TypeError, match="bytes keys"):
        index.insert("a", signed({"a"})[0])


def test_ensemble_and_asynchronous_index_in_redis(port):
    sets = made_sets(30)
    ensemble = MinHashLSHEnsemble(0.6, num_part=2, m=4, storage_config=config(port, b"ensemble"))
    plain = MinHashLSHEnsemble(0.6, num_part=2, m=4)
    for index in (ensemble, plain):
        index.index([(key, signed(values)[0], len(values)) for key, values in enumerate(sets)])
    for values in sets:
        minhash = signed(values)[0]
        assert sorted(ensemble.query(minhash, len(values))) == sorted(plain.query(minhash, len(values)))

    async def run():
        settings = {**config(port, b"async"), "type": "aioredis"}
        async with AsyncMinHashLSH(0.5, storage_config=settings) as lsh:
            await lsh.insert("a", signed({"a", "b"})[0])
            return await lsh.query(signed({"a", "b"})[0])

    assert asyncio.run(run()) == ["a"]


def distinct_minhashes(count):
    return [signed({f"word {key}", f"word {key + 1}"}, 16)[0] for key in range(count)]


class Refusing:
    """A Redis client whose next transactions fail, before or after the server ran them."""

    def __init__(self, client, failures, before):
        self._client, self._failures, self._before = client, failures, before

    def __getattr__(self, name):
        return getattr(self._client, name)

    def pipeline(self, *arguments, **named):
        commands = self._client.pipeline(*arguments, **named)
        if named.get("transaction") is False:
            return commands
        execute = commands.execute

        def failing():
            if self._failures == 0:
                return execute()
            self._failures -= 1
            if not self._before:
                execute()
            raise redis.ConnectionError("the connection broke")

        commands.execute = failing
        return commands


def test_threads_share_sessions(port):
    lsh = MinHashLSH(0.5, num_perm=16, storage_config=config(port, b"threads"))
    minhashes = distinct_minhashes(1_000)
    with ThreadPoolExecutor(16) as threads, lsh.insertion_session(buffer_size=200) as session:
        for _ in threads.map(session.insert, range(1_000), minhashes):
            pass
    assert len(lsh.keys) == 1_000 and all(sum(table.values()) == 1_000 for table in lsh.get_counts())
    assert all(key in lsh.query(minhash) for key, minhash in enumerate(minhashes))

    def remove(key):
        try:
            session.remove(key)
        except ValueError:
            return 0
        return 1

    # Each key is removed by two threads, of which one succeeds.
    with ThreadPoolExecutor(16) as threads, lsh.deletion_session(buffer_size=200) as session:
        assert sum(threads.map(remove, [*range(1_000), *range(1_000)])) == 1_000
    assert lsh.is_empty() and all(not table for table in lsh.get_counts())


def test_the_end_of_a_session_reports_what_was_not_inserted(port):
    lsh = MinHashLSH(0.5, num_perm=16, storage_config=config(port, b"failing"))
    minhashes = distinct_minhashes(20)
    session = lsh.insertion_session(buffer_size=5 * (2 + 2 * lsh.b))
    client, failed_keys = lsh._redis, []
    lsh._redis = Refusing(client, 1, before=True)
    for key, minhash in enumerate(minhashes[:18]):
        try:
            session.insert(key, minhash)
        except OutputError as error:
            failed_keys.append(key)
            assert "5 documents could not be inserted into b'failing' of Redis" in str(error)
    assert failed_keys == [4]
    with pytest.raises(OutputError, match="5 documents .* the connection broke"):
        session.close()
    # The failed batch left nothing, so that it can be inserted again; the others are there.
    assert len(lsh.keys) == 13 and all(sum(table.values()) == 13 for table in lsh.get_counts())
    with lsh.insertion_session() as session:
        for key, minhash in enumerate(minhashes[:5]):
            session.insert(key, minhash)
    # What is inserted after the end of a session is sent at once.
    session.insert(18, minhashes[18])
    lsh._redis = Refusing(client, 1, before=True)
    with pytest.raises(redis.ConnectionError):
        lsh.insert(19, minhashes[19])
    lsh.insert(19, minhashes[19])
    assert all(lsh.query(minhash).count(key) == 1 for key, minhash in enumerate(minhashes))
    assert len(lsh.keys) == 20 and all(sum(table.values()) == 20 for table in lsh.get_counts())


def test_a_lost_answer_is_no_failed_insertion(port):
    """The connection breaks behind the transaction: what the server did is asked, and nothing is removed."""
    lsh = MinHashLSH(0.5, num_perm=16, storage_config=config(port, b"lost answer"))
    minhashes = distinct_minhashes(11)
    lsh.insert(3, minhashes[3])
    session, client = lsh.insertion_session(), lsh._redis
    for key, minhash in enumerate(minhashes[:10]):
        if key != 3:
            session.insert(key, minhash)
    other = lsh.insertion_session()
    lsh.remove(3)
    other.insert(3, minhashes[4])
    lsh.insert(3, minhashes[3])
    lsh._redis = Refusing(client, 3, before=False)
    session.close()
    # This one the server refused, because the key is another's.
    with pytest.raises(OutputError, match="1 document .* the connection broke"):
        other.close()
    lsh.insert(10, minhashes[10])
    assert len(lsh.keys) == 11 and all(sum(table.values()) == 11 for table in lsh.get_counts())
    assert 3 in lsh.query(minhashes[3])


def test_asynchronous_sessions_keep_what_they_were_given(port):
    minhashes = distinct_minhashes(2_500)

    async def run():
        settings = {**config(port, b"gathered"), "type": "aioredis"}
        async with AsyncMinHashLSH(0.5, num_perm=16, storage_config=settings) as lsh:
            async with lsh.insertion_session(batch_size=1000) as session:
                await asyncio.gather(*(session.insert(key, minhash) for key, minhash in enumerate(minhashes)))
            counts = await lsh.get_counts()
            found = await asyncio.gather(*(lsh.query(minhash) for minhash in minhashes))
            async with lsh.delete_session(batch_size=1000) as session:
                await asyncio.gather(*(session.remove(key) for key in range(2_500)))
            return counts, found, await lsh.is_empty()

    counts, found, is_empty = asyncio.run(run())
    assert all(sum(table.values()) == 2_500 for table in counts)
    assert all(key in answer for key, answer in enumerate(found))
    assert is_empty


def test_a_cancelled_session_sends_what_it_has(port):
    minhashes = distinct_minhashes(500)
    closing = threading.Event()

    async def insert(lsh):
        async with lsh.insertion_session(batch_size=50) as session:
            close = session._session.close

            def close_slowly():
                closing.set()
                time.sleep(0.2)
                close()

            session._session.close = close_slowly
            await asyncio.gather(*(session.insert(key, minhash) for key, minhash in enumerate(minhashes)))

    async def run():
        async with AsyncMinHashLSH(0.5, num_perm=16, storage_config=config(port, b"cancelled")) as lsh:
            inserting = asyncio.create_task(insert(lsh))
            while await lsh.is_empty():
                pass
            # The second cancellation comes while the session waits for its end.
            inserting.cancel()
            await asyncio.to_thread(closing.wait)
            inserting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await inserting
            return len(lsh._lsh.keys), await lsh.get_counts()

    keys, counts = asyncio.run(run())
    assert keys > 0 and all(sum(table.values()) == keys for table in counts)


def test_the_tables_of_an_asynchronous_index(port):
    minhash = signed({"a", "b"})[0]

    async def run(settings):
        async with AsyncMinHashLSH(0.5, storage_config=settings) as lsh:
            await lsh.insert(b"a", minhash)
            bands = await lsh.keys.get(b"a" if settings is None else pickle.dumps(b"a"))
            assert len(bands) == len(lsh.hashtables) == lsh.b
            assert await lsh.keys.size() == 1 and not await lsh.keys.has_key(b"absent")
            for band, table in zip(bands, lsh.hashtables):
                assert await table.keys() == [band] and await table.itemcounts() == {band: 1}
                assert [len(values) for values in await table.getmany(band, b"absent")] == [1, 0]

    asyncio.run(run(None))
    asyncio.run(run(config(port, b"tables")))
