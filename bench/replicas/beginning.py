#!/usr/bin/env python3
"""The time until a new replica is ready, by the number of titles in the snapshot from which it starts."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from service import Cluster, Replica
from stores import DirectoryStore

BATCH = 250_000


def make_lines(first: int, count: int, numbers: random.Random) -> bytes:
    words = [f"{a}{b}" for a in ("har", "lan", "mor", "sil", "ten", "vol") for b in ("bour", "tern", "ning", "ver", "der", "cano")]
    lines = []
    for number in range(first, first + count):
        text = " ".join(numbers.choice(words) + str(numbers.randrange(3000)) for _ in range(9))
        lines.append(f'{{"id":"{number}","text":"{text}"}}')
    return "\n".join(lines).encode() + b"\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--titles", type=int, default=10_000_000)
    parser.add_argument("--folder", help="a folder with room for three times the titles")
    arguments = parser.parse_args()
    numbers = random.Random(1)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = Path(folder)
        store = DirectoryStore(folder)
        options = ["--log-writes-per-second", "1000"]
        with Cluster(arguments.program, folder, store, count=1, options=options) as cluster:
            first = cluster.replicas[0]
            first.request("PUT", "/v1/collections/a", b"{}")
            began = time.monotonic()
            for number in range(0, arguments.titles, BATCH):
                lines = make_lines(number, BATCH, numbers)
                kind = {"content-type": "application/x-ndjson"}
                status, answer, _ = first.request("POST", "/v1/collections/a/documents", lines, kind, 600)
                refused = [line for line in answer.splitlines() if b'"verdict"' not in line]
                if status != 200 or refused or answer.count(b"\n") != BATCH:
                    raise RuntimeError(f"{status}, {len(refused)} refused: {refused[:2]} {answer[:200]!r}")
            inserting = time.monotonic() - began
            first.stop()
            # The same replica again, which makes a snapshot beside the log.
            first.options = ["--snapshot-log-every", "1s"]
            first.start()
            reopening = first.wait_until_ready()
            began = time.monotonic()
            while not list((folder / "log/snapshots").glob("*/manifest.json")):
                time.sleep(0.1)
            snapshot = time.monotonic() - began
            second = Replica(arguments.program, "new", folder, store.url, [])
            cluster.replicas.append(second)
            second.start()
            ready = second.wait_until_ready()
            status, body, _ = second.request("GET", "/v1/collections/a/stats")
            rows = json.loads(body)["rows"]
            if rows != arguments.titles:
                raise RuntimeError(f"the new replica has {rows} documents")
    print(json.dumps({
        "titles": arguments.titles, "inserting_s": round(inserting, 1), "reopening_s": round(reopening, 1),
        "snapshot_s": round(snapshot, 1), "new_replica_ready_s": round(ready, 1),
    }))


if __name__ == "__main__":
    main()
