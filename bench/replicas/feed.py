#!/usr/bin/env python3
"""A feed into three replicas for an hour, while each of them is killed, erased, replaced, stopped and upgraded in turn,
and the store fails for a minute.

Afterwards the exports of all replicas must be equal, byte for byte, and `dedup` over the documents in the order of the
log must keep the same documents.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

from rounds import THRESHOLD, WORDS, check_replay
from service import Client, Cluster, Replica
from stores import STORES

CLIENTS = 24


def make_text(numbers: random.Random, topics: list[list[str]]) -> str:
    """Returns a new text, or in two of three cases an earlier one with a word changed."""
    if topics and numbers.random() < 0.66:
        words = list(numbers.choice(topics))
        words[numbers.randrange(len(words))] = f"edit{numbers.randrange(10_000)}"
        return " ".join(words)
    words = [numbers.choice(WORDS) + str(numbers.randrange(1000)) for _ in range(30)]
    topics.append(words)
    if len(topics) > 2000:
        topics.pop(0)
    return " ".join(words)


class Feed:
    def __init__(self, cluster: Cluster, rate: float, seconds: float):
        self.cluster, self.rate = cluster, rate
        self.end = time.monotonic() + seconds
        self.answers: dict[str, dict] = {}
        self.times: list[float] = []
        self.failures: list[str] = []
        self.lock = threading.Lock()

    def run_client(self, number: int) -> None:
        numbers, topics = random.Random(number), []
        client = Client(self.cluster, number)
        count = 0
        while time.monotonic() < self.end:
            count += 1
            identifier = f"{number}-{count}"
            body = json.dumps({"id": identifier, "text": make_text(numbers, topics)}).encode()
            began = time.monotonic()
            try:
                status, answer = client.request("POST", "/v1/collections/news/documents", body, give_up=180)
            except RuntimeError as error:
                self.failures.append(str(error))
                return
            took = time.monotonic() - began
            if status != 200:
                self.failures.append(f"{identifier}: {status} {answer[:200]!r}")
                return
            with self.lock:
                self.answers[identifier] = json.loads(answer)
                self.times.append(took)
            time.sleep(max(0.0, CLIENTS / self.rate - took))


def disturb(cluster: Cluster, folder: Path, seconds: float, upgraded: str, options: list[str], events: list) -> None:
    """Makes one event after another, spread over the time."""
    began = time.monotonic()

    def at(share: float, name: str) -> None:
        time.sleep(max(0.0, began + share * seconds - time.monotonic()))
        events.append({"second": round(time.monotonic() - began), "event": name})
        print(events[-1], flush=True)

    def replace(place: int, name: str) -> None:
        cluster.replicas[place].kill()
        cluster.replicas[place].erase()
        environment = cluster.replicas[place].environment
        replica = Replica(cluster.program, name, folder, cluster.log, options, environment)
        replica.start()
        replica.wait_until_ready()
        cluster.replicas[place] = replica

    def restart(place: int, is_erased: bool = False, program: str | None = None) -> None:
        replica = cluster.replicas[place]
        if program is None:
            replica.kill()
        else:
            replica.stop()
            replica.program = program
        if is_erased:
            replica.erase()
        replica.start()
        replica.wait_until_ready()

    shares = iter([number / 12 for number in range(1, 12)])
    for place in range(3):
        at(next(shares), f"kill -9 of replica {place}")
        restart(place)
    for place in range(2):
        at(next(shares), f"replica {place} loses its disk")
        restart(place, is_erased=True)
    at(next(shares), "replica 2 is replaced by a new one")
    replace(2, "r4")
    outage = min(60.0, seconds / 24)
    at(next(shares), f"the store fails for {outage:.0f} s")
    for link in cluster.links:
        link.cut("refuse")
    time.sleep(outage)
    for link in cluster.links:
        link.mend()
    stopped = min(30.0, seconds / 24)
    at(next(shares), f"SIGSTOP of replica 1 for {stopped:.0f} s")
    cluster.replicas[1].send_signal(signal.SIGSTOP)
    time.sleep(stopped)
    cluster.replicas[1].send_signal(signal.SIGCONT)
    at(next(shares), "replica 0 is cut from the store")
    if cluster.links:
        cluster.links[0].cut("hang")
        time.sleep(stopped)
        cluster.links[0].mend()
    at(next(shares), "replica 0 is upgraded")
    restart(0, program=upgraded)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--upgraded", help="the command of another version, to which one replica is upgraded")
    parser.add_argument("--store", choices=sorted(STORES), default="moto")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=60, help="documents a second")
    arguments = parser.parse_args()
    seconds = arguments.minutes * 60
    options = ["--snapshot-log-every", f"{max(2, round(seconds / 30))}s", "--headroom", "16Mi"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with (
            STORES[arguments.store](folder) as store,
            Cluster(arguments.program, folder, store, options=options) as cluster,
        ):
            settings = json.dumps({"threshold": THRESHOLD}).encode()
            status, answer, _ = cluster.replicas[0].request("PUT", "/v1/collections/news", settings)
            if status != 201:
                raise RuntimeError(answer.decode())
            feed, events = Feed(cluster, arguments.rate, seconds), []
            clients = [threading.Thread(target=feed.run_client, args=(number,)) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            disturb(cluster, folder, seconds, arguments.upgraded or arguments.program, options, events)
            for client in clients:
                client.join()
            if feed.failures:
                raise RuntimeError(feed.failures[0])
            records = cluster.wait_until_equal()
            exports = [replica.export("news") for replica in cluster.replicas]
            if len(set(exports)) != 1:
                raise RuntimeError("the exports of the replicas differ")
            stored = {document["id"]: document for document in map(json.loads, exports[0].splitlines())}
            for identifier, answer in feed.answers.items():
                if stored[identifier]["seq"] != answer["seq"] or stored[identifier].get("of") != answer["of"]:
                    raise RuntimeError(f"{identifier}: answered {answer}, stored {stored[identifier]}")
            check_replay(cluster, exports[0], folder)
            times = sorted(feed.times)
            report = {
                "minutes": arguments.minutes, "store": arguments.store, "documents": len(stored),
                "kept": sum("of" not in document for document in stored.values()), "records": records,
                "median_ms": round(times[len(times) // 2] * 1000, 1),
                "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 1),
                "longest_s": round(times[-1], 1), "events": events, "processors": os.cpu_count(),
            }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
