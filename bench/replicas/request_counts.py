#!/usr/bin/env python3
"""Requests to the store of a steady feed into three replicas, by kind, and what S3 would take for them in a month.

Every replica has a proxy of its own, which counts its HTTP requests and their answers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from http_proxy import HttpProxy, read_message
from rounds import WORDS, create_collection
from service import Cluster, Replica
from stores import STORES

# List prices of S3 in USD for one request; PUT, COPY, POST and LIST cost the same.
PUT_PRICE, GET_PRICE = 0.005 / 1000, 0.0004 / 1000
SECONDS_OF_MONTH = 30 * 86_400
# Clients that send one document after another. Each waits for its answers, so the rate takes many of them.
CLIENTS = 150
WARM_UP_SECONDS = 20

PUT_OF_RECORD, LATE_PUT = "PUT of a record", "PUT of a record that exists already"
GET_OF_RECORD, GET_OF_NONE = "GET of a record", "GET that finds no record yet"
OTHER_PUT, OTHER_GET, LIST = "PUT of a mark", "GET of another object", "LIST"
KINDS = [PUT_OF_RECORD, LATE_PUT, GET_OF_RECORD, GET_OF_NONE, OTHER_PUT, OTHER_GET, LIST]


class Feed:
    """Clients that keep to one replica each, on one connection, and together send at a rate."""

    def __init__(self, replicas: list[Replica], rate: float):
        self.replicas, self.interval = replicas, CLIENTS / rate
        self.has_ended = threading.Event()
        # Beginnings and lengths of requests in seconds: with a verdict, and with 503 because the log took too long.
        self.times: list[tuple[float, float]] = []
        self.refused: list[tuple[float, float]] = []
        self.failures: list[str] = []
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> "Feed":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.has_ended.set()
        for thread in self.threads:
            thread.join()

    def _run(self, client: int) -> None:
        numbers = random.Random(client)
        replica = self.replicas[client % len(self.replicas)]
        due = time.monotonic() + numbers.random() * self.interval
        count = 0
        try:
            with socket.create_connection((replica.host, replica.port), timeout=60) as connection:
                with connection.makefile("rb") as answers:
                    while not self.has_ended.wait(max(0.0, due - time.monotonic())):
                        count += 1
                        due += self.interval
                        began = time.monotonic()
                        connection.sendall(make_insert(replica, f"{client}-{count}", numbers))
                        answer = read_message(answers, "POST")
                        if answer is None or answer.first_line.split(" ")[1] not in ("200", "503"):
                            raise OSError(answer.content[:600] if answer else "the connection was closed")
                        answered = self.refused if " 503 " in answer.first_line else self.times
                        answered.append((began, time.monotonic() - began))
        except OSError as error:
            self.failures.append(str(error))


def make_insert(replica: Replica, identifier: str, numbers: random.Random) -> bytes:
    """Returns a request as bytes, because the client of the library would take more time than all replicas."""
    text = " ".join(numbers.choice(WORDS) + str(numbers.randrange(1000)) for _ in range(30))
    body = json.dumps({"id": identifier, "text": text})
    return (
        f"POST /v1/collections/news/documents HTTP/1.1\r\nHost: {replica.host}:{replica.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def kind_of(method: str, target: str, status: int) -> str:
    """Returns the kind of a request, by its method, its target and the status of its answer."""
    url = urlsplit(target)
    is_record = "/log/" in url.path
    if "list-type=" in url.query:
        return LIST
    if method in ("GET", "HEAD"):
        if not is_record:
            return OTHER_GET
        return GET_OF_NONE if status == 404 else GET_OF_RECORD
    if not is_record:
        return OTHER_PUT
    return LATE_PUT if status == 412 else PUT_OF_RECORD


def count_kinds(cluster: Cluster) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for link in cluster.links:
        for (method, target, status), count in link.count_requests().items():
            kinds[kind_of(method, target, status)] += count
    return kinds


def predict(kind: str, writes: float, replicas: int) -> float:
    """Returns the requests a second by the formula of the page about availability, which leaves the others out."""
    # The writer reads the object before its own and looks for the one after it. The others read it and look for the next.
    return {
        PUT_OF_RECORD: writes, GET_OF_RECORD: replicas * writes, GET_OF_NONE: replicas * writes,
    }.get(kind, 0.0)


def describe(name: str, per_second: float, predicted: float, price: float) -> dict:
    return {
        "request": name, "per_second": round(per_second, 2), "predicted_per_second": round(predicted, 2),
        "usd_a_month": round(per_second * price * SECONDS_OF_MONTH, 2),
        "predicted_usd_a_month": round(predicted * price * SECONDS_OF_MONTH, 2),
    }


def describe_kinds(kinds: Counter[str], seconds: float, writes: float, replicas: int) -> list[dict]:
    rows = []
    for kind in KINDS:
        price = GET_PRICE if kind in (GET_OF_RECORD, GET_OF_NONE, OTHER_GET) else PUT_PRICE
        rows.append(describe(kind, kinds[kind] / seconds, predict(kind, writes, replicas), price))
    total = {"request": "sum"}
    for field in rows[0]:
        if field != "request":
            total[field] = round(sum(row[field] for row in rows), 2)
    return [*rows, total]


@dataclass
class Measurement:
    """Requests to the store by kind in a time, and the answers to clients in it. Times are in seconds, and sorted."""

    kinds: Counter[str]
    seconds: float
    times: list[float]
    refused: int


def measure(cluster: Cluster, receivers: int, rate: float, seconds: float) -> Measurement:
    with Feed(cluster.replicas[:receivers], rate) as feed:
        time.sleep(WARM_UP_SECONDS)
        before, began = count_kinds(cluster), time.monotonic()
        time.sleep(seconds)
        kinds, took = count_kinds(cluster), time.monotonic() - began
        end = time.monotonic()
    if feed.failures:
        raise RuntimeError(feed.failures[0])
    kinds.subtract(before)
    times = sorted(length for start, length in feed.times if began <= start < end)
    return Measurement(kinds, took, times, sum(began <= start < end for start, _ in feed.refused))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--store", choices=["moto", "ceph"], default="moto")
    parser.add_argument("--rate", type=float, default=300, help="documents a second")
    parser.add_argument("--receivers", type=int, default=3, help="replicas of three to which clients send")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--writes", type=int, default=4, help="`--log-writes-per-second` of the replicas")
    arguments = parser.parse_args()
    options = ["--log-writes-per-second", str(arguments.writes), "--headroom", "16Mi"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with (
            STORES[arguments.store](folder) as store,
            Cluster(arguments.program, folder, store, options=options, make_link=HttpProxy) as cluster,
        ):
            create_collection(cluster)
            measured = measure(cluster, arguments.receivers, arguments.rate, arguments.minutes * 60)
            cluster.wait_until_equal()
            if len({replica.export("news") for replica in cluster.replicas}) != 1:
                raise RuntimeError("the exports of the replicas differ")
    times, seconds = measured.times, measured.seconds
    print(json.dumps({
        "store": arguments.store, "seconds": round(seconds), "replicas": len(cluster.replicas),
        "receivers": arguments.receivers, "refused_inserts": measured.refused,
        "documents_per_second": round(len(times) / seconds, 1), "writes_per_second": arguments.writes,
        "median_ms": round(times[len(times) // 2] * 1000, 1),
        "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 1), "processors": os.cpu_count(),
        "requests": describe_kinds(measured.kinds, seconds, arguments.writes, len(cluster.replicas)),
    }))


if __name__ == "__main__":
    main()
