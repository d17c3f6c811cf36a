"""A proxy that reads the HTTP requests between a replica and its store. It counts them, and can refuse or delay some."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import BinaryIO

from proxy import StoreProxy

SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your request rate.'
    b"</Message><RequestId>0</RequestId></Error>"
)
INTERNAL_ERROR = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>InternalError</Code><Message>We encountered an internal '
    b"error. Please try again.</Message><RequestId>0</RequestId></Error>"
)


@dataclass(frozen=True)
class Throttle:
    """Shares of the requests that a store refuses, does but answers with an error, or delays."""

    refused: float = 0.0
    lost: float = 0.0
    delayed: float = 0.0
    longest_delay_seconds: float = 0.0


@dataclass(frozen=True)
class Message:
    """A request or an answer as it was sent."""

    first_line: str
    is_last: bool
    content: bytes


class HttpProxy(StoreProxy):
    """Forwards one request after another on each connection."""

    def __init__(self, target: int, throttle: Throttle = Throttle(), seed: int = 0):
        self.throttle = throttle
        self.numbers = random.Random(seed)
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.lock = threading.Lock()
        super().__init__(target)

    def count_requests(self) -> Counter[tuple[str, str, int]]:
        """Returns the number of requests by method, target and status of the answer."""
        with self.lock:
            return Counter(self.counts)

    def _forward(self, client: socket.socket, store: socket.socket) -> None:
        with client.makefile("rb") as requests, store.makefile("rb") as answers:
            while request := read_message(requests):
                answer = self._answer(request, store, answers)
                if not self._wait_while_cut():
                    break
                if answer is None:
                    break
                client.sendall(answer.content)
                if request.is_last or answer.is_last:
                    break

    def _answer(self, request: Message, store: socket.socket, answers: BinaryIO) -> Message | None:
        method, target, _ = request.first_line.split(" ", 2)
        with self.lock:
            fate, delay = self.numbers.random(), self.numbers.random() * self.throttle.longest_delay_seconds
            is_delayed = self.numbers.random() < self.throttle.delayed
        if is_delayed:
            time.sleep(delay)
        if not self._wait_while_cut():
            return None
        if fate < self.throttle.refused:
            answer = make_error("503 Slow Down", SLOW_DOWN, method)
        else:
            store.sendall(request.content)
            answer = read_message(answers, method)
            if answer is not None and fate < self.throttle.refused + self.throttle.lost:
                answer = make_error("500 Internal Server Error", INTERNAL_ERROR, method)
        if answer is not None:
            with self.lock:
                self.counts[method, target, int(answer.first_line.split(" ")[1])] += 1
        return answer


def make_error(status: str, body: bytes, method: str) -> Message:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return Message(f"HTTP/1.1 {status}", False, head.encode() + (b"" if method == "HEAD" else body))


def read_message(stream: BinaryIO, method: str | None = None) -> Message | None:
    """Returns the next request or, if `method` is that of its request, the next answer; `None` at the end."""
    first = stream.readline()
    if not first:
        return None
    head, fields = [first], {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        head.append(line)
        name, _, value = line.decode("latin-1").partition(":")
        fields[name.strip().lower()] = value.strip()
    first_line = first.decode("latin-1").strip()
    is_last = fields.get("connection", "").lower() == "close" or "HTTP/1.0" in first_line
    if method is not None and (method == "HEAD" or first_line.split(" ")[1] in ("204", "304")):
        body = b""
    elif fields.get("transfer-encoding", "").lower() == "chunked":
        body = read_chunks(stream)
    elif "content-length" in fields:
        body = stream.read(int(fields["content-length"]))
    else:
        # A request without a length has no body, and an answer without one ends with the connection.
        body = b"" if method is None else stream.read()
        is_last = is_last or method is not None
    return Message(first_line, is_last, b"".join(head) + b"\r\n" + body)


def read_chunks(stream: BinaryIO) -> bytes:
    pieces = []
    while size := stream.readline():
        length = int(size.split(b";")[0], 16)
        pieces += [size, stream.read(length + 2)]
        if length == 0:
            break
    return b"".join(pieces)
