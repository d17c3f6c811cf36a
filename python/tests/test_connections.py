"""Connections of the client: the pool, repetitions, and bodies of any length."""

import asyncio
import os
import pickle
import threading
import time

import pytest
from scripted_server import ScriptedServer
from test_client import service  # noqa: F401

import lookalike as la


@pytest.fixture
def flaky():
    made = ScriptedServer()
    yield made
    made.stop()


def test_requests_share_a_connection(flaky):
    client = la.Client(flaky.url)
    for _ in range(5):
        client.call("GET", "/a")
    with pytest.raises(la.ServiceError):
        flaky.script = [404]
        client.call("GET", "/b")
    client.call("GET", "/c")
    assert len(flaky.connections) == 1 and len(flaky.requests) == 7
    client.close()
    client.call("GET", "/d")
    assert len(flaky.connections) == 2
    assert pickle.loads(pickle.dumps(client)).call("GET", "/e") == {"status": 200}


@pytest.mark.parametrize("failure", ["drop", 429, 503])
def test_lost_requests_are_repeated_if_that_changes_nothing(flaky, failure):
    client, insert = la.Client(flaky.url, retries=2), {"id": "1", "text": "a"}
    news = client.collection("news")
    for call, times in [
        (lambda: client.call("GET", "/a"), 3),
        (lambda: news.check_and_insert(insert), 3),
        (lambda: news.check_and_insert([insert, insert]), 3),
        (lambda: news.query({"text": "a"}), 3),
    ]:
        flaky.script, flaky.requests = [failure, failure, 200], []
        call()
        assert len(flaky.requests) == times and len(set(flaky.requests)) == 1
    for call in (
        lambda: news.check_and_insert({"text": "no id"}),
        lambda: news.check_and_insert([insert, {"text": "no id"}]),
        lambda: news.snapshot("x"),
        lambda: news.delete("1"),
    ):
        client.close()
        flaky.script, flaky.requests = [failure], []
        with pytest.raises((OSError, la.ServiceError)):
            call()
        assert len(flaky.requests) == 1
    flaky.script, flaky.requests = [failure] * 3, []
    with pytest.raises((OSError, la.ServiceError)):
        client.call("GET", "/a")
    assert len(flaky.requests) == 3


def test_idle_connections_that_the_server_closed_are_replaced(flaky):
    client = la.Client(flaky.url, retries=0)
    client.call("POST", "/a", {})
    for connection, _ in client._connections.pools[0]._idle:
        connection.sock.shutdown(2)
    assert client.call("POST", "/b", {}) == {"status": 200}


def test_a_fork_has_connections_of_its_own(flaky):
    client = la.Client(flaky.url)
    client.call("GET", "/a")
    client._connections.pools[0]._process = os.getpid() + 1
    client.call("GET", "/b")
    assert len(flaky.connections) == 2


def test_documents_are_sent_while_answers_arrive(service):  # noqa: F811
    news = service.create("streamed")
    count, sent, answered = 8_000, 0, 0
    arrived = threading.Event()

    def documents():
        nonlocal sent
        for number in range(count):
            # The second half is sent once an answer to the first is there.
            assert number < count // 2 or arrived.wait(60)
            sent += 1
            yield {"id": str(number), "text": f"document {number} has words of its own {number * 7919} {'x' * 50}"}

    first = None
    for answer in news.insert_stream(documents()):
        first = sent if first is None else first
        arrived.set()
        answered += 1
        assert answer["id"] == str(answered - 1)
    assert first < answered == sent == count and news.stats()["rows"] == count
    with pytest.raises(ZeroDivisionError):
        list(news.insert_stream({"id": f"{at}-{1 // (5_000 - at)}", "text": "y" * 90} for at in range(9_000)))
    news.drop()


def test_many_threads_use_one_client(service):  # noqa: F811
    news = service.create("threads")
    failures = []

    def insert(thread):
        try:
            for at in range(20):
                news.check_and_insert({"id": f"{thread}-{at}", "text": f"the text {at} of thread {thread} is its own"})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures and news.stats()["rows"] == 160
    news.drop()


def test_asynchronous_client_has_the_calls_of_the_other(service):  # noqa: F811
    async def run():
        async with la.AsyncClient(service.url, connections=4) as client:
            assert await client.is_ready()
            news = await client.create("async", threshold=0.6)
            answers = await asyncio.gather(
                *(news.check_and_insert({"id": str(at), "text": "the ferry leaves at seven"}) for at in range(20))
            )
            assert sum(answer["verdict"] == "kept" for answer in answers) == 1
            assert (await client.collection("async").query({"text": "the ferry leaves at eight"}))["of"] is not None
            documents = ({"id": f"s{at}", "text": f"the text number {at} stands alone {at * 31}"} for at in range(50))
            assert [answer["id"] async for answer in news.insert_stream(documents)] == [f"s{at}" for at in range(50)]
            assert len([one async for one in news.export()]) == 70
            with pytest.raises(la.ServiceError):
                await client.collection("none").stats()
            for missing in ("nothing", "_call"):
                with pytest.raises(AttributeError):
                    getattr(client, missing)
            await news.drop()

    started = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - started < 30
