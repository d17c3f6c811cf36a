"""Connections of the client: pools, repetitions at other addresses, and bodies that are sent while they are made."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import selectors
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

#: Idle connections that are kept, and seconds after which one is not used again.
_IDLE_CONNECTIONS = 16
_IDLE_SECONDS = 60.0

#: Statuses of a service that is briefly overloaded or starting, and longest wait before the next attempt in seconds.
_BUSY = (429, 502, 503, 504)
_LONGEST_WAIT = 30.0

#: Longest time in seconds to connect to one of several addresses. A machine that is off answers nothing, and a request
#: must not wait the whole timeout for it while others are there.
_CONNECT_SECONDS = 5.0

#: Codes of 503 that every replica would give. The others, such as ``log_unavailable``, can be those of one replica.
_SAME_EVERYWHERE_CODES = ("deleting", "passages_not_ready")

#: Codes of 503 that come before anything is done.
_NOTHING_DONE_CODES = ("behind", "catching_up", "not_ready")

#: Bytes of a body that are sent at a time, and up to which a body is sent as a whole.
_PIECE = 1 << 18

Body = Union[None, bytes, Iterable[bytes]]


class NotConnectedError(Exception):
    """No connection was made, so the server received nothing. The cause says why."""


@dataclass(frozen=True)
class PooledRequest:
    """A request. It is ``repeatable`` if sending it twice changes nothing, and ``is_whole`` if its answer must arrive
    completely before it counts as one."""

    method: str
    path: str
    body: Body
    headers: Mapping[str, str]
    repeatable: bool
    is_whole: bool = False

    def can_send_again(self) -> bool:
        """Returns True if the body can be made again."""
        return self.body is None or isinstance(self.body, (bytes, ReplayableBody))


#: An answer, or why there is none.
Outcome = Union["PooledResponse", Exception]


class ReplicaConnections:
    """Connections to the replicas of a service. The one that answered last is asked first.

    A request that is ``repeatable`` is sent again, up to ``retries`` times with growing pauses, after a lost connection
    and after an answer that asks for it (429, 502, 503, 504). With several addresses each attempt asks one after
    another, without a pause between them, until one answers. Any request goes on to the next address if no connection
    was made or the answer says that nothing was done; others only if they are ``repeatable``.
    """

    def __init__(self, addresses: Sequence[str], timeout: float, retries: int) -> None:
        connect_timeout = timeout if len(addresses) == 1 else min(timeout, _CONNECT_SECONDS)
        self.pools = [ConnectionPool(address, timeout, connect_timeout) for address in addresses]
        self.retries = retries
        self._preferred = 0

    def request(self, request: PooledRequest) -> "PooledResponse":
        """Sends a request and returns its answer, whatever its status is. Raises ``OSError`` if none arrives."""
        failures: dict[str, str] = {}
        repeatable = request.repeatable and request.can_send_again()
        for attempt in range(self.retries + 1):
            outcome = self._ask_in_turn(request, failures)
            is_failure = isinstance(outcome, Exception) or outcome.status in _BUSY
            if attempt == self.retries or not repeatable or not is_failure or _is_untrusted(outcome):
                return self._conclude(request, outcome, failures)
            stated = None if isinstance(outcome, Exception) else outcome.headers.get("Retry-After")
            time.sleep(_pause(attempt, stated))
        raise AssertionError("the last attempt returns or raises")

    def has_ready_replica(self, headers: Mapping[str, str]) -> bool:
        """Returns True if a replica says that it is ready."""
        request = PooledRequest("GET", "/readyz", None, headers, repeatable=False, is_whole=True)
        outcomes = (_ask(pool, request) for pool in self.pools)
        return any(not isinstance(outcome, Exception) and outcome.status < 400 for outcome in outcomes)

    def close(self) -> None:
        """Closes all idle connections."""
        for pool in self.pools:
            pool.close()

    def _ask_in_turn(self, request: PooledRequest, failures: dict[str, str]) -> Outcome:
        """Asks the addresses until one has an answer, and returns it or the last failure. Notes the failures by
        their addresses."""
        first = self._preferred
        outcome: Outcome = AssertionError("there is an address")
        for step in range(len(self.pools)):
            number = (first + step) % len(self.pools)
            pool = self.pools[number]
            outcome = _ask(pool, request)
            if isinstance(outcome, Exception) or outcome.status in _BUSY:
                failures[pool.url] = _describe_failure(outcome)
            if not _may_ask_another(request, outcome):
                if not isinstance(outcome, Exception):
                    self._preferred = number
                return outcome
        return outcome

    def _conclude(self, request: PooledRequest, outcome: Outcome, failures: Mapping[str, str]) -> "PooledResponse":
        """Returns an answer, with the addresses that were tried if it is a failure; raises another failure."""
        tried = "; ".join(f"{address}: {reason}" for address, reason in failures.items())
        if not isinstance(outcome, Exception):
            if outcome.status in _BUSY and len(self.pools) > 1:
                outcome.tried = tried
            return outcome
        error = _reason(outcome)
        if len(self.pools) == 1 or _is_untrusted(outcome):
            raise _at_address(error, tried) from error
        if not _may_ask_another(request, outcome):
            raise ConnectionError(
                f"{request.method} {request.path} was not sent again, because it may have been carried out: {tried}"
            ) from error
        raise ConnectionError(f"no address answered {request.method} {request.path}: {tried}") from error


def _ask(pool: "ConnectionPool", request: PooledRequest) -> Outcome:
    """Sends a request once, and returns its answer or why there is none."""
    try:
        answer = pool.send(request)
        if request.is_whole or answer.status >= 400:
            answer.read_whole()
        return answer
    except (OSError, http.client.HTTPException, NotConnectedError) as error:
        return error


def _may_ask_another(request: PooledRequest, outcome: Outcome) -> bool:
    """Returns True if another address may give a better answer and asking it can do no harm."""
    if isinstance(outcome, NotConnectedError):
        return not _is_untrusted(outcome)
    if not request.can_send_again():
        return False
    if isinstance(outcome, Exception) or outcome.status in (502, 504):
        return request.repeatable
    if outcome.status != 503:
        return False
    code = outcome.problem_code()
    is_harmless = request.repeatable or code in _NOTHING_DONE_CODES
    return is_harmless and code not in _SAME_EVERYWHERE_CODES


class ConnectionPool:
    """HTTP connections to one server, for any number of threads and after a fork."""

    def __init__(self, url: str, timeout: float, connect_timeout: float) -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._prefix = parts.path.rstrip("/")
        self.timeout, self._connect_timeout = timeout, connect_timeout
        proxy = urllib.request.getproxies().get(parts.scheme)
        self._proxy = urllib.parse.urlsplit(proxy) if proxy and not urllib.request.proxy_bypass(self._host) else None
        if self._proxy and not self._secure:
            self._prefix = f"{parts.scheme}://{parts.netloc}{self._prefix}"
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def send(self, request: PooledRequest) -> "PooledResponse":
        """Sends a request once. Raises :class:`NotConnectedError` if the server received nothing of it."""
        connection, is_used = self._take()
        try:
            return self._send_by(connection, request)
        except (
            http.client.RemoteDisconnected,
            http.client.BadStatusLine,
            BrokenPipeError,
            ConnectionResetError,
        ) as error:
            connection.close()
            # The server had closed the idle connection before it read anything, so the request was not received.
            if not is_used or not request.can_send_again():
                raise
            broken = error
        except BaseException:
            connection.close()
            raise
        try:
            connection = self._connect()
        except NotConnectedError:
            # A server that is gone may have received the request before.
            raise broken from None
        try:
            return self._send_by(connection, request)
        except BaseException:
            connection.close()
            raise

    def _send_by(self, connection: http.client.HTTPConnection, request: PooledRequest) -> "PooledResponse":
        target, body = self._prefix + request.path, request.body
        pieces = iter(()) if body is None or isinstance(body, bytes) else iter(body)
        first = body if isinstance(body, bytes) else b"".join(_first_pieces(pieces))
        if body is None or isinstance(body, bytes) or len(first) < _PIECE:
            connection.request(request.method, target, None if body is None else first, dict(request.headers))
            return PooledResponse(self, connection, None)
        connection.putrequest(request.method, target)
        for name, value in request.headers.items():
            connection.putheader(name, value)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        # A thread of its own sends the body, because the service answers before it has read all of it.
        sender = _BodySender(connection, first, pieces)
        sender.start()
        return PooledResponse(self, connection, sender)

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._process != os.getpid():
                # A connection cannot be shared with the process that this one is a fork of.
                self._idle, self._process = [], os.getpid()
            while self._idle:
                connection, since = self._idle.pop()
                if time.monotonic() - since < _IDLE_SECONDS and not _is_dropped(connection):
                    return connection, True
                connection.close()
        return self._connect(), False

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._host, self._port
        if self._proxy:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(host, port, timeout=self._connect_timeout)
        if self._proxy and self._secure:
            connection.set_tunnel(self._host, self._port or 443)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise NotConnectedError() from error
        connection.timeout = self.timeout
        connection.sock.settimeout(self.timeout)
        return connection

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        """Keeps a connection for the next request."""
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()

    def close(self) -> None:
        """Closes all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()


