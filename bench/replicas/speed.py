#!/usr/bin/env python3
"""Bulk and single inserts with a shared log in a directory, beside the same without a log, in turn."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Service:
    def __init__(self, program: str, data: Path, options: list[str]):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, "serve", "--data", str(data), "--listen", f"127.0.0.1:{self.port}", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        while not self.is_ready():
            time.sleep(0.02)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def request(self, connection, method: str, path: str, body: bytes, kind: str = "application/json") -> bytes:
        connection.request(method, path, body, {"content-type": kind})
        response = connection.getresponse()
        answer = response.read()
        if response.status not in (200, 201):
            raise RuntimeError(answer[:300])
        return answer

    def is_ready(self) -> bool:
        try:
            connection = self.connect()
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def make_titles(count: int) -> bytes:
    numbers = random.Random(1)
    words = [f"{a}{b}" for a in ("har", "lan", "mor", "sil", "ten", "vol") for b in ("bour", "tern", "ning", "ver", "der", "cano")]
    lines = []
    for number in range(count):
        text = " ".join(numbers.choice(words) + str(numbers.randrange(300)) for _ in range(9))
        lines.append(json.dumps({"id": str(number), "text": text}))
    return "\n".join(lines).encode() + b"\n"


def measure_bulk(program: str, lines: bytes, count: int, log: bool) -> float:
    """Returns documents per second."""
    folder = Path(tempfile.mkdtemp())
    options = ["--shared-log", f"file://{folder}/log", "--replica", "a"] if log else []
    service = Service(program, folder / "data", options)
    try:
        connection = service.connect()
        service.request(connection, "PUT", "/v1/collections/a", b"{}")
        began = time.monotonic()
        service.request(connection, "POST", "/v1/collections/a/documents", lines, "application/x-ndjson")
        return count / (time.monotonic() - began)
    finally:
        service.stop()
        shutil.rmtree(folder)


def measure_single(program: str, log: bool, writes: int, count: int, pause: float) -> tuple[float, float]:
    """Returns the median and the 99th of 100 of the milliseconds of an insert."""
    folder = Path(tempfile.mkdtemp())
    options = (
        ["--shared-log", f"file://{folder}/log", "--replica", "a", "--log-writes-per-second", str(writes)]
        if log else []
    )
    service = Service(program, folder / "data", options)
    try:
        connection = service.connect()
        service.request(connection, "PUT", "/v1/collections/a", b"{}")
        numbers, times = random.Random(2), []
        for number in range(count):
            text = " ".join(str(numbers.randrange(10_000)) for _ in range(30))
            body = json.dumps({"id": str(number), "text": text}).encode()
            time.sleep(pause)
            began = time.monotonic()
            service.request(connection, "POST", "/v1/collections/a/documents", body)
            times.append((time.monotonic() - began) * 1000)
        times.sort()
        return times[len(times) // 2], times[int(len(times) * 0.99)]
    finally:
        service.stop()
        shutil.rmtree(folder)


def measure_put(folder: Path, count: int) -> tuple[float, float]:
    """Returns the same of the milliseconds in which a file is created under its name, as an object is, and synced."""
    times = []
    directory = os.open(folder, os.O_RDONLY)
    for number in range(count):
        began = time.monotonic()
        staged = folder / f"{number}#staged"
        file = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(file, b"x" * 400)
        os.fsync(file)
        os.close(file)
        os.link(staged, folder / str(number))
        os.unlink(staged)
        os.fsync(directory)
        times.append((time.monotonic() - began) * 1000)
    os.close(directory)
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.99)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--titles", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    lines = make_titles(arguments.titles)
    report: dict = {"bulk_without": [], "bulk_with": []}
    for _ in range(arguments.runs):
        for name, log in (("bulk_without", False), ("bulk_with", True)):
            report[name].append(round(measure_bulk(arguments.program, lines, arguments.titles, log)))
    report["single_without_ms"] = measure_single(arguments.program, False, 0, 400, 0.0)
    report["single_with_ms"] = measure_single(arguments.program, True, 1000, 400, 0.0)
    report["lone_with_ms"] = measure_single(arguments.program, True, 4, 40, 0.4)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
