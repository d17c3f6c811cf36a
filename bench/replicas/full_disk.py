#!/usr/bin/env python3
"""Rounds in which the disk of one replica of three fills up by the documents that it stores, until there is room again.

The replica must wait and fall behind, and the others must go on; after there is room it must catch up, with the same
bytes. Its data directory is on a `tmpfs` of its own, so this takes root and Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

from rounds import (
    WORDS, check_equal, check_replay, create_collection, send_documents, summarize_times, verify_log,
)
from service import Cluster, Replica
from stores import STORES

HEADROOM = 16 << 20
LARGE_DISK = 1 << 30
# Room above the headroom at the beginning of a round. A burst takes more than this.
ROOM = 256 << 10
WORDS_OF_DOCUMENT = 400
LONGEST_SECONDS = 60


class SmallDisk:
    """A file system in memory whose size can be changed."""

    def __init__(self, path: Path):
        self.path = path
        path.mkdir()
        self._mount("-t", "tmpfs", "-o", f"size={LARGE_DISK}", "tmpfs", str(path))

    def __enter__(self) -> "SmallDisk":
        return self

    def __exit__(self, *_) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    def leave(self, room: int) -> None:
        """Changes the size so that this many bytes are free."""
        status = os.statvfs(self.path)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        self._mount("-o", f"remount,size={used + room}", str(self.path))

    def grow(self) -> None:
        self._mount("-o", f"remount,size={LARGE_DISK}", str(self.path))

    def free_bytes(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def _mount(self, *arguments: str) -> None:
        finished = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise RuntimeError(f"mount {' '.join(arguments)}: {finished.stderr.strip()}; this takes root")


def make_burst(numbers: random.Random, name: str) -> list[tuple[str, str, str]]:
    """Returns documents as group, id and text. Two of a group differ in one word."""
    documents = []
    for group in range(60):
        words = [numbers.choice(WORDS) + str(numbers.randrange(1000)) for _ in range(WORDS_OF_DOCUMENT)]
        for variant in range(2):
            words[numbers.randrange(len(words))] = f"edit{variant}"
            documents.append((f"{name}-{group}", f"{name}-{group}-{variant}", " ".join(words)))
    numbers.shuffle(documents)
    return documents


def is_behind(cluster: Cluster, full: Replica) -> bool:
    return full.applied() < max(replica.applied() for replica in cluster.replicas)


def fill(cluster: Cluster, disk: SmallDisk, full: Replica, numbers: random.Random, number: int, report: dict) -> dict:
    """Sends documents until the replica has fallen behind and stays so; returns the answers by id."""
    disk.leave(HEADROOM + ROOM)
    answers: dict[str, dict] = {}
    began = time.monotonic()
    burst = 0
    while time.monotonic() - began < LONGEST_SECONDS:
        burst += 1
        documents = make_burst(numbers, f"{number}.{burst}")
        answers |= send_documents(cluster, documents, number * 100 + burst, report)
        time.sleep(1)
        if is_behind(cluster, full):
            return answers
    raise RuntimeError(f"the replica {full.name} is not behind after {burst} bursts: {cluster.describe()}")


def ask_alone(replica: Replica) -> int | None:
    """Returns the status with which a replica answers an insert, or `None` if it answers nothing."""
    body = json.dumps({"id": f"alone-{time.time_ns()}", "text": "one document for a replica without room"}).encode()
    try:
        return replica.request("POST", "/v1/collections/news/documents", body, seconds=30)[0]
    except OSError:
        return None


def run_round(
    cluster: Cluster, disk: SmallDisk, numbers: random.Random, number: int, report: dict
) -> dict[str, dict]:
    """Fills the disk of the first replica, kills it in every second round, and makes room; returns the answers."""
    full, others = cluster.replicas[0], cluster.replicas[1:]
    answers = fill(cluster, disk, full, numbers, number, report)
    before = full.applied()
    report.setdefault("answers_of_the_full", []).append(ask_alone(full))
    report["ready_while_full"] = report.get("ready_while_full", 0) + full.is_ready()
    answers |= send_documents(cluster, make_burst(numbers, f"{number}.others"), number * 100, report)
    behind = max(replica.applied() for replica in others) - full.applied()
    if full.applied() != before or behind <= 0:
        raise RuntimeError(f"the replica {full.name} has gone on without room: {cluster.describe()}")
    report["most_records_behind"] = max(report.get("most_records_behind", 0), behind)
    report["least_free_bytes"] = min(report.get("least_free_bytes", LARGE_DISK), disk.free_bytes())
    if number % 2 == 0:
        full.kill()
        full.start()
        report["killed"] = report.get("killed", 0) + 1
        time.sleep(1)
    elif full.process.poll() is not None:
        raise RuntimeError(f"the replica {full.name} has ended: {cluster.describe()}")
    disk.grow()
    began = time.monotonic()
    cluster.wait_until_equal()
    took = time.monotonic() - began
    report["longest_catch_up_seconds"] = max(report.get("longest_catch_up_seconds", 0), round(took, 1))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--store", choices=sorted(STORES), default="directory")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    numbers = random.Random(arguments.seed)
    report: dict = {}
    options = ["--snapshot-log-every", "5s", "--log-writes-per-second", "200", "--headroom", str(HEADROOM)]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with (
            SmallDisk(folder / "data-r1") as disk,
            STORES[arguments.store](folder) as store,
            Cluster(arguments.program, folder, store, options=options) as cluster,
        ):
            create_collection(cluster)
            answers: dict[str, dict] = {}
            for number in range(1, arguments.rounds + 1):
                answers |= run_round(cluster, disk, numbers, number, report)
                export = check_equal(cluster, answers)
                check_replay(cluster, export, folder)
            verify_log(cluster)
            report |= {"store": arguments.store, "rounds": arguments.rounds, "documents": export.count(b"\n")}
    summarize_times(report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
