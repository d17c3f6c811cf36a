"""The client with the addresses of several replicas, against servers of this test."""

import asyncio
import contextlib
import json
import pickle
import socket
import ssl
import sys
import time

import pytest
from scripted_server import HANG_SECONDS, ScriptedAnswer, ScriptedServer

import lookalike as la
from lookalike import _connections

DOCUMENT = {"id": "1", "text": "a"}

#: Failures after which a request that changes nothing when it is repeated goes on to the next address.
FAILURES = {
    "drop": "drop",
    "cut": "cut",
    "502": ScriptedAnswer(502),
    "504": ScriptedAnswer(504),
    **{code: ScriptedAnswer(503, code) for code in ("behind", "log_unavailable", "not_ready", "stopped", "")},
}


@contextlib.contextmanager
def running(count):
    servers = [ScriptedServer() for _ in range(count)]
    try:
        yield servers
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def servers():
    with running(2) as servers:
        yield servers


@pytest.fixture
def dead():
    """An address at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def client_of(*servers, **options):
    addresses = [server if isinstance(server, str) else server.url for server in servers]
    return la.Client(addresses, **{"retries": 0, **options})


def counts(*servers):
    return [len(server.requests) for server in servers]


def test_addresses_are_a_list_or_separated_by_commas():
    for given in ["http://a:1, http://b:2/", ["http://a:1/", "http://b:2"], ("http://a:1", "http://b:2")]:
        client = la.Client(given)
        assert client.addresses == ("http://a:1", "http://b:2")
        assert client.url == "http://a:1,http://b:2" and client.read_your_writes
    assert not la.Client("http://a:1").read_your_writes
    for refused in ["", [], "http://a:1,", ["a:1"], "ftp://a", 5, ["http://a:1", None], ["http://a:1,b"]]:
        with pytest.raises(la.SettingError, match="give a URL such as"):
            la.Client(refused)
    with pytest.raises(la.SettingError, match="url is 'http://a:1': give each address once"):
        la.Client("http://a:1,http://a:1/")


@pytest.mark.parametrize("failure", FAILURES)
def test_next_address_is_asked_after(failure, servers):
    first, second = servers
    for call in (
        lambda client: client.call("GET", "/a"),
        lambda client: client.collection("news").check_and_insert(DOCUMENT),
        lambda client: client.collection("news").check_and_insert([DOCUMENT, DOCUMENT]),
        lambda client: client.collection("news").query({"text": "a"}),
        lambda client: client.create("news"),
    ):
        client = client_of(first, second)
        first.script, first.requests, second.requests = [FAILURES[failure]], [], []
        call(client)
        assert counts(first, second) == [1, 1] and first.requests == second.requests
        # The address that answered stays the first one, until it fails.
        call(client)
        assert counts(first, second) == [1, 2]
        # A request that is lost on an idle connection is sent again to the same address at once.
        client.close()
        second.script = [FAILURES[failure]]
        call(client)
        assert counts(first, second) == [2, 3]
        client.close()


def test_next_address_is_asked_after_a_timeout(servers):
    first, second = servers
    first.script = ["hang", "hang"]
    news = client_of(first, second, timeout=HANG_SECONDS / 4).collection("news")
    news.check_and_insert(DOCUMENT)
    assert counts(first, second) == [1, 1]
    news = client_of(first, second, timeout=HANG_SECONDS / 4).collection("news")
    with pytest.raises(ConnectionError, match="DELETE .* was not sent again, .*: timed out"):
        news.delete("1")
    assert counts(first, second) == [2, 1]


@pytest.mark.parametrize(
    "status, code",
    [(429, "busy"), (503, "deleting"), (503, "passages_not_ready"), (500, "disk"), (404, "no_collection")],
)
def test_answers_that_every_replica_would_give_are_final(status, code, servers):
    first, second = servers
    first.script = [ScriptedAnswer(status, code)] * 2
    with pytest.raises(la.ServiceError) as refused:
        client_of(first, second).call("GET", "/a")
    assert (refused.value.status, refused.value.code) == (status, code)
    assert counts(first, second) == [1, 0]
    # Overload is repeated at the same address, as with a single one.
    first.script = [ScriptedAnswer(429, "busy")]
    assert client_of(first, second, retries=1).call("GET", "/a") == {"status": 200}
    assert counts(first, second) == [3, 0]


def test_a_request_that_cannot_be_repeated_goes_on_only_if_nothing_was_done(servers, dead):
    first, second = servers
    calls = (
        lambda client: client.collection("news").delete("1"),
        lambda client: client.collection("news").check_and_insert({"text": "no id"}),
        lambda client: client.collection("news").check_and_insert([DOCUMENT, {"text": "no id"}]),
        lambda client: client.collection("news").snapshot("monday"),
    )
    for call in calls:
        second.requests = []
        call(client_of(dead, second))
        assert counts(second) == [1]
        for code in ("behind", "catching_up", "not_ready"):
            first.script, first.requests, second.requests = [ScriptedAnswer(503, code)], [], []
            call(client_of(first, second))
            assert counts(first, second) == [1, 1]
        for failure in ("drop", ScriptedAnswer(503, "log_unavailable"), ScriptedAnswer(504)):
            first.script, first.requests, second.requests = [failure], [], []
            with pytest.raises((OSError, la.ServiceError)):
                call(client_of(first, second, retries=3))
            assert counts(first, second) == [1, 0]
    first.script = ["drop"]
    said = "DELETE .* was not sent again, because it may have been carried out: http"
    with pytest.raises(ConnectionError, match=said):
        client_of(first, second).collection("news").delete("1")


def test_a_replica_that_stopped_between_requests_is_passed_over(servers):
    first, second = servers
    client = client_of(first, second)
    client.call("GET", "/a")
    first.stop()
    client.collection("news").delete("1")
    assert counts(first, second) == [1, 1]


def test_a_replica_that_died_during_a_request_may_have_carried_it_out(servers, monkeypatch):
    first, second = servers
    client = client_of(first, second)
    client.call("GET", "/a")
    # The idle connection is good when it is taken, and lost with the server when the request is on its way.
    monkeypatch.setattr(_connections, "_is_dropped", lambda connection: first.stop() or False)
    with pytest.raises(ConnectionError, match="was not sent again"):
        client.collection("news").delete("1")
    assert counts(second) == [0]


def test_documents_that_are_made_on_the_way_reach_the_next_address(servers, dead):
    _, second = servers
    documents = ({"id": str(number), "text": "x" * 90} for number in range(5_000))
    answers = list(client_of(dead, second).collection("news").insert_stream(documents))
    assert [answer["id"] for answer in answers] == [str(number) for number in range(5_000)]
    second.script = ["drop"]
    with pytest.raises(ConnectionError):
        list(client_of(second, dead).collection("news").insert_stream(iter([DOCUMENT])))


def test_every_attempt_asks_all_addresses(servers):
    first, second = servers
    first.script, second.script = ["drop", "drop"], ["drop", ScriptedAnswer(503, "not_ready")]
    assert client_of(first, second, retries=2).call("GET", "/a") == {"status": 200}
    assert counts(first, second) == [3, 2]


def test_errors_name_every_address_that_was_tried(servers, dead):
    first, second = servers
    first.script, second.script = ["drop"], ["hang"]
    with pytest.raises(ConnectionError) as unreached:
        client_of(first, dead, second, timeout=HANG_SECONDS / 4).call("GET", "/a")
    said = str(unreached.value)
    assert said.startswith("no address answered GET /a: ")
    for part in (f"{first.url}: Remote end closed", f"{dead}: [Errno", f"{second.url}: timed out"):
        assert part in said
    first.script, second.script = [ScriptedAnswer(503, "behind")], [ScriptedAnswer(503, "log_unavailable")]
    with pytest.raises(la.ServiceError) as refused:
        client_of(first, dead, second).call("GET", "/a")
    assert (refused.value.status, refused.value.code) == (503, "log_unavailable")
    answered = (f"{first.url}: 503 behind; ", f"{second.url}: 503 log_unavailable)")
    for part in ("as the script says (tried ", dead, *answered):
        assert part in refused.value.detail
    first.script = [ScriptedAnswer(503, "behind")]
    with pytest.raises(la.ServiceError) as alone:
        client_of(first).call("GET", "/a")
    assert alone.value.detail == "as the script says"


def position_sent(server):
    return server.headers[-1].get("Lookalike-Position")


def test_the_newest_position_of_a_write_is_sent_with_every_request(servers):
    first, second = servers
    client = client_of(first, second)
    client.call("GET", "/a")
    assert position_sent(first) is None and client.position is None
    for stated in (7, 5, "none", "-9", None):
        first.script = [ScriptedAnswer(position=stated)]
        client.collection("news").check_and_insert(DOCUMENT)
    assert client.position == 7 and position_sent(first) == "7"
    first.script = [502]
    client.collection("news").query({"text": "a"})
    assert position_sent(second) == "7"
    second.script = [ScriptedAnswer(position=8)]
    client.collection("news").check_and_insert([DOCUMENT, DOCUMENT])
    copy = pickle.loads(pickle.dumps(client))
    assert (copy.addresses, copy.position, copy.read_your_writes) == (client.addresses, 8, True)
    client.position = None
    client.call("GET", "/a")
    assert position_sent(second) is None


def test_the_records_of_bulk_answers_are_positions(servers):
    first, _ = servers
    client = client_of(first, read_your_writes=True)
    # The server answers each line with the line itself.
    documents = [dict(DOCUMENT, record=record) for record in (4, 6, 5)] + [DOCUMENT]
    answers = client.collection("news").check_and_insert(documents)
    assert [answer.get("record") for answer in answers] == [4, 6, 5, None]
    assert client.position == 6 and position_sent(first) is None
    client.call("GET", "/a")
    assert position_sent(first) == "6"
    stream = client.collection("news").insert_stream(dict(DOCUMENT, record=record) for record in (7, 8))
    assert next(stream)["record"] == 7 and client.position == 7
    assert [answer["record"] for answer in stream] == [8] and client.position == 8


@pytest.mark.parametrize("count, choice, sent", [(1, None, None), (1, True, "3"), (2, None, "3"), (2, False, None)])
def test_reading_your_writes_is_the_default_for_several_addresses(count, choice, sent, servers):
    client = client_of(*servers[:count], read_your_writes=choice)
    servers[0].script = [ScriptedAnswer(position=3)]
    client.collection("news").check_and_insert(DOCUMENT)
    client.collection("news").get("1")
    assert position_sent(servers[0]) == sent and client.position == 3


def test_a_service_is_ready_if_a_replica_is(servers, dead):
    first, second = servers
    first.script = [503]
    assert client_of(dead, first, second).is_ready()
    first.script, second.script = [503], [503]
    assert not client_of(dead, first, second).is_ready()
    assert counts(first, second) == [2, 2]


def test_asynchronous_client_goes_on_and_remembers(servers):
    first, second = servers

    async def run():
        async with la.AsyncClient(f"{first.url},{second.url}", retries=0) as client:
            first.script = [ScriptedAnswer(position=4)]
            await client.collection("news").check_and_insert(DOCUMENT)
            assert client.position == 4
            first.script = [502]
            await client.collection("news").query({"text": "a"})
            assert position_sent(second) == "4"
            client.position = None
            await client.call("GET", "/a")
            assert position_sent(second) is None
        async with la.AsyncClient([first.url, second.url], read_your_writes=False) as client:
            first.script = [ScriptedAnswer(position=4)]
            await client.collection("news").check_and_insert(DOCUMENT)
            await client.call("GET", "/a")
            assert position_sent(first) is None

    asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="fills a queue of connections as Linux does")
def test_a_machine_that_answers_nothing_costs_the_time_to_connect(servers, monkeypatch):
    monkeypatch.setattr(_connections, "_CONNECT_SECONDS", 0.2)
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            filler = waiting.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        client = la.Client([f"http://127.0.0.1:{full.getsockname()[1]}", servers[0].url], timeout=60, retries=0)
        begun = time.monotonic()
        client.collection("news").delete("1")
        assert time.monotonic() - begun < 30


def test_an_untrusted_certificate_is_reported_and_not_passed_over(servers, tmp_path):
    pytest.importorskip("cryptography")
    from object_servers import https_server

    with https_server(tmp_path) as (address, _, _):
        begun = time.monotonic()
        with pytest.raises(ssl.SSLCertVerificationError):
            client_of(address, servers[0], retries=9).call("GET", "/a")
        assert counts(servers[0]) == [0] and time.monotonic() - begun < 10


class MadeReplica(ScriptedServer):
    """A replica that applies records of a log only when a request waits for them, as one that lags does."""

    def __init__(self, log):
        super().__init__()
        self.log, self.applied = log, 0
        handler, replica = self.server.RequestHandlerClass, self

        def answer(request):
            body = request.read_body()
            replica.applied = max(replica.applied, int(request.headers.get("Lookalike-Position") or 0))
            if request.command == "POST":
                log.append(json.loads(body)["id"])
                replica.applied = len(log)
            is_known = request.path.rpartition("/")[2] in log[: replica.applied] or request.command == "POST"
            content = b"{}" if is_known else b'{"code": "no_document", "detail": "it is not here"}'
            request.send_response(200 if is_known else 404)
            if request.command == "POST":
                request.send_header("Lookalike-Position", str(len(log)))
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)

        handler.do_GET = handler.do_POST = answer


@pytest.mark.parametrize("read_your_writes", [True, False])
def test_a_document_is_read_where_it_was_not_written(read_your_writes):
    log = []
    replicas = [MadeReplica(log) for _ in range(3)]
    client = client_of(*replicas, read_your_writes=read_your_writes)
    news = client.collection("news")
    news.check_and_insert({"id": "a", "text": "a"})
    replicas[0].stop()
    if read_your_writes:
        news.get("a")
    else:
        with pytest.raises(la.ServiceError, match="no_document"):
            news.get("a")
    news.check_and_insert({"id": "b", "text": "b"})
    assert log == ["a", "b"] and client.position == 2
    for replica in replicas[1:]:
        replica.stop()
    with pytest.raises(ConnectionError) as unreached:
        news.get("b")
    assert all(replica.url in str(unreached.value) for replica in replicas)