class PooledResponse:
    """An answer. Its connection goes back to the pool when everything is read."""

    def __init__(
        self, pool: ConnectionPool, connection: http.client.HTTPConnection, sender: Optional["_BodySender"]
    ) -> None:
        self._pool, self._connection, self._sender = pool, connection, sender
        self._content: Optional[bytes] = None
        #: The addresses that were tried and why each failed, if there are several and this answer is a failure.
        self.tried = ""
        try:
            self._response = connection.getresponse()
        except BaseException:
            if sender is not None:
                sender.raise_failure()
            raise
        self.status = self._response.status
        self.headers = self._response.headers

    def read(self, amount: Optional[int] = None) -> bytes:
        """Reads the rest of the body, or up to ``amount`` bytes. Raises ``http.client.IncompleteRead`` if it breaks
        off."""
        if self._content is not None:
            return self._content if amount is None else self._content[:amount]
        return self._response.read() if amount is None else self._response.read(amount)

    def read_whole(self) -> None:
        """Reads the whole body into memory and gives the connection back. Raises ``http.client.IncompleteRead`` if the
        body breaks off."""
        try:
            content = self._response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            if self._sender is not None:
                self._sender.raise_failure()
            raise
        if self._sender is not None and self.status < 400:
            self._sender.raise_failure()
        self.close()
        self._content = content

    def problem_code(self) -> Optional[str]:
        """Returns the code of a problem whose body was read; None if the body is no problem."""
        try:
            code = json.loads(self._content or b"")["code"]
        except (ValueError, TypeError, KeyError):
            return None
        return code if isinstance(code, str) else None

    def __iter__(self) -> Iterator[bytes]:
        if self._content is not None:
            yield from self._content.split(b"\n")
            return
        try:
            yield from self._lines()
        except (OSError, http.client.HTTPException):
            if self._sender is not None:
                self._sender.raise_failure()
            raise
        if self._sender is not None:
            self._sender.raise_failure()

    def _lines(self) -> Iterator[bytes]:
        begun: list[bytes] = []
        # Reading by lines would take a broken answer for a complete one.
        while piece := self._response.read1(1 << 16):
            *ends, rest = piece.split(b"\n")
            for end in ends:
                yield b"".join([*begun, end])
                begun = []
            begun.append(rest)
        if any(begun):
            yield b"".join(begun)
        if self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)

    def close(self) -> None:
        """Gives the connection back if the answer was read to its end, and closes it otherwise."""
        if self._content is not None:
            return
        is_sent = self._sender is None or not self._sender.is_alive()
        is_read = self._response.isclosed() or self._response.length == 0
        self._response.close()
        if is_sent and is_read and not self._response.will_close:
            self._pool.give_back(self._connection)
        else:
            self._connection.close()

    def __enter__(self) -> "PooledResponse":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class ReplayableBody:
    """A body of several pieces that can be made again from its parts."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())


class _BodySender(threading.Thread):
    """Sends the pieces of a body in chunks."""

    def __init__(self, connection: http.client.HTTPConnection, first: bytes, pieces: Iterator[bytes]) -> None:
        super().__init__(name="lookalike-body", daemon=True)
        self._connection, self._first, self._pieces = connection, first, pieces
        self._failure: Optional[BaseException] = None

    def run(self) -> None:
        try:
            piece = self._first
            while piece:
                self._connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                piece = b"".join(_first_pieces(self._pieces))
            self._connection.send(b"0\r\n\r\n")
        except OSError:
            # A service that refuses a request need not read all of it; its answer says why.
            pass
        except BaseException as error:
            self._failure = error
            # The body has no end, so that the service does not take it for a complete one.
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)

    def raise_failure(self) -> None:
        """Raises what the maker of the body raised."""
        self.join(1.0)
        if self._failure is not None:
            raise self._failure


def _first_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the next pieces until they are large enough to be sent."""
    size = 0
    for piece in pieces:
        yield piece
        size += len(piece)
        if size >= _PIECE:
            return


