"""The index in Redis, in a server of its own: answers of the index in memory, and the data of datasketch."""

import asyncio
import pickle
import shutil
import socket
import subprocess
import time

import datasketch
import pytest
from test_datasketch_set import made_sets, signed

import lookalike as la

pytest.importorskip("redis")


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
    plain, stored = la.MinHashLSH(0.5), la.MinHashLSH(0.5, storage_config=config(port, b"a"))
    assert isinstance(stored, la.RedisMinHashLSH) and stored.is_empty()
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
    other = la.MinHashLSH(0.5, storage_config=config(port, b"b"))
    other.merge(stored, check_overlap=True)
    assert set(other.query(minhashes[9])) == set(stored.query(minhashes[9]))
    with pytest.raises(ValueError, match="overlapping"):
        other.merge(stored, check_overlap=True)
    for key in range(60):
        if key != 5:
            stored.remove(("key", key))
    assert stored.is_empty() and all(not table for table in stored.get_counts())


def test_an_index_of_datasketch_opens(port):
    theirs = datasketch.MinHashLSH(0.5, storage_config=config(port, b"shared"))
    ours = la.MinHashLSH(0.5, storage_config=config(port, b"shared"))
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
    index = la.MinHashLSH(0.5, storage_config=settings, prepickle=False)
    index.insert(b"a", signed({"a"})[0])
    assert index.query(signed({"a"})[0]) == [b"a"]
    with pytest.raises(TypeError, match="bytes keys"):
        index.insert("a", signed({"a"})[0])


def test_ensemble_and_asynchronous_index_in_redis(port):
    sets = made_sets(30)
    ensemble = la.MinHashLSHEnsemble(0.6, num_part=2, m=4, storage_config=config(port, b"ensemble"))
    plain = la.MinHashLSHEnsemble(0.6, num_part=2, m=4)
    for index in (ensemble, plain):
        index.index([(key, signed(values)[0], len(values)) for key, values in enumerate(sets)])
    for values in sets:
        minhash = signed(values)[0]
        assert sorted(ensemble.query(minhash, len(values))) == sorted(plain.query(minhash, len(values)))

    async def run():
        settings = {**config(port, b"async"), "type": "aioredis"}
        async with la.AsyncMinHashLSH(0.5, storage_config=settings) as lsh:
            await lsh.insert("a", signed({"a", "b"})[0])
            return await lsh.query(signed({"a", "b"})[0])

    assert asyncio.run(run()) == ["a"]
