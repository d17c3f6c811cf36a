"""Several replicas of the service on one machine, and clients that go on with the next one."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from proxy import StoreProxy

START_SECONDS = 120
CATCH_UP_SECONDS = 120


def reserve_port() -> socket.socket:
    """Returns a socket that is bound to a free port and does not listen.

    As long as it is open, nobody gets the port by chance, also not while the server that listens on it is down. A
    server can listen on it if it sets `SO_REUSEADDR`.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation


def port_of(reservation: socket.socket) -> int:
    return reservation.getsockname()[1]


def wait_for_port(port: int, process: subprocess.Popen) -> None:
    """Waits until a process listens on a port."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the process that should listen on port {port} ended: {process.args}")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port} after {START_SECONDS} s: {process.args}")


class Replica:
    """A service that follows a shared log."""

    def __init__(
        self, program: str, name: str, folder: Path, log: str, options: list[str], environment=None,
        host: str = "127.0.0.1", command_prefix: list[str] | None = None,
    ):
        self.program, self.name, self.folder, self.log = program, name, folder, log
        self.options = options
        self.environment = environment or {}
        self.data = folder / f"data-{name}"
        self.reservation = reserve_port()
        self.host, self.port = host, port_of(self.reservation)
        # A command that starts another one in its own process, with the other one's arguments.
        self.command_prefix = command_prefix or []
        # A start ends if the store refuses a request and its repetitions. A supervisor then starts the replica again.
        self.failed_starts, self.max_failed_starts = 0, 0
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        output = open(self.folder / f"{self.name}.log", "ab")
        command = [
            *self.command_prefix, self.program, "serve", "--data", str(self.data), "--listen",
            f"{self.host}:{self.port}", "--shared-log", self.log, "--replica", self.name, *self.options,
        ]
        if self.host != "127.0.0.1":
            command.append("--allow-unauthenticated")
        environment = {**os.environ, **self.environment}
        self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)

    def send_signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self) -> None:
        self.send_signal(signal.SIGCONT)
        self.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.send_signal(signal.SIGCONT)
        self.send_signal(signal.SIGTERM)
        self.process.wait()

    def erase(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)

    def request(self, method: str, path: str, body: bytes | None = None, headers=None, seconds: float = 15):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        try:
            connection.request(method, path, body, {"content-type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, response.read(), response.getheader("lookalike-position")
        finally:
            connection.close()

    def is_ready(self) -> bool:
        try:
            return self.request("GET", "/readyz", seconds=5)[0] == 200
        except OSError:
            return False

    def wait_until_ready(self) -> float:
        """Returns the seconds that it took."""
        began = time.monotonic()
        while time.monotonic() - began < START_SECONDS:
            if self.process.poll() is not None:
                if self.failed_starts >= self.max_failed_starts:
                    raise RuntimeError(f"the replica {self.name} ended: {self.last_lines()}")
                self.failed_starts += 1
                self.start()
            if self.is_ready():
                return time.monotonic() - began
            time.sleep(0.02)
        raise RuntimeError(f"the replica {self.name} is not ready after {START_SECONDS} s")

    def last_lines(self) -> str:
        """Returns the end of what the replica has logged."""
        return "\n".join((self.folder / f"{self.name}.log").read_text().splitlines()[-8:])

    def applied(self) -> int:
        status, body, _ = self.request("GET", "/readyz")
        return json.loads(body)["log"]["applied"]

    def export(self, collection: str) -> bytes:
        status, body, _ = self.request("GET", f"/v1/collections/{collection}/export", seconds=300)
        if status != 200:
            raise RuntimeError(f"the export of {self.name} failed: {body[:300]!r}")
        return body


class Cluster:
    """Replicas of one log.

    Each has a link of its own to the store, which can be cut: `make_link` makes it from the store's port.
    """

    def __init__(self, program: str, folder: Path, store, count: int = 3, options=(), make_link=StoreProxy):
        folder.mkdir(parents=True, exist_ok=True)
        self.program, self.folder, self.log = program, folder, store.url
        self.environment = store.environment(f"127.0.0.1:{store.port}")
        self.links = [make_link(store.port) for _ in range(count if store.port else 0)]
        self.replicas = [
            Replica(
                program, f"r{number + 1}", folder, store.url, list(options), **self._link_settings(store, number)
            )
            for number in range(count)
        ]

    def _link_settings(self, store, number: int) -> dict:
        if not self.links:
            return {}
        link = self.links[number]
        return {
            "environment": store.environment(link.endpoint),
            "host": getattr(link, "replica_host", "127.0.0.1"),
            "command_prefix": getattr(link, "command_prefix", None),
        }

    def allow_failed_starts(self, count: int) -> None:
        """Starts each replica again up to so many times if its start has failed."""
        for replica in self.replicas:
            replica.max_failed_starts = count

    def __enter__(self) -> "Cluster":
        try:
            for replica in self.replicas:
                replica.start()
            for replica in self.replicas:
                replica.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is None:
                replica.kill()
        for link in self.links:
            link.close()

    def wait_until_equal(self) -> int:
        """Waits until all replicas have applied the newest record of all; returns its number."""
        began = time.monotonic()
        while time.monotonic() - began < CATCH_UP_SECONDS:
            try:
                applied = {replica.applied() for replica in self.replicas}
            except (OSError, KeyError, ValueError):
                applied = set()
            if len(applied) == 1 and all(replica.is_ready() for replica in self.replicas):
                return applied.pop()
            time.sleep(0.05)
        raise RuntimeError(
            f"the replicas did not become equal in {CATCH_UP_SECONDS} s: {applied}\n{self.describe()}"
        )

    def describe(self) -> str:
        """Returns what each replica says of itself."""
        lines = []
        for replica in self.replicas:
            try:
                status, body, _ = replica.request("GET", "/readyz", seconds=5)
                state = f"{status} {body.decode()}"
            except OSError as error:
                state = str(error)
            lines += [f"{replica.name}: {state}", replica.last_lines()]
        return "\n".join(lines)

    def log_command(self, *arguments: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            [self.program, "store", "log", *arguments], capture_output=True, env=environment, check=False
        )


class Client:
    """A client that sends each request until a replica answers it, and goes on with the next one after a failure."""

    def __init__(self, cluster: Cluster, seed: int):
        self.cluster = cluster
        self.random = random.Random(seed)
        self.at = self.random.randrange(len(cluster.replicas))
        self.longest_outage = 0.0
        self.failures = 0

    def request(self, method: str, path: str, body: bytes | None, give_up: float = 120):
        began = time.monotonic()
        failed_since = None
        while time.monotonic() - began < give_up:
            replica = self.cluster.replicas[self.at]
            try:
                status, answer, _ = replica.request(method, path, body)
            except OSError:
                status, answer = None, b""
            if status is not None and status not in (429, 502, 503, 504):
                if failed_since is not None:
                    self.longest_outage = max(self.longest_outage, time.monotonic() - failed_since)
                return status, answer
            self.failures += 1
            failed_since = failed_since or time.monotonic()
            self.at = (self.at + 1) % len(self.cluster.replicas)
            time.sleep(0.02)
        raise RuntimeError(f"no replica answered {method} {path} in {give_up} s: {answer[:300]!r}")


def run_clients(cluster: Cluster, work: list[list], seed: int) -> list[Client]:
    """Lets each client do its list of functions of a client, at the same time; raises the first error."""
    clients = [Client(cluster, seed * 1000 + number) for number in range(len(work))]
    errors: list[BaseException] = []

    def run(client: Client, jobs: list) -> None:
        try:
            for job in jobs:
                job(client)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in zip(clients, work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return clients