def _pause(attempt: int, stated: Optional[str]) -> float:
    """Returns the seconds before the next attempt: those that the service states, or twice as many each time."""
    if stated and stated.isdigit():
        return min(float(stated), _LONGEST_WAIT)
    return float(min(0.1 * 2**attempt, _LONGEST_WAIT))


def _describe_failure(outcome: Outcome) -> str:
    """Returns why an address gave no usable answer."""
    if isinstance(outcome, Exception):
        error = _reason(outcome)
        return str(error) or repr(error)
    return f"{outcome.status} {outcome.problem_code() or ''}".rstrip()


def _reason(failure: Exception) -> BaseException:
    """Returns the error of the network behind a failure."""
    return failure.__cause__ or failure if isinstance(failure, NotConnectedError) else failure


def _is_untrusted(outcome: Outcome) -> bool:
    """Returns True if the certificate of a server is not valid. Such a server is reported, not passed over."""
    return isinstance(outcome, Exception) and isinstance(_reason(outcome), ssl.SSLCertVerificationError)


def _is_dropped(connection: http.client.HTTPConnection) -> bool:
    """Returns True if the server has closed an idle connection: it then has an end to read."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _at_address(error: BaseException, tried: str) -> OSError:
    """Returns a failure of the network of the same class and with the same ``errno``, whose message is ``tried``: the
    address and its failure."""
    if not isinstance(error, OSError):
        return ConnectionError(f"the connection broke off: {tried}")
    if error.errno is None:
        return type(error)(tried)
    return type(error)(error.errno, tried.replace(str(error), str(error.strerror)))
