"""Connections of the client: a pool, repetitions, and bodies that are sent while they are made."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

#: Idle connections that are kept, and seconds after which one is not used again.
_IDLE_CONNECTIONS = 16
_IDLE_SECONDS = 60.0

#: Statuses of a service that is briefly overloaded or starting, and longest wait before the next attempt in seconds.
_BUSY = (429, 502, 503, 504)
_LONGEST_WAIT = 30.0

#: Bytes of a body that are sent at a time, and up to which a body is sent as a whole.
_PIECE = 1 << 18

Body = Union[None, bytes, Iterable[bytes]]


class ConnectionPool:
    """HTTP connections to one server, for any number of threads and after a fork.

    A request that is ``repeatable`` is sent again, up to ``retries`` times with growing pauses, after a lost connection
    and after an answer that asks for it (429, 502, 503, 504).
    """

    def __init__(self, url: str, timeout: float, retries: int) -> None:
        parts = urllib.parse.urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._prefix = parts.path.rstrip("/")
        self.timeout, self.retries = timeout, retries
        proxy = urllib.request.getproxies().get(parts.scheme)
        self._proxy = urllib.parse.urlsplit(proxy) if proxy and not urllib.request.proxy_bypass(self._host) else None
        if self._proxy and not self._secure:
            self._prefix = f"{parts.scheme}://{parts.netloc}{self._prefix}"
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def request(
        self, method: str, path: str, body: Body, headers: Mapping[str, str], repeatable: bool
    ) -> "PooledResponse":
        """Sends a request and returns its answer, whatever its status is. Raises ``OSError`` if none arrives."""
        repeatable = repeatable and (body is None or isinstance(body, (bytes, ReplayableBody)))
        for attempt in range(self.retries + 1):
            last = attempt == self.retries or not repeatable
            try:
                answer = self._attempt(method, path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                if last or isinstance(error, ssl.SSLCertVerificationError):
                    raise _as_os_error(error) from error
                time.sleep(_pause(attempt, None))
                continue
            if last or answer.status not in _BUSY:
                return answer
            answer.close()
            time.sleep(_pause(attempt, answer.headers.get("Retry-After")))
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, method: str, path: str, body: Body, headers: Mapping[str, str]) -> "PooledResponse":
        connection, is_used = self._take()
        try:
            return self._send(connection, method, path, body, headers)
        except (http.client.RemoteDisconnected, http.client.BadStatusLine, BrokenPipeError, ConnectionResetError):
            connection.close()
            # The server had closed the idle connection before it read anything, so the request was not received.
            if not is_used or not (body is None or isinstance(body, (bytes, ReplayableBody))):
                raise
        except BaseException:
            connection.close()
            raise
        connection = self._connect()
        try:
            return self._send(connection, method, path, body, headers)
        except BaseException:
            connection.close()
            raise

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Body,
        headers: Mapping[str, str],
    ) -> "PooledResponse":
        target = self._prefix + path
        pieces = iter(()) if body is None or isinstance(body, bytes) else iter(body)
        first = body if isinstance(body, bytes) else b"".join(_first_pieces(pieces))
        if body is None or isinstance(body, bytes) or len(first) < _PIECE:
            connection.request(method, target, None if body is None else first, dict(headers))
            return PooledResponse(self, connection, None)
        connection.putrequest(method, target)
        for name, value in headers.items():
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
                if time.monotonic() - since < _IDLE_SECONDS:
                    return connection, True
                connection.close()
        return self._connect(), False

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._host, self._port
        if self._proxy:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(host, port, timeout=self.timeout)
        if self._proxy and self._secure:
            connection.set_tunnel(self._host, self._port or 443)
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
        return self._response.read() if amount is None else self._response.read(amount)

    def __iter__(self) -> Iterator[bytes]:
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


def _as_os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) else ConnectionError(f"the connection broke off: {error!r}")
