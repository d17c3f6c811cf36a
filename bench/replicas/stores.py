"""Object stores on this machine for tests: a directory, moto (S3), Azurite (Azure) and Ceph's object gateway (S3)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from ceph import ACCESS_KEY, SECRET_KEY, CephCluster
from service import port_of, reserve_port, wait_for_port

# The published account of the emulator, as every program that speaks to it has it.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class TestStore:
    """A store that exists as long as its context."""

    port: int | None = None
    url: str

    def environment(self, endpoint: str) -> dict[str, str]:
        """Returns the settings of a client that reaches the store at `endpoint`, as HOST:PORT."""
        raise NotImplementedError

    def stop(self) -> None:
        pass

    def __enter__(self) -> "TestStore":
        return self

    def __exit__(self, *_) -> None:
        self.stop()


class DirectoryStore(TestStore):
    """A directory, by `file://`."""

    def __init__(self, folder: Path):
        self.url = f"file://{folder}/log"

    def environment(self, endpoint: str) -> dict[str, str]:
        return {}


class ServerStore(TestStore):
    """A store that is one process."""

    process: subprocess.Popen

    def start(self, command: list, folder: Path) -> None:
        """Starts the process, whose command knows the port, and waits until it listens."""
        output = open(folder / "store.log", "ab")
        self.process = subprocess.Popen(command, stdout=output, stderr=output)
        wait_for_port(self.port, self.process)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


# moto checks `If-None-Match: *` and stores the object in two steps, so that of two requests at the same moment both may
# succeed. S3 does not; so one object is stored at a time.
MOTO_PROGRAM = """
import threading
from moto.s3 import responses
from moto.server import main

lock, store_object = threading.Lock(), responses.S3Response.put_object

def store_alone(self):
    with lock:
        return store_object(self)

responses.S3Response.put_object = store_alone
main()
"""


class MotoStore(ServerStore):
    """moto's server, which speaks S3."""

    def __init__(self, folder: Path):
        self.reservation = reserve_port()
        self.port = port_of(self.reservation)
        self.start([sys.executable, "-c", MOTO_PROGRAM, "-p", str(self.port)], folder)
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/logs", method="PUT")
        urllib.request.urlopen(request).close()
        self.url = "s3://logs/news"

    def environment(self, endpoint: str) -> dict[str, str]:
        return s3_environment(endpoint, "test", "test")


class AzuriteStore(ServerStore):
    """Azurite, Microsoft's emulator of Azure Blob Storage (npm package `azurite`)."""

    def __init__(self, folder: Path):
        self.reservation = reserve_port()
        self.port = port_of(self.reservation)
        program = os.environ.get("AZURITE") or shutil.which("azurite-blob")
        if program is None:
            raise RuntimeError("azurite-blob is missing: npm install azurite, and give its path in AZURITE")
        command = [
            program, "--blobPort", str(self.port), "--silent", "--skipApiVersionCheck",
            "--inMemoryPersistence", "--disableTelemetry",
        ]
        self.start(command, folder)
        create_container(self.port, "logs")
        self.url = "az://logs/news"

    def environment(self, endpoint: str) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://{endpoint}/{AZURITE_ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }


class CephStore(TestStore):
    """Ceph's object gateway, which speaks S3."""

    def __init__(self, folder: Path):
        self.reservations = [reserve_port(), reserve_port()]
        self.port, monitor_port = map(port_of, self.reservations)
        self.cluster = CephCluster(folder / "ceph", self.port, monitor_port, "logs")
        self.url = "s3://logs/news"

    def environment(self, endpoint: str) -> dict[str, str]:
        return s3_environment(endpoint, ACCESS_KEY, SECRET_KEY)

    def stop(self) -> None:
        self.cluster.stop()


def s3_environment(endpoint: str, key: str, secret: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://{endpoint}", "AWS_ALLOW_HTTP": "true",
    }


def create_container(port: int, name: str) -> None:
    """Creates a container with a request that is signed with the shared key."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    version = "2021-08-06"
    resource = f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{name}\nrestype:container"
    signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n{resource}"
    digest = hmac.new(base64.b64decode(AZURITE_KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date, "x-ms-version": version,
        "Authorization": f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
    url = f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()


STORES = {"directory": DirectoryStore, "moto": MotoStore, "azurite": AzuriteStore, "ceph": CephStore}
