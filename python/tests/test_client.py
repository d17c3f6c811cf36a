"""The client, against a running service."""

import doctest
import importlib
import json
import signal
import socket
import subprocess
import time

import pytest

import lookalike as la


@pytest.fixture(scope="module")
def service(command, tmp_path_factory):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = tmp_path_factory.mktemp("service")
    log = (data / "log").open("w")
    process = subprocess.Popen(
        [command.program, "serve", "--data", data / "data", "--listen", f"127.0.0.1:{port}"],
        stdout=log,
        stderr=log,
    )
    client = la.Client(f"http://127.0.0.1:{port}/")
    deadline = time.monotonic() + 30
    while not client.is_ready():
        assert process.poll() is None and time.monotonic() < deadline, (data / "log").read_text()
        time.sleep(0.05)
    yield client
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    log.close()


def test_collection_life_cycle(service):
    news = service.create("news", threshold=0.75)
    first = news.check_and_insert({"id": "a", "text": "The ferry leaves at seven, nobody misses it."})
    assert (first["verdict"], first["seq"]) == ("kept", first["seq"])
    answers = news.check_and_insert(
        [
            {"id": "b", "text": "THE FERRY leaves at seven; nobody misses it!"},
            {"id": "ü/1", "text": "Something else entirely stands here.", "meta": {"a": 1}},
            {"id": "bad"},
        ]
    )
    assert [answer.get("verdict") for answer in answers] == ["duplicate", "kept", None]
    assert answers[0]["of"] == "a" and answers[0]["similarity"] == 1.0
    asked = news.query({"id": "q", "text": "the ferry leaves at seven nobody misses it"})
    assert asked["of"] == "a"
    assert news.query([{"id": "q", "text": "nothing like the others is this"}])[0]["verdict"] == "kept"
    assert news.get("ü/1")["id"] == "ü/1"
    assert news.stats()["kept"] == 2
    assert news.settings()["threshold"] == 0.75
    assert json.dumps(news.clusters())
    best = news.clusters(prefer="max:quality")["clusters"][0]["preferred"]
    assert best["document"]["id"] == "a" and best["value"] is None
    assert news.cluster("a", prefer="min:quality")["preferred"]["complete"] is True
    news.check_and_insert({"id": "c", "text": "The ferry leaves at seven, nobody misses it!"})
    newest = news.cluster("a", members=1)
    assert [one["id"] for one in newest["members"]] == ["c"]
    rest = news.cluster("a", members=1, after=newest["next"])
    assert [one["id"] for one in rest["members"]] == ["b"] and rest["next"] is None
    assert news.change(on_conflict="replace")["on_conflict"] == "replace"
    assert news.change(on_conflict="refuse") == news.settings()
    news.delete("ü/1")
    with pytest.raises(la.ServiceError) as missing:
        news.get("ü/1")
    assert missing.value.status in (404, 410) and missing.value.code and missing.value.detail
    assert "news" in json.dumps(service.collections())
    news.drop()
    with pytest.raises(la.ServiceError) as gone:
        service.collection("news").stats()
    assert gone.value.status == 404


def test_verdicts_equal_dedup(service, documents):
    collection = service.create("same", threshold=0.6)
    rows = [{"id": one["id"], "text": one["text"]} for one in documents]
    answers = collection.check_and_insert(rows)
    kept = [answer["id"] for answer in answers if answer["verdict"] == "kept"]
    found = la.dedup([one["text"] for one in documents], threshold=0.6)
    assert kept == [documents[row]["id"] for row in found.kept_rows]


def test_refusals_and_lost_services_are_reported(service):
    with pytest.raises(la.ServiceError) as refused:
        service.create("x", threshold=7)
    assert refused.value.status == 422 or refused.value.status == 400
    assert "7" in refused.value.detail
    with pytest.raises(OSError):
        la.Client("http://127.0.0.1:9", timeout=1).collections()
    assert not la.Client("http://127.0.0.1:9", timeout=1).is_ready()
    assert isinstance(refused.value, la.LookalikeError)


def test_examples_of_the_client(service):
    """As they stand, but for the address."""
    module = importlib.import_module("lookalike._client")
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, globs={"la": la}):
        for example in test.examples:
            example.source = example.source.replace("http://127.0.0.1:7600", service.url)
        runner.run(test)
    assert runner.failures == 0 and runner.tries > 10
